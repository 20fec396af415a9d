"""Loads and usage of queues, updated incrementally as pods and nodes change, equal those of a new computation."""

import gc

from hypothesis import given
from hypothesis import strategies as st

from plimsoll.cluster.pods import pod_changes
from plimsoll.cluster.queues import Amount, IncrementalUsage, QueuedPods, queue_usage
from plimsoll.labels import QUEUE
from plimsoll.model.cluster import Node, Pod
from tests.builders import A100_MIB, V100_MIB, a_node, a_queue, a_snapshot, a_waiting_pod

NODES = ("one", "two")


@st.composite
def pods(draw: st.DrawFn) -> Pod:
    asks = draw(
        st.sampled_from(
            [
                {"gpu-fraction": "0.5"},
                {"gpu-memory": "8192"},
                {"gpu-memory": "100", "gpu-fraction-num-devices": "2"},
                {},
            ]
        )
    )
    devices = {"limits": {"nvidia.com/gpu": draw(st.sampled_from(["1", "2", "much"]))}} if not asks else {}
    return Pod.read(
        {
            "metadata": {
                "name": draw(st.sampled_from("abcdef")),
                "namespace": "team",
                "labels": {QUEUE: draw(st.sampled_from(["left", "right", ""]))},
                "annotations": asks,
            },
            "spec": {
                "nodeName": draw(st.sampled_from([*NODES, "gone", ""])),
                "schedulerName": draw(st.sampled_from(["kai-scheduler", "default-scheduler"])),
                "priority": draw(st.sampled_from([0, 100])),
                "containers": [{"name": "main", "resources": devices}],
            },
            "status": {"phase": draw(st.sampled_from(["Running", "Succeeded"]))},
        }
    )


def nodes() -> st.SearchStrategy[Node]:
    return st.builds(a_node, st.sampled_from(NODES), memory=st.sampled_from([A100_MIB, V100_MIB, None]))


@given(st.lists(st.tuples(st.lists(pods(), max_size=4), st.lists(nodes(), max_size=2)), min_size=2, max_size=5))
def test_incremental_loads_equal_newly_computed_ones(rounds: list[tuple[list[Pod], list[Node]]]) -> None:
    kept, before = QueuedPods(), None
    held_pods: dict[str, Pod] = {}
    held_nodes: dict[str, Node] = {}
    for changed_pods, changed_nodes in rounds:
        # What is given again replaces the older one, or goes where it is given twice.
        for pod in changed_pods:
            held_pods.pop(pod.name, None) or held_pods.update({pod.name: pod})
        for node in changed_nodes:
            held_nodes[node.name] = node
        snapshot = a_snapshot(*held_nodes.values(), *held_pods.values())
        changes = None if before is None else pod_changes(before.pods, snapshot.pods)
        kept.update(snapshot, changes)
        fresh = QueuedPods()
        fresh.update(snapshot)
        assert (kept.loads, kept.waiting) == (fresh.loads, fresh.waiting)
        before = snapshot


@given(st.lists(st.tuples(st.lists(pods(), max_size=4), st.lists(nodes(), max_size=2)), min_size=2, max_size=5))
def test_incremental_usage_equals_newly_computed_usage(rounds: list[tuple[list[Pod], list[Node]]]) -> None:
    followed = IncrementalUsage()
    held_pods: dict[str, Pod] = {}
    held_nodes: dict[str, Node] = {}
    queues = (a_queue("root", parent=""), a_queue("left", quota=1), a_queue("right", limit=2))
    for changed_pods, changed_nodes in rounds:
        held_pods |= {pod.name: pod for pod in changed_pods}
        held_nodes |= {node.name: node for node in changed_nodes}
        snapshot = a_snapshot(*queues, *held_nodes.values(), *held_pods.values())
        found, fresh = followed.of(snapshot), queue_usage(snapshot)
        for name in ("total", "running", "pending", "allocated", "non_preemptible", "waiting", "fair", "warnings"):
            assert getattr(found, name) == getattr(fresh, name), name


def test_pods_that_did_not_change_are_not_read_again() -> None:
    pods = [a_waiting_pod(name, queue="q", gpu_memory="1000", node="n") for name in "ab"]
    followed, queue, node = IncrementalUsage(), a_queue("q", parent=""), a_node("n")
    before = followed.of(a_snapshot(node, queue, *pods)).running
    after = followed.of(a_snapshot(node, queue, pods[0], a_waiting_pod("c", queue="q", gpu_memory="1000"))).running
    assert after[0] is before[0]
    larger = followed.of(a_snapshot(a_node("n", memory=2 * A100_MIB), queue, pods[0])).running
    assert larger[0].gpu_milli < before[0].gpu_milli, "a share in MiB depends on its node"


def test_requests_of_pods_that_are_gone_are_forgotten() -> None:
    followed, queue, node = IncrementalUsage(), a_queue("q", parent=""), a_node("n")
    before = amounts_in_memory()
    for each in range(1, 200):
        followed.of(a_snapshot(node, queue, a_waiting_pod("a", queue="q", gpu_memory=str(each * 100))))
    assert amounts_in_memory() - before < 10


def amounts_in_memory() -> int:
    return sum(isinstance(each, Amount) for each in gc.get_objects())
