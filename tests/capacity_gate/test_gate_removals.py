"""A gate is lifted where the pod's GPUs are there and its queue admits it, and not before."""

from typing import Any

import pytest

from plimsoll.model import GateRemoval, ObjectKey
from plimsoll.model.api import CAPACITY_GATE, LIFTED
from plimsoll.model.cluster import Pod
from plimsoll.model.kai import PodGroup, Queue
from plimsoll.plan.demand import plan_demand
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
    return [removal.key.name for removal in gate_removals(snapshot, plan_demand(snapshot).demands)]


def gpu_node(name: str = "n", **fields: Any) -> Any:
    return a_node(name, allocatable=1, **fields)


def test_a_gated_pod_is_demand() -> None:
    snapshot = a_snapshot(POOL, a_gated_pod(), nap=True)
    plan = plan_demand(snapshot)
    assert len(plan.nodes) == 1
    assert gate_removals(snapshot, plan.demands) == ()


def test_it_is_lifted_once_its_gpu_is_there() -> None:
    snapshot = a_snapshot(POOL, gpu_node(), a_gated_pod(), nap=True)
    key = ObjectKey(api_version="v1", kind="Pod", namespace="team", name="p")
    assert gate_removals(snapshot, plan_demand(snapshot).demands) == (
        GateRemoval(key=key, uid="uid-p", message="its GPUs are free on n"),
    )


@pytest.mark.parametrize(
    "node", [gpu_node(ready=False), gpu_node(cordoned=True), a_node("n", count=None, product=None)]
)
def test_a_node_that_takes_no_pod_is_not_there(node: Any) -> None:
    assert ungated(POOL, node, a_gated_pod()) == []


def test_no_more_are_lifted_than_there_is_room_for() -> None:
    pods = [a_gated_pod(name, gpu_fraction="0.6") for name in ("a", "b")]
    assert len(ungated(POOL, gpu_node(), *pods)) == 1


def test_a_pod_that_was_just_ungated_keeps_its_place() -> None:
    first = a_gated_pod("a", gates=(), gpu_fraction="0.6")
    marked = first.model_copy(update={"annotations": {**first.annotations, LIFTED: "its GPUs are free on n"}})
    assert ungated(POOL, gpu_node(), marked, a_gated_pod("b", gpu_fraction="0.6")) == []
    assert ungated(POOL, gpu_node(), marked, a_gated_pod("b", gpu_fraction="0.4")) == ["b"]


@pytest.mark.parametrize("late", ["a", "z"])
def test_pods_that_were_just_ungated_keep_their_places_whatever_their_names(late: str) -> None:
    made = [a_gated_pod(f"m{number}", gates=(), gpu_fraction="0.6") for number in range(4)]
    marked = [each.model_copy(update={"annotations": {**each.annotations, LIFTED: "free"}}) for each in made]
    nodes = [gpu_node(f"n{number}") for number in range(4)]
    assert ungated(POOL, *nodes, *marked, a_gated_pod(late, gpu_fraction="0.6")) == []


def test_a_queue_that_would_not_admit_it_keeps_it() -> None:
    tree = Queue.read(queue("research", gpu=amounts(0, 0.4)))
    assert ungated(POOL, gpu_node(), tree, a_gated_pod(queue="research")) == []
    assert ungated(POOL, gpu_node(), Queue.read(queue("research")), a_gated_pod(queue="research")) == ["p"]


def test_a_gang_is_lifted_whole() -> None:
    group = PodGroup.read({"metadata": {"name": "g", "namespace": "team"}, "spec": {"minMember": 2}})
    pods = [a_gated_pod(name, gpu_fraction="0.6", pod_group_name="g") for name in ("a", "b")]
    assert ungated(POOL, group, gpu_node("n1"), *pods) == []
    assert ungated(POOL, group, gpu_node("n1"), gpu_node("n2"), *pods) == ["a", "b"]


def test_gates_of_others_are_theirs() -> None:
    assert ungated(POOL, gpu_node(), a_gated_pod(gates=("example.com/wait",))) == []
    assert ungated(POOL, gpu_node(), a_gated_pod(gates=(CAPACITY_GATE, "example.com/wait"))) == []


def test_a_pod_whose_demand_is_not_planned_is_not_held() -> None:
    assert ungated(POOL, a_gated_pod(scheduler="another")) == ["p"]


def test_a_pod_that_cannot_be_read_is_held_and_refused() -> None:
    assert ungated(POOL, gpu_node(), a_gated_pod(gpu_fraction="much")) == []


def test_a_pod_that_goes_is_left_alone() -> None:
    assert ungated(POOL, gpu_node(), a_gated_pod(deleting=True)) == []


def a_whole_pod(name: str, gpus: int, **fields: Any) -> Pod:
    pod = a_waiting_pod(name, reason="SchedulingGated", gpus=gpus, queue="team", **fields)
    return pod.model_copy(update={"scheduling_gates": (CAPACITY_GATE,)})


def test_whole_gpus_are_lifted_when_the_queue_admits_them_and_kept_out_otherwise() -> None:
    team = Queue.read(queue("team", gpu=amounts(0, 4)))
    fits, fits_not = a_whole_pod("fits", 3, priority=75), a_whole_pod("fits-not", 2)
    snapshot = a_snapshot(POOL, team, fits, fits_not, nap=True)
    [demand] = plan_demand(snapshot).demands
    assert list(demand.kept_out) == ["uid-fits-not"]
    assert demand.kept_out["uid-fits-not"].startswith("OverLimit")
    assert "wholeGpus" in demand.kept_out_reasons[0]
    assert [removal.key.name for removal in gate_removals(snapshot, [demand])] == ["fits"]
    assert ungated(POOL, fits, fits_not) == ["fits", "fits-not"]  # no queues: nothing keeps them out
