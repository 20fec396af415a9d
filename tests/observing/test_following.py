"""Lists and watches continue after every kind of interruption by an apiserver."""

import threading
from typing import Any

import pytest

from plimsoll.kube import Connection, ConnectionFailedError, RequestError
from plimsoll.observe.cluster import DEFINITIONS, DEPLOYMENTS, NODES, PODS, SILENCE_SECONDS, NotSyncedError, Observer
from tests.awaiting import await_condition
from tests.observing.apiserver import END, FakeApiserver
from tests.observing.conftest import CORE


def names(observer: Observer) -> list[str]:
    return sorted(node.name for node in observer.snapshot().nodes)


def start(observer: Observer) -> None:
    observer.start()
    observer.wait_synced(120)


def await_names(observer: Observer, *expected: str) -> None:
    await_condition(lambda: names(observer) == sorted(expected), 120, f"nodes {expected}")


def await_watch(cluster: FakeApiserver, path: str = NODES.path) -> None:
    await_condition(lambda: cluster.watching(path), 120, f"a watch of {path}")


def refusal(code: int, reason: str) -> dict[str, Any]:
    return {"kind": "Status", "code": code, "reason": reason, "message": f"{reason} it is"}


def test_there_is_no_snapshot_before_all_watches_are_synced(observer: Observer) -> None:
    with pytest.raises(NotSyncedError, match=r"Deployment, .*Node, .*Workspace"):
        observer.snapshot()


def test_added_changed_and_deleted_objects_are_observed(cluster: FakeApiserver, observer: Observer) -> None:
    cluster.put(NODES.path, "old")
    start(observer)
    assert names(observer) == ["old"]
    await_watch(cluster)
    cluster.put(NODES.path, "new", spec={"unschedulable": True})
    cluster.delete(NODES.path, "old")
    await_names(observer, "new")
    assert observer.snapshot().nodes[0].unschedulable


def test_a_long_list_is_read_in_chunks(cluster: FakeApiserver, observer: Observer) -> None:
    cluster.page = 2
    for number in range(5):
        cluster.put(NODES.path, f"n{number}")
    start(observer)
    assert names(observer) == ["n0", "n1", "n2", "n3", "n4"]
    assert [each.query.get("continue") for each in cluster.seen(NODES.path, watch=False)] == [None, "2", "4"]


def test_a_broken_watch_resumes_at_its_resource_version(cluster: FakeApiserver, observer: Observer) -> None:
    start(observer)
    await_watch(cluster)
    cluster.put(NODES.path, "before")
    await_names(observer, "before")
    cluster.bookmark(NODES.path)
    seen = cluster.version
    cluster.cut(NODES.path)
    cluster.put(NODES.path, "meanwhile")
    await_names(observer, "before", "meanwhile")
    assert len(cluster.seen(NODES.path, watch=False)) == 1
    versions = [int(each.query["resourceVersion"]) for each in cluster.seen(NODES.path, watch=True)]
    assert versions[-1] >= seen  # from the bookmark on, at least


@pytest.mark.parametrize("later", [-50, 50], ids=["its versions are lower", "its versions have caught up"])
def test_after_an_outage_the_history_may_be_another(cluster: FakeApiserver, observer: Observer, later: int) -> None:
    """An older etcd was restored: a watch from the known version would never show what is different."""
    cluster.put(NODES.path, "lost")
    start(observer)
    await_watch(cluster)
    cluster.down = True
    cluster.cut(NODES.path)
    asked = len(cluster.seen(NODES.path, watch=True))
    await_condition(lambda: len(cluster.seen(NODES.path, watch=True)) > asked, 120, "an attempt in vain")
    cluster.restore(NODES.path, cluster.version + later, "back")
    cluster.down = False
    await_names(observer, "back")


def test_a_truncated_line_is_not_an_event(cluster: FakeApiserver, observer: Observer) -> None:
    start(observer)
    await_watch(cluster)
    cluster.put(NODES.path, "first")
    await_names(observer, "first")
    cluster.say(NODES.path, b'{"type":"ADDED","object":{"metadata":{"name":"half"')
    cluster.cut(NODES.path)
    cluster.put(NODES.path, "second")
    await_names(observer, "first", "second")
    assert len(cluster.seen(NODES.path, watch=False)) == 1


@pytest.mark.parametrize("line", [b"not json\n", b"[]\n", b'{"type":"ADDED"}\n', b'{"type":"ODD","object":{}}\n'])
def test_invalid_events_lead_to_a_new_list(cluster: FakeApiserver, observer: Observer, line: bytes) -> None:
    start(observer)
    await_watch(cluster)
    cluster.say(NODES.path, line)
    await_condition(lambda: len(cluster.seen(NODES.path, watch=False)) == 2, 120, "a second list")
    cluster.put(NODES.path, "after")
    await_names(observer, "after")


def test_an_expired_resource_version_leads_to_a_new_list(cluster: FakeApiserver, observer: Observer) -> None:
    cluster.put(NODES.path, "stays")
    cluster.put(NODES.path, "goes")
    start(observer)
    await_watch(cluster)
    cluster.stall(NODES.path)
    cluster.delete(NODES.path, "goes")
    cluster.put(NODES.path, "comes")
    cluster.compact()
    cluster.cut(NODES.path)
    await_names(observer, "stays", "comes")
    assert len(cluster.seen(NODES.path, watch=False)) == 2


@pytest.mark.parametrize(
    ("code", "reason"), [(410, "Expired"), (504, "Timeout"), (400, "BadRequest"), (404, "NotFound")]
)
def test_a_watch_refused_with_410_leads_to_a_new_list(
    cluster: FakeApiserver, observer: Observer, code: int, reason: str
) -> None:
    start(observer)
    await_watch(cluster)
    cluster.refusals[NODES.path] = [refusal(code, reason)]
    cluster.say(NODES.path, END)
    cluster.put(NODES.path, "after")
    await_names(observer, "after")
    await_condition(lambda: len(cluster.seen(NODES.path, watch=False)) > 1, 120, "a second list")


def test_a_busy_apiserver_is_watched_again_from_the_same_version(cluster: FakeApiserver, observer: Observer) -> None:
    start(observer)
    await_watch(cluster)
    cluster.refusals[NODES.path] = [refusal(429, "TooManyRequests"), refusal(500, "InternalError")]
    cluster.cut(NODES.path)
    cluster.put(NODES.path, "after")
    await_names(observer, "after")
    assert len(cluster.seen(NODES.path, watch=False)) == 1


def test_without_changes_there_are_no_requests(
    cluster: FakeApiserver, observer: Observer, connection: Connection
) -> None:
    start(observer)
    for path in CORE:
        await_watch(cluster, path)
    before = connection.requests
    assert not observer.wait(0.0, 0.0, timeout=0.3)
    assert connection.requests == before
    newer = 4  # those of resource.k8s.io
    # A list and a watch for each served kind, a list for each that an old cluster does not serve, and none for those
    # without a definition.
    assert before == 2 * len(CORE) + newer


def test_a_watch_requests_bookmarks_and_a_timeout(cluster: FakeApiserver, observer: Observer) -> None:
    start(observer)
    await_watch(cluster)
    (request,) = cluster.seen(NODES.path, watch=True)
    assert request.query["allowWatchBookmarks"] == "true"
    # It ends before it counts as silent, so that an apiserver without bookmarks is not taken for one that is.
    assert 0.6 * SILENCE_SECONDS <= int(request.query["timeoutSeconds"]) <= 0.9 * SILENCE_SECONDS


def test_only_needed_objects_are_requested(cluster: FakeApiserver, observer: Observer) -> None:
    start(observer)
    (pods,) = cluster.seen(PODS.path, watch=False)
    assert pods.query["fieldSelector"] == "status.phase!=Succeeded,status.phase!=Failed"
    (workloads,) = cluster.seen(DEPLOYMENTS.path, watch=False)
    assert workloads.query["labelSelector"] == "plimsoll.dev/workspace"
    (definitions,) = cluster.seen(DEFINITIONS.path, watch=False)
    assert "PartialObjectMetadataList" in definitions.accept


@pytest.mark.parametrize(("code", "reason"), [(401, "Unauthorized"), (403, "Forbidden")])
def test_missing_permissions_are_an_error_at_once(
    cluster: FakeApiserver, observer: Observer, code: int, reason: str
) -> None:
    cluster.refusals[NODES.path] = [refusal(code, reason)] * 100
    observer.start()
    with pytest.raises(RequestError, match=reason) as caught:
        observer.wait_synced(120)
    assert caught.value.hint


def test_an_unreachable_server_is_an_error_at_once(connection: Connection) -> None:
    connection.server = "http://127.0.0.1:9"
    observer = Observer(connection)
    observer.start()
    try:
        with pytest.raises(ConnectionFailedError, match="cannot be reached"):
            observer.wait_synced(120)
    finally:
        observer.stop()


def test_the_last_known_state_stays_in_use_with_a_warning(cluster: FakeApiserver, observer: Observer) -> None:
    cluster.put(NODES.path, "n")
    start(observer)
    await_watch(cluster)
    cluster.refusals[NODES.path] = [refusal(403, "Forbidden")] * 3
    cluster.cut(NODES.path)
    await_condition(lambda: any("Node: the watch is broken" in each for each in observer.snapshot().warnings), 120)
    assert names(observer) == ["n"]
    await_condition(lambda: not any("broken" in each for each in observer.snapshot().warnings), 120)


def test_stop_ends_every_thread(observer: Observer) -> None:
    start(observer)
    assert any(thread.name.startswith("watch ") for thread in threading.enumerate())
    observer.stop()
    assert not any(thread.name.startswith("watch ") for thread in threading.enumerate())
