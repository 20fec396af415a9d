"""A member of a gang that can never be placed does not count among those that the gang may start with."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.cluster.pools import Room
from plimsoll.model.cluster import Pod
from plimsoll.model.kai import PodGroup
from plimsoll.plan.classes import RefusalReason
from tests.builders import a_node_pool, a_queue, a_waiting_pod, an_environment
from tests.demand.plans import on_new, planned, refused, types
from tests.demand.test_grace import at, unschedulable

L4 = "g6.xlarge"
POOL = a_node_pool("pool", (L4,), limits={"nvidia.com/gpu": 1})
CLOSED = a_node_pool("closed", (L4,), limits={"nvidia.com/gpu": 0}, more_labels={"pool": "closed"})
SMALL = a_node_pool("small", ("g5.xlarge",), more_labels={"pool": "small"})
QUEUES = (a_queue("root", parent=""), a_queue("default-queue"), a_queue("tight", limit=0.5), a_queue("shut", limit=0))

HOPELESS: dict[str, dict[str, Any]] = {
    "more GPUs than a node has": {"gpu_fraction": "0.1", "gpu_fraction_num_devices": "3"},
    "more CPU than a node has": {"gpu_fraction": "0.1", "cpu": "64"},
    "more memory than a GPU has": {"gpu_memory": "90000"},
    "a label that no node has": {"gpu_fraction": "0.1", "selector": {"disk": "ssd"}},
    "a NodePool whose limit is reached": {"gpu_fraction": "0.1", "selector": {"pool": "closed"}},
    "a NodePool that is skipped": {"gpu_fraction": "0.1", "selector": {"pool": "small"}},
    "more than its queue admits": {"gpu_fraction": "0.6", "queue": "tight"},
    "a queue that admits nothing": {"gpu_fraction": "0.1", "queue": "shut"},
    "a request that cannot be read": {"gpu_fraction": "much"},
}
REASONS = {
    "more GPUs than a node has": RefusalReason.NO_NODE,
    "more CPU than a node has": RefusalReason.NO_NODE,
    "more memory than a GPU has": RefusalReason.TOO_LARGE,
    "a label that no node has": RefusalReason.NO_NODE,
    "a NodePool whose limit is reached": RefusalReason.LIMIT,
    "a NodePool that is skipped": RefusalReason.BLOCKED,
    "more than its queue admits": RefusalReason.QUEUE,
    "a queue that admits nothing": RefusalReason.QUEUE,
    "a request that cannot be read": RefusalReason.UNREADABLE,
}
BLOCKED = [("g5.xlarge", "small")]


def a_group(least: int) -> PodGroup:
    return PodGroup.read({"metadata": {"name": "job", "namespace": "team"}, "spec": {"minMember": least}})


def member(name: str, **more: Any) -> Pod:
    return a_waiting_pod(name, pod_group_name="job", **more)


@pytest.mark.parametrize("first", ["a", "z"])
@pytest.mark.parametrize("why", HOPELESS)
def test_a_gang_starts_without_a_member_that_can_never_be_placed(why: str, first: str) -> None:
    """Two of three suffice, and the pool has room for one GPU, whichever of them is first in order."""
    gang = [member("m", gpu_fraction="0.4"), member("n", gpu_fraction="0.5"), member(first, **HOPELESS[why])]
    plan = planned(*gang, a_group(2), POOL, CLOSED, SMALL, *QUEUES, blocked=BLOCKED)
    assert on_new(plan) == {"uid-m", "uid-n"}
    assert types(plan) == [L4]
    (demand,) = [demand for demand in plan.demands if f"uid-{first}" in demand.refused]
    assert demand.refused[f"uid-{first}"].reason is REASONS[why]


@pytest.mark.parametrize("why", HOPELESS)
def test_a_gang_that_needs_such_a_member_leaves_its_room_to_others(why: str) -> None:
    gang = [member("m", gpu_fraction="0.4", priority=9), member("a", priority=9, **HOPELESS[why])]
    other = a_waiting_pod("other", gpu_fraction="0.9")
    plan = planned(*gang, other, a_group(2), POOL, CLOSED, SMALL, *QUEUES, blocked=BLOCKED)
    assert on_new(plan) == {"uid-other"}
    assert refused(plan).keys() == {"uid-m", "uid-a"}


def test_several_members_that_can_never_be_placed() -> None:
    gang = [member(f"h{n}", **each) for n, each in enumerate(HOPELESS.values())]
    gang += [member("m", gpu_fraction="0.4"), member("n", gpu_fraction="0.5")]
    for least, started in ((2, {"uid-m", "uid-n"}), (3, set[str]())):
        assert on_new(planned(*gang, a_group(least), POOL, CLOSED, SMALL, *QUEUES, blocked=BLOCKED)) == started


def test_a_gang_over_two_pools_with_limits_of_their_own() -> None:
    other = a_node_pool("other", (L4,), limits={"nvidia.com/gpu": 1}, more_labels={"pool": "other"})
    gang = [
        member("a", gpu_fraction="0.1", gpu_fraction_num_devices="2", selector={"pool": "other"}),
        member("m", gpu_fraction="0.9", selector={"pool": "other"}),
        member("n", gpu_fraction="0.9", selector={"karpenter.sh/nodepool": "pool"}),
    ]
    assert on_new(planned(*gang, a_group(2), POOL, other)) == {"uid-m", "uid-n"}


def test_the_limit_of_the_environment() -> None:
    large = a_node_pool("large", ("g6.12xlarge",), more_labels={"pool": "large"})
    gang = [
        member("a", gpu_fraction="0.1", selector={"pool": "large"}),
        member("m", gpu_fraction="0.4"),
        member("n", gpu_fraction="0.5"),
    ]
    plan = planned(*gang, a_group(2), POOL, large, room=Room({"gpus": 2}, {"gpus": 2}))
    assert on_new(plan) == {"uid-m", "uid-n"}


def test_a_gang_whose_members_are_in_their_grace_period_starts_after_it() -> None:
    environment = an_environment(demand={"graceSeconds": 60})
    gang = [unschedulable(name, 0, "0.4", pod_group_name="job") for name in ("m", "n")]
    gang.append(unschedulable("a", 0, "0.4", pod_group_name="job", gpu_fraction_num_devices="3"))
    early = planned(*gang, a_group(2), POOL, environment=environment, now=at(59))
    assert not early.nodes
    assert {uid for demand in early.demands for uid in demand.in_grace} == {"uid-a", "uid-m", "uid-n"}
    late = planned(*gang, a_group(2), POOL, environment=environment, now=at(60))
    assert on_new(late) == {"uid-m", "uid-n"}


@given(
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=5),
    hopeless=st.lists(st.sampled_from(sorted(HOPELESS)), max_size=3),
    least=st.integers(1, 5),
    singles=st.lists(st.integers(1, 9), max_size=3),
    gpus=st.integers(0, 4),
)
def test_a_plan_is_the_same_without_the_members_that_can_never_be_placed(
    sizes: list[int], hopeless: list[str], least: int, singles: list[int], gpus: int
) -> None:
    """A gang of as many as are left, which does not need the others."""
    least = min(least, len(sizes))
    able = [member(f"m{n}", gpu_fraction=f"0.{size}") for n, size in enumerate(sizes)]
    able += [a_waiting_pod(f"single-{n}", gpu_fraction=f"0.{size}") for n, size in enumerate(singles)]
    never = [member(f"{'az'[n % 2]}{n}", **HOPELESS[why]) for n, why in enumerate(hopeless)]
    pool = a_node_pool("pool", (L4,), limits={"nvidia.com/gpu": gpus})
    cluster = (a_group(least), pool, CLOSED, SMALL, *QUEUES)
    plan, without = (planned(*pods, *cluster, blocked=BLOCKED) for pods in ((*able, *never), able))
    assert on_new(plan) == on_new(without)
    assert [node.held for node in plan.nodes] == [node.held for node in without.nodes]
