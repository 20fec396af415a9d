"""Pods that their scheduler spreads: each goes to the node and the GPUs with the most free."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.packing import GPU_MILLI
from plimsoll.packing.gpus import ANY
from plimsoll.packing.nodes import FreeNode, Limit, NodePacking, NodeShape, PodNeed, Rules, all_fit, pack_nodes
from tests.packing.checking_nodes import check, empty

ONE = NodeShape("l4-1", "L4", 1, 16_000, 65_536, price=1.0, pods=20, spread=True)
FOUR = NodeShape("l4-4", "L4", 4, 64_000, 262_144, price=4.0, pods=20, spread=True)


def pods(*milli: int, devices: int = 1) -> list[PodNeed]:
    """Pods with these shares, in this order."""
    return [
        PodNeed(f"pod-{number:02}", {ANY: each}, devices, 100, 100, order=(0, f"{number:02}", "", ""))
        for number, each in enumerate(milli)
    ]


def nodes(*devices: Sequence[int]) -> list[FreeNode]:
    return [
        FreeNode(f"node-{number}", "L4", tuple(each), 16_000, 65_536, 20, spread=True)
        for number, each in enumerate(devices)
    ]


def held(packing: NodePacking) -> list[tuple[int, ...]]:
    """How many pods are on each GPU of each node."""
    return [tuple(len(each) for each in node.devices) for node in packing.nodes]


@pytest.mark.parametrize(
    ("free", "shares", "expected"),
    [
        pytest.param([(1000,), (1000,), (1000,)], 3, [(1,), (1,), (1,)], id="nodes before GPUs"),
        pytest.param([(1000,), (1000,)], 5, [(3,), (2,)], id="evenly once all are used"),
        pytest.param([(1000, 1000)], 2, [(1, 1)], id="GPUs of one node"),
        pytest.param([(1000,) * 4, (1000,)], 3, [(1, 1, 0, 0), (1,)], id="by the part that is free"),
        pytest.param([(400,), (1000,)], 2, [(2,)], id="the most free, twice"),
    ],
)
def test_free_gpus_are_filled_breadth_first(
    free: list[tuple[int, ...]], shares: int, expected: list[tuple[int, ...]]
) -> None:
    needs = pods(*(200,) * shares)
    packing = pack_nodes(needs, [], nodes(*free))
    check(packing, needs, [], nodes(*free))
    assert held(packing) == expected


def test_nodes_whose_scheduler_packs_are_filled_as_before() -> None:
    free = [FreeNode(f"node-{number}", "L4", (1000,), 16_000, 65_536) for number in range(3)]
    assert held(pack_nodes(pods(200, 200, 200), [], free)) == [(3,)]


@pytest.mark.parametrize(
    ("milli", "unplaced"),
    [
        pytest.param((300, 300, 800), ("pod-02",), id="the small ones took both GPUs"),
        pytest.param((800, 300, 300), ("pod-02",), id="the GPU with the most free takes the second only"),
        pytest.param((800, 100, 100), (), id="all have a place"),
    ],
)
def test_a_place_is_promised_only_if_it_is_left(milli: tuple[int, ...], unplaced: tuple[str, ...]) -> None:
    """Packed, 0.3 and 0.3 leave a GPU for 0.8."""
    free = nodes((1000,), (900,)) if milli[0] == 300 else nodes((1000,), (500,))
    assert pack_nodes(pods(*milli), [], free).unplaced == unplaced
    assert all_fit(pods(*milli), [], free) is (not unplaced)


def test_new_nodes_suffice_once_pods_are_spread_over_all_of_them() -> None:
    """Two GPUs would do if 0.3 and 0.3 shared one; spread over two, they leave 0.7 of each."""
    needs = pods(300, 300, 800)
    packing = pack_nodes(needs, [ONE])
    check(packing, needs, [ONE])
    assert (held(packing), packing.gpus, packing.least) == ([(1,), (1,), (1,)], 3, 2)


def test_no_more_nodes_than_pods_need() -> None:
    """Spreading fills what there is, and buys nothing of its own."""
    assert pack_nodes(pods(200, 200, 200), [ONE]).gpus == 1


def test_limits_are_kept() -> None:
    needs, limits = pods(300, 300, 800), [Limit(2, {ONE.name: 1})]
    packing = pack_nodes(needs, [ONE], limits=limits)
    check(packing, needs, [ONE], limits=limits)
    assert packing.unplaced == ("pod-02",)
    assert not all_fit(needs, [ONE], limits=limits)


def test_pods_with_rules_are_spread_too() -> None:
    needs = [replace(need, milli={"L4": 200}) for need in pods(200, 200)]
    rules = Rules(of={}, groups={need.name: frozenset(("group",)) for need in needs}, nodes={}, shapes={})
    assert held(pack_nodes(needs, [], nodes((1000, 1000), (1000,)), rules=rules)) == [(1, 0), (1,)]


# A scheduler that spreads, written for its own: it knows nothing of rows, tables and grids.


class _Node:
    def __init__(self, name: str, free: FreeNode) -> None:
        self.name = name
        self.gpus = [Fraction(each) for each in free.devices]
        self.cpu, self.memory, self.pods = free.cpu_milli, free.memory_mib, free.pods

    def takes(self, need: PodNeed) -> list[int]:
        size = Fraction(need.milli[ANY])
        able = sorted((at for at, free in enumerate(self.gpus) if free >= size), key=lambda at: (-self.gpus[at], at))
        gpus = able[: need.devices]
        fresh = sum(self.gpus[at] == GPU_MILLI for at in gpus)
        roomy = self.pods >= 1 + fresh and self.cpu >= need.cpu_milli and self.memory >= need.memory_mib
        return gpus if len(gpus) == need.devices and roomy else []

    def put(self, need: PodNeed) -> None:
        gpus = self.takes(need)
        self.pods -= 1 + sum(self.gpus[at] == GPU_MILLI for at in gpus)
        self.cpu, self.memory = self.cpu - need.cpu_milli, self.memory - need.memory_mib
        for at in gpus:
            self.gpus[at] -= Fraction(need.milli[ANY])


def scheduled(needs: Iterable[PodNeed], existing: Iterable[_Node]) -> set[str]:
    """The names of the pods that get a place, one after the other."""
    hosts, placed = list(existing), set[str]()
    for need in sorted(needs, key=lambda need: (need.order, need.name)):
        able = [host for host in hosts if host.takes(need)]
        if able:
            min(able, key=lambda host: (-sum(host.gpus) / len(host.gpus), host.name)).put(need)
            placed.add(need.name)
    return placed


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[PodNeed], list[FreeNode]]:
    needs = [
        PodNeed(
            f"pod-{number:02}",
            {ANY: draw(st.sampled_from((100, 250, 300, 500, 700, 900)))},
            draw(st.sampled_from((1, 1, 1, 2))),
            draw(st.sampled_from((100, 4_000))),
            100,
            order=(draw(st.integers(-1, 0)), f"{draw(st.integers(0, 3))}", "", ""),
        )
        for number in range(draw(st.integers(0, 14)))
    ]
    devices = st.lists(st.sampled_from((0, 400, 800, 1000)), min_size=1, max_size=4)
    return needs, nodes(*(draw(devices) for _ in range(draw(st.integers(0, 3)))))


@given(problems())
@settings(max_examples=150, deadline=None)
def test_what_is_promised_is_what_the_scheduler_binds(problem: tuple[list[PodNeed], list[FreeNode]]) -> None:
    """On the nodes that exist now; and once the new ones are there, all that were promised a place have one."""
    needs, free = problem
    now = pack_nodes(needs, [], free)
    check(now, needs, [], free)
    waiting = {need.name for need in needs} - scheduled(needs, [_Node(each.name, each) for each in free])
    assert len(now.unplaced) == len(waiting)
    packing = pack_nodes(needs, [FOUR], free)
    check(packing, needs, [FOUR], free)
    left = [need for need in needs if need.name in waiting]
    new = [_Node(f"new-{number}", empty(FOUR)) for number, _ in enumerate(packing.new_nodes)]
    later = scheduled(left, [*_after(needs, free), *new])
    assert len(left) - len(later) == len(packing.unplaced)


def _after(needs: Iterable[PodNeed], free: Iterable[FreeNode]) -> list[_Node]:
    """The nodes after the scheduler has placed what fits."""
    hosts = [_Node(each.name, each) for each in free]
    scheduled(needs, hosts)
    return hosts


@given(problems(), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_the_order_of_the_arguments_does_not_matter(problem: tuple[list[PodNeed], list[FreeNode]], by: Random) -> None:
    needs, free = problem
    expected, arguments = (
        pack_nodes(needs, [ONE, FOUR], free),
        [list[Any](needs), list[Any]([ONE, FOUR]), list[Any](free)],
    )
    for each in arguments:
        by.shuffle(each)
    assert pack_nodes(*arguments) == expected
