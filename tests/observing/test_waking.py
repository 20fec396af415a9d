"""A change starts a round only if it can affect a plan; other changes are stored."""

from typing import Any

import pytest

from plimsoll.labels import DO_NOT_DISRUPT
from plimsoll.observe.cluster import LAST_APPLIED, NODES, PODS, QUEUES, WORKSPACES, Kind, Store, request_events


def a_raw(**fields: Any) -> dict[str, Any]:
    metadata = {"name": "x", "namespace": "default", "uid": "u", "resourceVersion": "1"}
    return {"metadata": metadata | fields.pop("metadata", {}), **fields}


def a_node(**fields: Any) -> dict[str, Any]:
    beat = fields.pop("beat", "2026-01-01T00:00:00Z")
    ready = {"type": "Ready", "status": fields.pop("ready", "True"), "lastHeartbeatTime": beat}
    return a_raw(status={"conditions": [ready]}, **fields)


def a_pod(**fields: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "env": [], "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    return a_raw(**({"spec": {"containers": [container]}} | fields))


def a_workspace(**fields: Any) -> dict[str, Any]:
    inference = {"preset": {"name": "phi-4"}, "replicas": 1}
    return a_raw(
        **({"spec": {"resource": {"labelSelector": {"matchLabels": {"a": "b"}}}, "inference": inference}} | fields)
    )


def a_refusal(**fields: Any) -> dict[str, Any]:
    source = {"component": "karpenter"}
    return a_raw(involvedObject={"kind": "Pod", "uid": "u"}, reason="FailedScheduling", source=source, **fields)


REQUEST_EVENTS = request_events("plimsoll-triggers")


def put(store: Store[Any], raw: dict[str, Any]) -> bool:
    key, entry = store.read(raw)
    return store.put(key, entry)


UNCHANGED = [
    pytest.param(NODES, a_node(), a_node(metadata={"resourceVersion": "2"}), id="the resource version alone"),
    pytest.param(NODES, a_node(), a_node(beat="2026-01-01T00:05:00Z"), id="a heartbeat"),
    pytest.param(
        NODES,
        a_node(metadata={"labels": {"nvidia.com/gfd.timestamp": "1"}}),
        a_node(metadata={"labels": {"nvidia.com/gfd.timestamp": "2"}}),
        id="a run of GPU Feature Discovery",
    ),
    pytest.param(NODES, a_node(), a_node(metadata={"annotations": {"a": "b"}}), id="a node's annotation"),
    pytest.param(PODS, a_pod(), a_pod(metadata={"annotations": {"example.com/note": "b"}}), id="a pod's note"),
]
QUIET = [
    pytest.param(
        NODES,
        a_node(),
        a_node(metadata={"annotations": {DO_NOT_DISRUPT: "true"}}),
        id="the annotation that keeps a node",
    ),
    pytest.param(
        WORKSPACES,
        a_workspace(),
        a_workspace(status={"targetNodeCount": 3}, metadata={"resourceVersion": "2"}),
        id="our own status",
    ),
    pytest.param(QUEUES, a_raw(spec={}), a_raw(spec={}, status={"allocated": {"gpu": "3"}}), id="a queue's account"),
    pytest.param(
        REQUEST_EVENTS,
        a_refusal(message="no", lastTimestamp="2026-01-01T00:00:00Z"),
        a_refusal(message="no", lastTimestamp="2026-01-01T00:05:00Z", count=2),
        id="an autoscaler that repeats itself",
    ),
]
WAKING = [
    pytest.param(NODES, a_node(), a_node(ready="False"), id="a node that is no longer ready"),
    pytest.param(NODES, a_node(), a_node(metadata={"labels": {"pool": "b"}}), id="a label"),
    pytest.param(NODES, a_node(), a_node(spec={"unschedulable": True}), id="a cordon"),
    pytest.param(WORKSPACES, a_workspace(), a_workspace(metadata={"generation": 2}), id="a new generation"),
    pytest.param(PODS, a_pod(), a_pod(status={"phase": "Running"}), id="a pod's phase"),
    pytest.param(WORKSPACES, a_workspace(), a_workspace(spec={"resource": {"count": "x"}}), id="no longer readable"),
    pytest.param(PODS, a_pod(), a_pod(spec={"containers": [{"name": "c"}]}), id="no longer of interest"),
]


@pytest.mark.parametrize(("kind", "old", "new"), QUIET)
def test_irrelevant_changes_start_no_round(kind: Kind[Any], old: dict[str, Any], new: dict[str, Any]) -> None:
    store = Store(kind)
    assert put(store, old)
    before = store.version
    assert not put(store, new)
    assert store.version > before
    key, entry = store.read(old)
    assert not store.replace({key: entry})


@pytest.mark.parametrize(("kind", "old", "new"), UNCHANGED)
def test_fields_that_are_not_planned_on_change_no_value(
    kind: Kind[Any], old: dict[str, Any], new: dict[str, Any]
) -> None:
    store = Store(kind)
    put(store, old)
    (before,), version = store.values(), store.version
    assert not put(store, new)
    key, entry = store.read(new)
    assert not store.replace({key: entry})
    (after,) = store.values()
    assert after is before
    assert store.version == version


def test_a_workspace_keeps_its_newest_resource_version() -> None:
    store = Store(WORKSPACES)
    put(store, a_workspace())
    assert not put(store, a_workspace(metadata={"resourceVersion": "2"}))
    (workspace,) = store.values()
    assert workspace.resource_version == "2"


@pytest.mark.parametrize(("kind", "old", "new"), WAKING)
def test_relevant_changes_start_a_round(kind: Kind[Any], old: dict[str, Any], new: dict[str, Any]) -> None:
    store = Store(kind)
    put(store, old)
    assert put(store, new)


def test_fields_that_start_no_round_are_updated() -> None:
    store = Store(WORKSPACES)
    put(store, a_workspace())
    put(store, a_workspace(status={"targetNodeCount": 3}))
    (workspace,) = store.values()
    assert workspace.status.target_node_count == 3


def test_a_new_list_reports_added_and_removed_objects() -> None:
    store = Store(NODES)
    put(store, a_node())
    assert store.replace({})
    assert not store.replace({})
    assert store.replace(dict([store.read(a_node())]))  # type: ignore[list-item]


ASKING = [
    pytest.param({"spec": {"containers": [{"resources": {"requests": {"nvidia.com/gpu": "1"}}}]}}, id="devices"),
    pytest.param({"spec": {"containers": [{"resources": {"limits": {"amd.com/gpu": "1"}}}]}}, id="other devices"),
    pytest.param(
        {"spec": {"containers": [], "initContainers": [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}]}},
        id="devices at the start",
    ),
    pytest.param({"metadata": {"annotations": {"gpu-fraction": "0.5"}}, "spec": {"containers": []}}, id="a fraction"),
    pytest.param({"metadata": {"annotations": {"gpu-memory": "2000"}}, "spec": {"containers": []}}, id="GPU memory"),
    pytest.param({"metadata": {"labels": {"plimsoll.dev/workspace": "w"}}, "spec": {"containers": []}}, id="ours"),
]
NOT_ASKING = [
    pytest.param(
        {"spec": {"containers": [{"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]}}, id="a CPU pod"
    ),
    pytest.param({"spec": {"containers": [{"resources": {"limits": {"hugepages-2Mi": "4Mi"}}}]}}, id="huge pages"),
    pytest.param({"spec": {"containers": [{"name": "c"}]}}, id="best effort"),
]


@pytest.mark.parametrize("fields", ASKING)
def test_pods_that_request_gpus_and_our_own_are_kept(fields: dict[str, Any]) -> None:
    store = Store(PODS)
    assert put(store, a_pod(**fields))
    assert len(store.values()) == 1


@pytest.mark.parametrize("fields", NOT_ASKING)
def test_other_pods_are_not_stored(fields: dict[str, Any]) -> None:
    store = Store(PODS)
    assert not put(store, a_pod(**fields))
    assert store.values() == ()


def test_only_the_requests_of_a_container_are_stored() -> None:
    store = Store(PODS)
    put(store, a_pod(metadata={"annotations": {LAST_APPLIED: "{}", "gpu-fraction": "0.5"}}))
    (pod,) = store.values()
    assert pod.containers == ({"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}},)
    assert pod.annotations == {"gpu-fraction": "0.5"}
    assert pod.devices("nvidia.com/gpu") == 1
