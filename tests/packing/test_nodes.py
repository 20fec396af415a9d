"""Pods on nodes: free parts first, then the fewest GPUs of new nodes, with CPU and memory."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from plimsoll.packing.gpus import ANY
from plimsoll.packing.nodes import FreeNode, NodePacking, NodeShape, PodNeed, pack_nodes

T4 = NodeShape("t4-1", "T4", 1, 16_000, 65_536, price=1.0)
T4X4 = NodeShape("t4-4", "T4", 4, 64_000, 262_144, price=3.5)
A100X8 = NodeShape("a100-8", "A100", 8, 96_000, 1_048_576, price=30.0)
SHAPES = (T4, T4X4, A100X8)


def a_need(name: str, milli: int | dict[str, int], devices: int = 1, cpu: int = 1000, memory: int = 1024) -> PodNeed:
    """A pod; a number of thousandths is the same on every kind."""
    return PodNeed(name, {ANY: milli} if isinstance(milli, int) else milli, devices, cpu, memory)


def needs_of(*asked: tuple[int | dict[str, int], int]) -> list[PodNeed]:
    return [a_need(f"pod-{number}", milli, devices) for number, (milli, devices) in enumerate(asked)]


def check(
    packing: NodePacking, needs: Iterable[PodNeed], shapes: Sequence[NodeShape], free: Iterable[FreeNode] = ()
) -> None:
    """Each pod once, on its number of GPUs of one node; no GPU, CPU or memory over what the node has."""
    named = {need.name: need for need in needs}
    existing = {node.name: node for node in free}
    by_name = {shape.name: shape for shape in shapes}
    placed = [name for node in packing.nodes for name in node.pods] + [name for name, _ in packing.unplaced]
    assert Counter(placed) == Counter(named.keys())
    taken = [node.node for node in packing.nodes if node.node is not None]
    assert len(taken) == len(set(taken))
    for node in packing.nodes:
        if node.node is not None:
            offered = existing[node.node]
            capacity, cpu, memory = offered.gpus, offered.cpu_milli, offered.memory_mib
        else:
            shape = by_name[node.shape or ""]
            capacity, cpu, memory = (1000,) * shape.gpus, shape.cpu_milli, shape.memory_mib
        assert len(node.gpus) == len(capacity)
        for pods, most in zip(node.gpus, capacity, strict=True):
            assert len(pods) == len(set(pods))
            assert sum(_size(named[name], node.kind) for name in pods) <= most
        assert node.pods
        for name in node.pods:
            assert sum(name in pods for pods in node.gpus) == named[name].devices
        assert sum(named[name].cpu_milli for name in node.pods) <= cpu
        assert sum(named[name].memory_mib for name in node.pods) <= memory
    assert packing.least <= packing.gpus


def _size(need: PodNeed, kind: str) -> int:
    size = need.milli.get(kind, need.milli.get(ANY))
    assert size is not None, f"{need} may not be on {kind}"
    return size


@pytest.mark.parametrize(
    ("asked", "gpus"),
    [
        ((), 0),
        (((200, 2),), 4),
        (((500, 1), (500, 1)), 1),
        (((600, 1), (600, 1), (600, 1)), 3),
        (((100, 2), (500, 1)), 4),
        (((200, 2), (100, 3)), 4),
        ((({"T4": 500}, 1), ({"A100": 500}, 1)), 9),
        (((1000, 3),), 4),
        (((1000, 1), (300, 1)), 2),
        (((500, 2), (500, 2)), 4),
    ],
)
def test_fewest_gpus_of_shapes(asked: tuple[tuple[int | dict[str, int], int], ...], gpus: int) -> None:
    """T4 nodes have 1 or 4 GPUs, A100 nodes 8; several devices are on one node."""
    needs = needs_of(*asked)
    packing = pack_nodes(needs, SHAPES)
    check(packing, needs, SHAPES)
    assert packing.gpus == packing.least == gpus


def test_gpus_of_a_node_of_its_size() -> None:
    two = NodeShape("t4-2", "T4", 2, 32_000, 131_072)
    needs = needs_of((200, 2), (200, 2), (600, 1))
    packing = pack_nodes(needs, [two])
    check(packing, needs, [two])
    assert (packing.gpus, packing.least) == (2, 2)


def test_price_decides_between_as_few_gpus() -> None:
    needs = needs_of(*[({"T4": 1000}, 1)] * 4)
    packing = pack_nodes(needs, SHAPES)
    assert [node.shape for node in packing.new_nodes] == ["t4-4"]
    dear = NodeShape("t4-4", "T4", 4, 64_000, 262_144, price=40.0)
    assert [node.shape for node in pack_nodes(needs, [T4, dear]).new_nodes] == ["t4-1"] * 4


def test_cpu_spreads_shares_over_more_gpus() -> None:
    needs = [a_need(f"pod-{number}", {"T4": 100}, cpu=10_000) for number in range(3)]
    packing = pack_nodes(needs, [T4])
    check(packing, needs, [T4])
    assert (packing.gpus, packing.least) == (3, 3)


def test_memory_spreads_shares_over_more_gpus() -> None:
    needs = [a_need(f"pod-{number}", {"T4": 100}, memory=40_000) for number in range(4)]
    packing = pack_nodes(needs, [T4])
    check(packing, needs, [T4])
    assert packing.gpus == 4


def test_existing_nodes_come_first() -> None:
    free = [FreeNode("node-a", "T4", (400, 1000), 8_000, 32_768), FreeNode("node-b", "A100", (1000,) * 8, 8_000, 8_192)]
    needs = needs_of((400, 1), (1000, 1), (500, 2))
    packing = pack_nodes(needs, SHAPES, free)
    check(packing, needs, SHAPES, free)
    assert packing.gpus == packing.least == 0


def test_an_existing_node_without_cpu_is_not_used() -> None:
    free = [FreeNode("node-a", "T4", (1000,), 500, 32_768)]
    packing = pack_nodes(needs_of((400, 1)), [T4], free)
    assert packing.gpus == 1
    assert packing.nodes[0].shape == "t4-1"


def test_what_no_node_can_take_is_said_and_hides_no_other() -> None:
    needs = [a_need("huge", 1000, devices=1024), a_need("heavy", 500, cpu=10**6), a_need("other", {"H100": 500})]
    packing = pack_nodes([*needs, a_need("good", 500)], SHAPES)
    assert {name for name, _ in packing.unplaced} == {"huge", "heavy", "other"}
    assert packing.gpus == 1


def test_nothing_to_buy() -> None:
    free = [FreeNode("node-a", "T4", (300,), 8_000, 32_768)]
    packing = pack_nodes(needs_of((300, 1), (300, 1)), [], free)
    check(packing, needs_of((300, 1), (300, 1)), [], free)
    assert [name for name, _ in packing.unplaced] == ["pod-1"]


NEEDS = st.lists(
    st.tuples(
        st.one_of(
            st.sampled_from([1000, 1000, 500, 300, 120]).map(lambda size: {ANY: size}),
            st.dictionaries(st.sampled_from(["T4", "A100"]), st.integers(1, 1000), min_size=1),
        ),
        st.sampled_from([1, 1, 1, 2, 4]),
        st.integers(0, 20_000),
        st.integers(0, 80_000),
    ),
    max_size=25,
)
FREE = st.lists(
    st.builds(
        lambda kind, gpus, cpu, memory: (kind, tuple(gpus), cpu, memory),
        st.sampled_from(["T4", "A100", "V100"]),
        st.lists(st.integers(0, 1000), min_size=1, max_size=4),
        st.integers(0, 32_000),
        st.integers(0, 65_536),
    ),
    max_size=5,
)


def _built(asked: Any, free: Any) -> tuple[list[PodNeed], list[FreeNode]]:
    needs = [PodNeed(f"pod-{number:03}", *each) for number, each in enumerate(asked)]
    return needs, [FreeNode(f"node-{number}", *each) for number, each in enumerate(free)]


@settings(max_examples=50, deadline=None)
@given(NEEDS, FREE)
@example([({ANY: 1000}, 1, 0, 0), ({ANY: 500}, 2, 0, 1), ({"T4": 1, "A100": 1}, 1, 0, 1)], [])
def test_no_node_is_overloaded(asked: Any, free: Any) -> None:
    needs, nodes = _built(asked, free)
    check(pack_nodes(needs, SHAPES, nodes), needs, SHAPES, nodes)


@settings(max_examples=25, deadline=None)
@given(NEEDS, FREE, st.randoms(use_true_random=False))
def test_order_does_not_matter(asked: Any, free: Any, random: Any) -> None:
    needs, nodes = _built(asked, free)
    shapes = list(SHAPES)
    ordered = pack_nodes(needs, shapes, nodes)
    for each in (needs, nodes, shapes):
        random.shuffle(each)
    assert pack_nodes(needs, shapes, nodes) == ordered


@settings(max_examples=25, deadline=None)
@given(NEEDS)
def test_only_what_fits_an_empty_node_is_placed(asked: Any) -> None:
    needs, _ = _built(asked, [])
    packing = pack_nodes(needs, SHAPES)
    refused = {name for name, _ in packing.unplaced}
    for need in needs:
        fits = any(
            0 < need.milli.get(shape.kind, need.milli.get(ANY, 0)) <= 1000
            and shape.gpus >= need.devices
            and shape.cpu_milli >= need.cpu_milli
            and shape.memory_mib >= need.memory_mib
            for shape in SHAPES
        )
        assert (need.name in refused) == (not fits)


def test_a_small_share_of_several_gpus_leaves_room_for_a_larger_one() -> None:
    pods = [
        PodNeed("a", {"L4": 500}, 1),
        PodNeed("b", {"L4": 600}, 4),
        PodNeed("c", {"L4": 100}, 2),
        PodNeed("d", {"L4": 500}, 2),
    ]
    free = [
        FreeNode("two", "L4", (1000,) * 2, 64000, 262144),
        FreeNode("four", "L4", (1000,) * 4, 64000, 262144),
    ]
    packing = pack_nodes(pods, [NodeShape("new", "L4", 1, 4000, 16384)], free)
    assert (packing.gpus, packing.unplaced) == (0, ())
