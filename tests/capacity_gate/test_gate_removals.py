"""A capacity gate is removed when the pod's GPUs are available and its queue admits it, and not before."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.model import GateRemoval, ObjectKey
from plimsoll.model.api import CAPACITY_GATE, GATE_REMOVED_REASON
from plimsoll.model.cluster import Pod
from plimsoll.model.kai import PodGroup, Queue
from plimsoll.plan.demand import DemandPlanner
from plimsoll.plan.requests import gate_removals
from tests.builders import NC24, a_node, a_node_pool, a_snapshot, a_waiting_pod
from tests.queues.manifests import amounts, queue

POOL = a_node_pool("gpu", [NC24])


def a_gated_pod(name: str = "p", *, gates: tuple[str, ...] = (CAPACITY_GATE,), **fields: Any) -> Pod:
    fields.setdefault("gpu_fraction", "0.5")
    pod = a_waiting_pod(name, reason="SchedulingGated", **fields)
    return pod.model_copy(update={"scheduling_gates": gates})


def ungated(*objects: Any) -> list[str]:
    snapshot = a_snapshot(*objects, nap=True)
    return [removal.key.name for removal in gate_removals(snapshot, DemandPlanner().plan(snapshot).demands)]


def gpu_node(name: str = "n", **fields: Any) -> Any:
    return a_node(name, allocatable=1, **fields)


def test_a_gated_pod_is_demand() -> None:
    snapshot = a_snapshot(POOL, a_gated_pod(), nap=True)
    plan = DemandPlanner().plan(snapshot)
    assert len(plan.nodes) == 1
    assert gate_removals(snapshot, plan.demands) == ()


def test_a_gate_is_removed_when_its_gpu_is_available() -> None:
    snapshot = a_snapshot(POOL, gpu_node(), a_gated_pod(), nap=True)
    key = ObjectKey(api_version="v1", kind="Pod", namespace="team", name="p")
    assert gate_removals(snapshot, DemandPlanner().plan(snapshot).demands) == (
        GateRemoval(key=key, uid="uid-p", message="its GPUs are free on n"),
    )


@pytest.mark.parametrize(
    "node", [gpu_node(ready=False), gpu_node(cordoned=True), a_node("n", count=None, product=None)]
)
def test_gpus_of_a_node_without_room_for_pods_are_not_available(node: Any) -> None:
    assert ungated(POOL, node, a_gated_pod()) == []


def test_no_more_gates_are_removed_than_there_is_room_for() -> None:
    pods = [a_gated_pod(name, gpu_fraction="0.6") for name in ("a", "b")]
    assert len(ungated(POOL, gpu_node(), *pods)) == 1


def released(pod: Pod) -> Pod:
    annotations = {**pod.annotations, GATE_REMOVED_REASON: "its GPUs are free on n"}
    return pod.model_copy(update={"annotations": annotations, "scheduling_gates": ()})


def test_a_pod_whose_gate_was_just_removed_keeps_its_place() -> None:
    first = released(a_gated_pod("a", gpu_fraction="0.6"))
    assert ungated(POOL, gpu_node(), first, a_gated_pod("b", gpu_fraction="0.6")) == []
    assert ungated(POOL, gpu_node(), first, a_gated_pod("b", gpu_fraction="0.4")) == ["b"]


@given(
    st.integers(0, 4), st.lists(st.sampled_from(["gated", "released", "bound"]), max_size=7), st.permutations("abcdefg")
)
def test_of_equal_pods_released_ones_have_the_first_places(nodes: int, states: list[str], names: list[str]) -> None:
    """Whatever their names, and although no scheduler has looked at the released ones."""
    pods: list[Pod] = []
    for name, state in zip(names, states, strict=False):
        pod, bound = a_gated_pod(name, gpu_fraction="0.6"), sum(bool(pod.node_name) for pod in pods)
        if state == "released":
            pod = released(pod)
        elif state == "bound" and bound < nodes:
            pod = a_waiting_pod(name, gpu_fraction="0.6", node=f"n{bound}", reason="")
        pods.append(pod)
    left = nodes - sum(bool(pod.node_name) or not pod.scheduling_gates for pod in pods)
    waiting = sum(bool(pod.scheduling_gates) for pod in pods)
    removed = ungated(POOL, *(gpu_node(f"n{number}") for number in range(nodes)), *pods)
    assert len(removed) == max(0, min(left, waiting))


def test_a_released_pod_with_other_needs_keeps_gates_that_could_take_its_place() -> None:
    large, small = released(a_gated_pod("z", gpu_fraction="0.9")), a_gated_pod("a", gpu_fraction="0.5")
    assert ungated(POOL, gpu_node(), released(a_gated_pod("b", gpu_fraction="0.5")), small, large) == []


def test_the_gate_stays_if_the_queue_would_not_admit_the_pod() -> None:
    tree = Queue.read(queue("research", gpu=amounts(0, 0.4)))
    assert ungated(POOL, gpu_node(), tree, a_gated_pod(queue="research")) == []
    assert ungated(POOL, gpu_node(), Queue.read(queue("research")), a_gated_pod(queue="research")) == ["p"]


def test_gates_of_a_gang_are_removed_together() -> None:
    group = PodGroup.read({"metadata": {"name": "g", "namespace": "team"}, "spec": {"minMember": 2}})
    pods = [a_gated_pod(name, gpu_fraction="0.6", pod_group_name="g") for name in ("a", "b")]
    assert ungated(POOL, group, gpu_node("n1"), *pods) == []
    assert ungated(POOL, group, gpu_node("n1"), gpu_node("n2"), *pods) == ["a", "b"]


@pytest.mark.parametrize("gone", [{"deleting": True}, {"phase": "Succeeded"}], ids=["terminating", "finished"])
def test_a_former_member_is_not_one_of_the_gang(gone: dict[str, Any]) -> None:
    group = PodGroup.read({"metadata": {"name": "g", "namespace": "team"}, "spec": {"minMember": 2}})
    pods = [a_gated_pod(name, gpu_fraction="0.6", pod_group_name="g") for name in ("a", "b")]
    former = a_waiting_pod("former", gpu_fraction="0.1", pod_group_name="g", node="n0", **gone)
    assert ungated(POOL, group, gpu_node("n1"), *pods, former) == []


def test_gates_of_others_are_not_removed() -> None:
    assert ungated(POOL, gpu_node(), a_gated_pod(gates=("example.com/wait",))) == []
    assert ungated(POOL, gpu_node(), a_gated_pod(gates=(CAPACITY_GATE, "example.com/wait"))) == []


def test_a_pod_whose_demand_is_not_planned_loses_its_gate() -> None:
    assert ungated(POOL, a_gated_pod(scheduler="another")) == ["p"]


def test_a_pod_with_an_invalid_request_keeps_its_gate_and_is_refused() -> None:
    assert ungated(POOL, gpu_node(), a_gated_pod(gpu_fraction="much")) == []


def test_a_terminating_pod_is_not_changed() -> None:
    assert ungated(POOL, gpu_node(), a_gated_pod(deleting=True)) == []


def a_whole_pod(name: str, gpus: int, **fields: Any) -> Pod:
    pod = a_waiting_pod(name, reason="SchedulingGated", gpus=gpus, queue="team", **fields)
    return pod.model_copy(update={"scheduling_gates": (CAPACITY_GATE,)})


def test_gates_of_whole_gpu_pods_are_removed_when_the_queue_admits_them() -> None:
    team = Queue.read(queue("team", gpu=amounts(0, 4)))
    fits, fits_not = a_whole_pod("fits", 3, priority=75), a_whole_pod("fits-not", 2)
    snapshot = a_snapshot(POOL, team, fits, fits_not, nap=True)
    [demand] = DemandPlanner().plan(snapshot).demands
    assert list(demand.kept_out) == ["uid-fits-not"]
    assert str(demand.kept_out["uid-fits-not"]).startswith("OverLimit")
    assert "wholeGpus" in demand.kept_out_reasons[0]
    assert [removal.key.name for removal in gate_removals(snapshot, [demand])] == ["fits"]
    assert ungated(POOL, fits, fits_not) == ["fits", "fits-not"]  # no queues: nothing keeps them out
