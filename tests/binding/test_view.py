"""The binder's view of the cluster: its watches, and its own writes that they do not show yet."""

from collections.abc import Iterator

import pytest

from plimsoll.bind import ClusterCache
from plimsoll.model.cluster import Pod
from tests.awaiting import await_condition
from tests.binding.cluster import SETTINGS
from tests.observing.apiserver import FakeApiserver, listening

NODES, PODS = "/api/v1/nodes", "/api/v1/pods"


class Clock:
    """A clock that advances only when it is set."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def apiserver() -> FakeApiserver:
    apiserver = FakeApiserver()
    apiserver.serve(NODES, PODS)
    apiserver.put(PODS, "a", "team", spec={"containers": []})
    return apiserver


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def view(apiserver: FakeApiserver, clock: Clock) -> Iterator[ClusterCache]:
    with listening(apiserver) as connection:
        view = ClusterCache(connection, SETTINGS, clock)
        view.start()
        view.wait_synced(timeout=120)
        yield view
        view.stop()


def nodes(view: ClusterCache) -> dict[str, str]:
    """The node of each pod, by name."""
    return {pod.name: pod.node_name for pod in view.pods()}


def written(pod: Pod, version: int) -> Pod:
    return pod.model_copy(update={"node_name": "n1", "resource_version": str(version)})


def test_a_write_counts_until_the_watch_shows_a_newer_version(view: ClusterCache, apiserver: FakeApiserver) -> None:
    (pod,) = view.pods()
    view.note(written(pod, apiserver.version))
    assert nodes(view) == {"a": "n1"}
    apiserver.put(PODS, "a", "team", spec={"containers": [], "nodeName": "n2"})
    await_condition(lambda: nodes(view) == {"a": "n2"})


def test_a_pod_deleted_after_the_write_is_missing(view: ClusterCache, apiserver: FakeApiserver) -> None:
    (pod,) = view.pods()
    view.note(written(pod, apiserver.version + 1))
    apiserver.delete(PODS, "a")
    await_condition(lambda: nodes(view) == {})


def test_a_created_pod_counts_before_the_watch_shows_it(
    view: ClusterCache, apiserver: FakeApiserver, clock: Clock
) -> None:
    made = view.pods()[0].model_copy(update={"name": "new", "resource_version": str(apiserver.version + 1)})
    view.note(made, new=True)
    assert set(nodes(view)) == {"a", "new"}
    clock.now = 31.0
    assert set(nodes(view)) == {"a"}


@pytest.mark.usefixtures("view")
def test_only_nodes_and_pods_are_watched(apiserver: FakeApiserver) -> None:
    assert {request.path for request in apiserver.requests} == {NODES, PODS}
