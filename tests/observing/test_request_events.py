"""Events about objects that request nodes are read in the namespace of these objects, wherever that is."""

from typing import Any

import pytest

from plimsoll.kube import Connection
from plimsoll.labels import GROUP
from plimsoll.model.api import TRIGGER_NAMESPACE
from plimsoll.observe.cluster import DEFINITIONS, Observer, read_cluster, request_events
from tests.awaiting import await_condition
from tests.observing.apiserver import FakeApiserver

ENVIRONMENTS = f"/apis/{GROUP}/v1alpha1/environments"
USUAL, ELSEWHERE = request_events(TRIGGER_NAMESPACE).path, request_events("elsewhere").path


def say(cluster: FakeApiserver, path: str, name: str, **fields: Any) -> None:
    said: dict[str, Any] = {"reason": "FailedScheduling", "source": {"component": "karpenter"}, **fields}
    cluster.put(path, name, involvedObject={"kind": "Pod", "uid": f"uid-of-{name}"}, **said)


def declare(cluster: FakeApiserver, namespace: str) -> None:
    cluster.put(ENVIRONMENTS, "prod", spec={"demand": {"namespace": namespace}})


@pytest.fixture
def cluster(cluster: FakeApiserver) -> FakeApiserver:
    cluster.serve(ENVIRONMENTS, ELSEWHERE)
    cluster.put(DEFINITIONS.path, f"environments.{GROUP}")
    return cluster


def heard(observer: Observer) -> list[str]:
    return [event.about_uid for event in observer.snapshot().request_events]


def test_a_refusal_is_observed_at_once(cluster: FakeApiserver, observer: Observer) -> None:
    observer.start()
    observer.wait_synced(120)
    assert heard(observer) == []
    await_condition(lambda: cluster.watching(USUAL), 120)
    say(cluster, USUAL, "refused")
    assert observer.wait(0.0, 1.0, 60), "it starts a round"
    await_condition(lambda: heard(observer) == ["uid-of-refused"], 120)


@pytest.mark.parametrize(
    "fields", [{"reason": "Created"}, {"source": {"component": "kubelet"}}, {"source": {}}, {"source": None}]
)
def test_other_events_of_the_namespace_are_not_kept(
    cluster: FakeApiserver, connection: Connection, fields: dict[str, Any]
) -> None:
    say(cluster, USUAL, "other", **fields)
    say(cluster, USUAL, "refused")
    snapshot = read_cluster(connection)
    assert [event.about_uid for event in snapshot.request_events] == ["uid-of-refused"]
    assert not snapshot.warnings or "skipped" not in " ".join(snapshot.warnings)


def test_the_namespace_is_the_one_of_the_environment(cluster: FakeApiserver, connection: Connection) -> None:
    declare(cluster, "elsewhere")
    say(cluster, ELSEWHERE, "refused")
    say(cluster, USUAL, "of-another")
    assert [event.about_uid for event in read_cluster(connection).request_events] == ["uid-of-refused"]
    assert not cluster.seen(USUAL, watch=False)


def test_the_watch_follows_the_namespace_of_the_environment(cluster: FakeApiserver, observer: Observer) -> None:
    declare(cluster, "elsewhere")
    say(cluster, ELSEWHERE, "first")
    observer.start()
    observer.wait_synced(120)
    await_condition(lambda: heard(observer) == ["uid-of-first"], 120)
    await_condition(lambda: cluster.watching(ELSEWHERE), 120)
    say(cluster, ELSEWHERE, "second")
    await_condition(lambda: heard(observer) == ["uid-of-first", "uid-of-second"], 120)
    say(cluster, USUAL, "back")
    declare(cluster, TRIGGER_NAMESPACE)
    await_condition(lambda: heard(observer) == ["uid-of-back"], 120)


def test_without_the_right_to_events_the_rest_is_observed(cluster: FakeApiserver, connection: Connection) -> None:
    refusal = {"kind": "Status", "code": 403, "reason": "Forbidden", "message": "may not list events"}
    cluster.refusals[USUAL] = [refusal]
    snapshot = read_cluster(connection)
    assert snapshot.request_events == ()
    assert [warning for warning in snapshot.warnings if "may not list events" in warning]
