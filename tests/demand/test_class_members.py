"""The pods of each class, updated incrementally as pods and PodGroups change, equal those of a new computation."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.cluster.pods import pod_changes
from plimsoll.labels import GPU_PRODUCT, ZONE
from plimsoll.model.cluster import Pod
from plimsoll.model.kai import PodGroup
from plimsoll.model.meta import expression
from plimsoll.plan.classes import Classes
from plimsoll.plan.demand import DemandPlanner
from tests.builders import a_snapshot, a_waiting_pod, an_environment

QUEUES = ("left", "right", "")


def a_group(name: str, queue: str) -> PodGroup:
    return PodGroup.read({"metadata": {"name": name, "namespace": "default"}, "spec": {"queue": queue, "minMember": 2}})


@st.composite
def pods(draw: st.DrawFn) -> Pod:
    pod = a_waiting_pod(draw(st.sampled_from("abcd")), gpu_fraction="0.5", queue=draw(st.sampled_from(QUEUES)))
    group = {"pod-group-name": draw(st.sampled_from(["one", "two"]))}
    changed = {"annotations": pod.annotations | group, "namespace": "default"}
    return pod.model_copy(update=changed | ({"node_name": "node"} if draw(st.integers(0, 3)) == 0 else {}))


def groups() -> st.SearchStrategy[PodGroup]:
    return st.builds(a_group, st.sampled_from(["one", "two"]), st.sampled_from(QUEUES))


@given(st.lists(st.tuples(st.lists(pods(), max_size=3), st.lists(groups(), max_size=2)), min_size=2, max_size=6))
def test_incremental_classes_equal_newly_computed_ones(rounds: list[tuple[list[Pod], list[PodGroup]]]) -> None:
    kept, before = Classes(), None
    held_pods: dict[str, Pod] = {}
    held_groups: dict[str, PodGroup] = {}
    for changed_pods, changed_groups in rounds:
        # Values that exist are replaced, others are added or removed.
        for pod in changed_pods:
            held_pods.pop(pod.name, None) or held_pods.update({pod.name: pod})
        for group in changed_groups:
            held_groups.pop(group.name, None) or held_groups.update({group.name: group})
        snapshot = a_snapshot(*held_pods.values(), *held_groups.values())
        changes = None if before is None else pod_changes(before.pods, snapshot.pods)
        found, fresh = kept.update(snapshot, changes), Classes().update(snapshot, None)
        assert {name: (each.classes, each.pods) for name, each in found.items()} == {
            name: (each.classes, each.pods) for name, each in fresh.items()
        }
        assert kept.groups == {group.key: group for group in snapshot.pod_groups}
        before = snapshot


@pytest.mark.parametrize(
    ("placed", "name"),
    [
        ({}, "team"),
        ({"selector": {GPU_PRODUCT: "NVIDIA-L4"}}, "team-nvidia-l4"),
        ({"affinity": [expression(GPU_PRODUCT, "In", "NVIDIA-L4")]}, "team-nvidia-l4"),
        ({"affinity": [expression(GPU_PRODUCT, "In", "NVIDIA-L4", "NVIDIA-A10G")]}, "team"),
        ({"affinity": [expression(GPU_PRODUCT, "NotIn", "NVIDIA-L4")]}, "team"),
        ({"affinity": [expression(ZONE, "In", "a")]}, "team"),
    ],
)
def test_a_demand_has_the_name_of_its_queue_and_of_the_only_product(placed: dict[str, Any], name: str) -> None:
    snapshot = a_snapshot(a_waiting_pod(gpu_fraction="0.5", queue="team", **placed))
    [demand] = DemandPlanner().plan(snapshot).demands
    assert demand.name.rpartition("-")[0] == name


def test_demands_of_two_schedulers_have_two_names() -> None:
    pods = [a_waiting_pod(name, gpu_fraction="0.5", queue="team", scheduler=name) for name in ("one", "other")]
    snapshot = a_snapshot(*pods, environment=an_environment(demand={"schedulers": ["one", "other"]}))
    assert len({demand.name for demand in DemandPlanner().plan(snapshot).demands}) == 2
