"""Subgroups of a PodGroup: each starts from its own minimum, and the group needs a minimum of its subgroups."""

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from plimsoll.model.cluster import Pod
from plimsoll.model.kai import PodGroup
from plimsoll.plan.classes import gang_levels
from tests.builders import a_node_pool, a_queue, a_waiting_pod
from tests.calls import calls
from tests.demand.plans import on_new, planned, refused

L4 = "g6.xlarge"
ROOMY = a_node_pool("pool", (L4,))
THREE = a_node_pool("pool", (L4,), limits={"nvidia.com/gpu": 3})
NOWHERE = {"no": "where"}


def members(of: str, count: int, **more: Any) -> list[Pod]:
    labels = {"kai.scheduler/subgroup-name": of}
    return [
        a_waiting_pod(f"{of}-{n}", gpu_fraction="0.9", pod_group_name="job", more_labels=labels, **more)
        for n in range(count)
    ]


def a_group(*of: dict[str, Any], **spec: Any) -> PodGroup:
    return PodGroup.read({"metadata": {"name": "job", "namespace": "team"}, "spec": {"subGroups": list(of), **spec}})


def a_subgroup(name: str, least: int | None = None, **more: Any) -> dict[str, Any]:
    return {"name": name, **({"minMember": least} if least is not None else {}), **more}


BOTH = (a_subgroup("a", 2), a_subgroup("b", 1))


def test_each_subgroup_starts_from_its_own_minimum() -> None:
    """Three GPUs: two pods of `a` and one of `b`, whatever else is pending. The others are refused by the limit."""
    plan = planned(*members("a", 3), *members("b", 3), a_group(*BOTH), THREE)
    assert on_new(plan) == {"uid-a-0", "uid-a-1", "uid-b-0"}
    left = refused(plan)
    assert left.keys() == {"uid-a-2", "uid-b-1", "uid-b-2"}
    assert all(why.startswith("limits.nvidia.com/gpu") for why in left.values())


@pytest.mark.parametrize(("least", "bought"), [(2, 0), (None, 0), (1, 2)])
def test_if_one_subgroup_fits_nowhere_nothing_is_requested_for_the_others(least: int | None, bought: int) -> None:
    group = a_group(*BOTH, **({"minSubGroup": least} if least else {}))
    plan = planned(*members("a", 2), *members("b", 1, selector=NOWHERE), group, ROOMY)
    assert plan.gpus == bought
    assert len(refused(plan)) == 3 - bought


def test_an_optional_subgroup_below_its_minimum_is_left_out_alone() -> None:
    """`a` needs two pods and has a place for one of them only."""
    lonely = [*members("a", 1), members("a", 2, selector=NOWHERE)[1]]
    plan = planned(*lonely, *members("b", 1), a_group(*BOTH, minSubGroup=1), ROOMY)
    assert on_new(plan) == {"uid-b-0"}
    assert "subgroup a starts as a whole" in refused(plan)["uid-a-0"]


@pytest.mark.parametrize(("least", "bought"), [(1, 2), (2, 0)])
def test_subgroups_of_subgroups_count_in_their_parent(least: int, bought: int) -> None:
    parts = (a_subgroup("all", minSubGroup=least), a_subgroup("a", 2, parent="all"), a_subgroup("b", 1, parent="all"))
    plan = planned(*members("a", 2), *members("b", 1, selector=NOWHERE), a_group(*parts), ROOMY)
    assert plan.gpus == bought


def test_running_pods_count_in_their_subgroup_only() -> None:
    (running,) = members("b", 1, node="elsewhere")
    assert planned(*members("a", 2), running, a_group(*BOTH), THREE).gpus == 2
    two = a_node_pool("pool", (L4,), limits={"nvidia.com/gpu": 1})
    assert planned(*members("a", 2), running, a_group(*BOTH), two).gpus == 0


def test_inconsistent_subgroup_names_cause_no_error() -> None:
    """A subgroup that is its own ancestor, and pods of an undeclared subgroup."""
    circle = a_group(a_subgroup("a", 1, parent="b"), a_subgroup("b", 1, parent="a"))
    assert planned(*members("a", 1), circle, ROOMY).gpus == 1
    assert planned(*members("z", 1), *members("a", 2), *members("b", 1), a_group(*BOTH), ROOMY).gpus == 4


def test_an_optional_subgroup_without_room_for_its_minimum_leaves_the_room_to_others() -> None:
    """Two GPUs: `b` starts the group, and the second one is too little for both pods of `a`."""
    others = [a_waiting_pod(f"z-{n}", gpu_fraction="0.9") for n in range(2)]
    pool = a_node_pool("pool", (L4,), limits={"nvidia.com/gpu": 2})
    plan = planned(*members("a", 2), *members("b", 1), *others, a_group(*BOTH, minSubGroup=1), pool)
    assert on_new(plan) == {"uid-b-0", "uid-z-0"}


def test_a_queue_admits_an_optional_subgroup_from_its_minimum() -> None:
    others = [a_waiting_pod(f"z-{n}", gpu_fraction="0.9", queue="team") for n in range(2)]
    queued = [*members("a", 2, queue="team"), *members("b", 1, queue="team"), *others]
    plan = planned(*queued, a_group(*BOTH, minSubGroup=1), a_queue("team", limit=2, parent=""), ROOMY)
    assert on_new(plan) == {"uid-b-0", "uid-z-0"}
    assert all(why.startswith("OverLimit") for why in refused(plan).values())


def test_the_minimum_of_an_elastic_gang_is_of_its_pods_that_fit_somewhere() -> None:
    """Three GPUs: the gang can start only with its two pods that fit, for which one of the GPUs is left."""
    gang = [*members("a", 1, selector=NOWHERE), *members("b", 2)]
    others = [a_waiting_pod(f"{n}", gpu_fraction="0.9", priority=9 - 10 * (n == 2)) for n in range(3)]
    assert on_new(planned(*gang, *others, a_group(minMember=2), THREE)) == {"uid-0", "uid-1", "uid-2"}


def test_a_part_of_a_subgroup_that_cannot_start_buys_nothing() -> None:
    """`top` needs both of its parts, and the group needs `top` or `c`."""
    parts = (a_subgroup("top"), a_subgroup("a", 1, parent="top"), a_subgroup("b", 1, parent="top"), a_subgroup("c", 1))
    pods = [*members("a", 1), *members("b", 1, selector=NOWHERE), *members("c", 1)]
    plan = planned(*pods, a_group(*parts, minSubGroup=1), ROOMY)
    assert on_new(plan) == {"uid-c-0"}
    assert "subgroup top starts as a whole" in refused(plan)["uid-a-0"]


LEAVES = st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3))
"""Minimum, pods that fit, and pods that fit nowhere."""
TREES = st.tuples(st.integers(1, 3), st.lists(st.tuples(st.integers(1, 2), st.lists(LEAVES, min_size=1, max_size=2)),
                  min_size=1, max_size=3))  # fmt: skip
"""Minimum of subgroups, and for each subgroup its own minimum of subgroups and these."""


@given(TREES)
def test_what_starts_is_what_can_start_at_each_level(
    tree: tuple[int, list[tuple[int, list[tuple[int, int, int]]]]],
) -> None:
    least, tops = tree
    pods, parts, able = list[Pod](), list[dict[str, Any]](), list[set[str]]()
    for t, (needed, leaves) in enumerate(tops):
        parts.append(a_subgroup(f"top-{t}", minSubGroup=needed))
        started = list[set[str]]()
        for n, (minimum, fit, lost) in enumerate(leaves):
            name = f"leaf-{t}-{n}"
            parts.append(a_subgroup(name, minimum, parent=f"top-{t}"))
            fitting = members(name, fit)
            pods += [*fitting, *members(f"{name}", fit + lost, selector=NOWHERE)[fit:]]
            started += [{pod.uid for pod in fitting}] if fit >= min(minimum, fit + lost) else []
        able += [set[str]().union(*started)] if len(started) >= min(needed, len(leaves)) else []
    wanted = set[str]().union(*able) if len(able) >= min(least, len(tops)) else set[str]()
    assume(pods)
    assert on_new(planned(*pods, a_group(*parts, minSubGroup=least), ROOMY)) == wanted


def test_deeply_nested_and_many_subgroups_are_planned() -> None:
    nested = [a_subgroup("s0", None)] + [a_subgroup(f"s{n}", None, parent=f"s{n - 1}") for n in range(1, 400)]
    planned(*members("s399", 1), a_group(*nested), ROOMY)
    flat = [a_subgroup(f"g{n}", 1) for n in range(300)]
    pods = [pod for n in range(300) for pod in members(f"g{n}", 1)]
    assert len(on_new(planned(*pods, a_group(*flat), ROOMY))) == 300


def test_levels_of_nested_subgroups_cost_as_much_as_the_depth_that_is_read() -> None:
    """500 subgroups in one another, each on one node, with a pod each took a plan two minutes."""
    level = {"topologyConstraint": {"topology": "racks", "requiredTopologyLevel": "kubernetes.io/hostname"}}

    def cost(depth: int) -> int:
        nested = [a_subgroup(f"s{n}", 1, **level, **({"parent": f"s{n - 1}"} if n else {})) for n in range(depth)]
        pods = [pod for n in range(depth) for pod in members(f"s{n}", 1)]
        group = a_group(*nested)
        return calls(lambda: [gang_levels(pod, group) for pod in pods])

    few, many = cost(50), cost(200)
    assert many < 5 * few
