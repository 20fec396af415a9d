"""No node is requested for a pod before its grace period has passed, or after `waitSeconds` one is requested anyway."""

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from plimsoll.model.cluster import Pod
from plimsoll.model.kai import PodGroup
from tests.builders import a_gpu_node, a_node_pool, a_waiting_pod, an_environment
from tests.demand.plans import only, planned, requests_of

START = datetime(2026, 1, 1, tzinfo=UTC)
POOL = a_node_pool("pool", ("g6.xlarge",))


def at(seconds: int) -> datetime:
    return START + timedelta(seconds=seconds)


def unschedulable(name: str, since: int, fraction: str = "0.9", **more: Any) -> Pod:
    """A pod that became unschedulable this many seconds after the start."""
    pod = a_waiting_pod(name, gpu_fraction=fraction, **more)
    (condition,) = pod.conditions
    time = at(since).strftime("%Y-%m-%dT%H:%M:%SZ")
    message = condition.model_copy(update={"last_transition_time": time})
    return pod.model_copy(update={"conditions": (message,), "creation_timestamp": time})


def test_no_node_is_requested_in_the_grace_period() -> None:
    environment = an_environment(demand={"graceSeconds": 60})
    pods = [unschedulable("early", 0), unschedulable("late", 30)]
    plan = planned(*pods, POOL, environment=environment, now=at(59))
    assert not plan.nodes
    assert only(plan).in_grace == ("uid-early", "uid-late")
    assert plan.next_deadline == at(60).isoformat()
    plan = planned(*pods, POOL, environment=environment, now=at(60))
    assert [node.pods for node in plan.nodes] == [("uid-early",)]
    assert only(plan).in_grace == ("uid-late",)
    assert plan.next_deadline == at(90).isoformat()
    plan = planned(*pods, POOL, environment=environment, now=at(90))
    assert (len(plan.nodes), plan.next_deadline) == (2, "")


def test_without_the_setting_there_is_no_grace_period() -> None:
    assert planned(unschedulable("pod", 0), POOL, now=at(0)).nodes


def test_free_and_requested_nodes_serve_pods_in_the_grace_period() -> None:
    environment = an_environment(demand={"graceSeconds": 60})
    there = planned(unschedulable("pod", 0), a_gpu_node(), POOL, environment=environment, now=at(1))
    assert only(there).on_nodes == {"node": ("uid-pod",)}
    requested = requests_of(planned(unschedulable("other", 0), POOL).nodes)
    plan = planned(unschedulable("pod", 0), POOL, requested=requested, environment=environment, now=at(1))
    assert (plan.nodes, plan.needed) == ((), frozenset({requested[0].name}))
    assert not only(plan).in_grace


def test_a_pod_in_its_grace_period_takes_no_node_from_one_that_waits_longer() -> None:
    """A repeated plan would request a second node."""
    environment = an_environment(demand={"graceSeconds": 60})
    old, new = unschedulable("old", 0), unschedulable("new", 59, "0.95")
    first = planned(old, new, POOL, environment=environment, now=at(61))
    requested = requests_of(first.nodes)
    again = planned(old, new, POOL, requested=requested, environment=environment, now=at(61))
    assert (len(first.nodes), len(again.nodes), again.needed) == (1, 0, frozenset({requested[0].name}))
    assert only(again).in_grace == ("uid-new",)
    small = unschedulable("small", 60, "0.1")
    with_room = planned(old, new, small, POOL, requested=requested, environment=environment, now=at(61))
    assert set(only(with_room).on_requested[requested[0].name]) == {"uid-old", "uid-small"}


def test_nodes_for_other_pods_may_serve_pods_in_the_grace_period() -> None:
    """A node for other pods may serve them; no node is requested for them."""
    environment = an_environment(demand={"graceSeconds": 60})
    pods = [unschedulable("over", 0, "0.5"), unschedulable("within", 50, "0.5")]
    plan = planned(*pods, POOL, environment=environment, now=at(61))
    assert len(plan.nodes) == 1


@pytest.mark.parametrize("more", [{}, {"cpu": "64"}])
def test_a_gang_that_can_start_only_with_pods_in_their_grace_period_waits(more: dict[str, str]) -> None:
    """Even if the others would have a node each."""
    environment = an_environment(demand={"graceSeconds": 60})
    group = PodGroup.read({"metadata": {"name": "job", "namespace": "team"}, "spec": {"minMember": 2}})
    early = unschedulable("early", 0, pod_group_name="job")
    late = unschedulable("late", 50, pod_group_name="job", **more)
    plan = planned(early, late, group, POOL, environment=environment, now=at(61))
    assert not plan.nodes
    assert set(only(plan).in_grace) == {"uid-early", "uid-late"}
    other = unschedulable("other", 0, pod_group_name="job")
    plan = planned(early, late, other, group, POOL, environment=environment, now=at(61))
    assert {uid for node in plan.nodes for uid in node.pods} == {"uid-early", "uid-other"}
    free = planned(early, unschedulable("late", 50, "0.5", pod_group_name="job"), group, POOL,
                   a_gpu_node(instance_type="own"), environment=environment, now=at(61))  # fmt: skip
    assert len(free.nodes) == 1, "the pod in its grace period has a free GPU"


def hard_to_pack(seed: int = 33) -> list[Pod]:
    """Shares of several GPUs with so much CPU that the packing needs one node more than the bound proves."""
    generator = random.Random(seed)
    return [
        unschedulable(
            f"pod-{number:03}",
            0,
            f"0.{generator.choice([3, 4, 5, 6, 7])}",
            cpu=f"{generator.choice([2, 4, 7, 9, 11])}",
            gpu_fraction_num_devices=f"{generator.choice([1, 1, 2, 3])}",
        )
        for number in range(60)
    ]


def test_pods_in_their_grace_period_that_a_gang_does_not_need_take_no_free_gpu() -> None:
    """The gang starts from two pods: the one that waits longer, and one of the others. The free GPUs suffice for these
    and for a single pod."""
    environment = an_environment(demand={"graceSeconds": 60})
    group = PodGroup.read({"metadata": {"name": "job", "namespace": "team"}, "spec": {"minMember": 2}})
    gang = [unschedulable(f"late-{n}", 50, pod_group_name="job") for n in (0, 1)]
    gang.append(unschedulable("early", 0, "0.5", pod_group_name="job"))
    pods = [*gang, unschedulable("single", 0, "0.3"), group, a_gpu_node(gpus=2)]
    plan = planned(*pods, POOL, environment=environment, now=at(60))
    assert not plan.nodes
    placed = {uid for demand in plan.demands for uids in demand.on_nodes.values() for uid in uids}
    assert placed == {"uid-late-0", "uid-early", "uid-single"}
    assert {uid for demand in plan.demands for uid in demand.in_grace} == {"uid-late-1"}


def test_pods_wait_at_most_wait_seconds_for_nodes_that_suffice_by_the_bound() -> None:
    """KAI places the pods, so a pod without a place in the plan may still fit. A pod that is older than all requests
    that it could use gets its own node when the requests are older than `waitSeconds`."""
    pods, pool = hard_to_pack(), a_node_pool("pool", ("g6.12xlarge",))
    first = planned(*pods, pool)
    assert first.gpus > first.least_gpus, "else this shows nothing"
    since = at(600).isoformat()
    requested = [replace(each, since=since) for each in requests_of(first.nodes[: first.least_gpus // 4])]
    environment = an_environment(demand={"waitSeconds": 100})
    early, late = (
        planned(*pods, pool, requested=requested, environment=environment, now=now) for now in (at(700), at(701))
    )
    assert not early.nodes
    assert only(early).awaiting
    assert early.needed == {each.name for each in requested}
    assert late.nodes
    assert not only(late).awaiting
    assert len(late.nodes) + len(requested) <= len(first.nodes)
    younger = [pod.model_copy(update={"creation_timestamp": at(601).isoformat()}) for pod in pods]
    assert not planned(*younger, pool, requested=requested, environment=environment, now=at(10_000)).nodes


def test_nodes_that_are_missing_by_the_bound_are_requested_at_once() -> None:
    pods, pool = hard_to_pack(), a_node_pool("pool", ("g6.12xlarge",))
    first = planned(*pods, pool)
    requested = [
        replace(each, since=at(0).isoformat()) for each in requests_of(first.nodes[: first.least_gpus // 4 - 5])
    ]
    plan = planned(*pods, pool, requested=requested, now=at(1))
    assert 0 < plan.least_gpus <= plan.gpus <= first.gpus - 4 * len(requested)
