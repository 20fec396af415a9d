"""How many pods a node takes: it is held where GPUs would have room for more."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.packing.gpus import ANY
from plimsoll.packing.nodes import FreeNode, NodePacking, NodeShape, PodNeed, pack_nodes
from tests.packing.test_nodes import check

EIGHT = NodeShape("a100-8", "A100", 8, 96_000, 1_048_576, price=30.0, pods=102)
ONE = NodeShape("a100-1", "A100", 1, 12_000, 131_072, price=4.0, pods=4)


def shares(count: int, milli: int = 50, devices: int = 1) -> list[PodNeed]:
    return [PodNeed(f"pod-{number:03}", {ANY: milli}, devices, 10, 10) for number in range(count)]


def check_pods(
    packing: NodePacking, needs: list[PodNeed], shapes: list[NodeShape], free: tuple[FreeNode, ...] = ()
) -> None:
    check(packing, needs, shapes, free)
    most = {each.name: each.pods for each in (*shapes, *free)}
    for node in packing.nodes:
        assert len(node.pods) <= most[node.node or node.shape or ""]


@pytest.mark.parametrize(
    ("count", "nodes"),
    [
        pytest.param(102, 1, id="as many as one takes"),
        pytest.param(103, 2, id="one more"),
        pytest.param(160, 2, id="as many as its GPUs would hold"),
        pytest.param(510, 5, id="five full ones"),
    ],
)
def test_shares_of_five_percent_fill_nodes_by_their_number(count: int, nodes: int) -> None:
    needs = shares(count)
    packing = pack_nodes(needs, [EIGHT])
    check_pods(packing, needs, [EIGHT])
    assert not packing.unplaced
    assert (packing.gpus, packing.least) == (8 * nodes, 8 * nodes)


def test_small_shares_and_large_ones_stand_together() -> None:
    """Where small ones would fill a node alone, large ones take the GPUs that these leave."""
    needs = [*shares(200, 10), *[PodNeed(f"large-{number}", {ANY: 900}, 1, 10, 10) for number in range(14)]]
    packing = pack_nodes(needs, [EIGHT])
    check_pods(packing, needs, [EIGHT])
    assert not packing.unplaced
    assert packing.gpus <= 24


def test_a_node_without_room_for_a_pod_is_none() -> None:
    needs = shares(3)
    full = FreeNode("full", "A100", (1000,), 96_000, 1_048_576, 0)
    little = FreeNode("little", "A100", (1000,), 96_000, 1_048_576, 2)
    packing = pack_nodes(needs, [ONE], [full, little])
    check_pods(packing, needs, [ONE], (full, little))
    assert sorted(len(node.pods) for node in packing.nodes) == [1, 2]
    assert [node.node for node in packing.nodes if node.node] == ["little"]


def test_a_shape_that_takes_no_pod_is_none() -> None:
    packing = pack_nodes(shares(1), [NodeShape("none", "A100", 1, 1000, 1000, pods=0)])
    assert not packing.nodes
    assert len(packing.unplaced) == 1


def test_pods_with_several_gpus_count_once() -> None:
    needs = shares(4, 100, devices=2)
    two = NodeShape("a100-2", "A100", 2, 12_000, 131_072, pods=4)
    packing = pack_nodes(needs, [two])
    check_pods(packing, needs, [two])
    assert packing.gpus == 2


NEEDS = st.lists(
    st.tuples(st.sampled_from((10, 50, 100, 300, 600, 1000)), st.sampled_from((1, 1, 1, 2)), st.integers(0, 3000)),
    max_size=30,
)
PODS = st.sampled_from((1, 2, 3, 5, 12))


@settings(max_examples=40, deadline=None)
@given(NEEDS, PODS, PODS, st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 4)), max_size=3), st.randoms())
def test_no_node_has_more_pods_than_it_takes(
    asked: list[tuple[int, int, int]], many: int, few: int, there: list[tuple[int, int]], random: Any
) -> None:
    needs = [
        PodNeed(f"pod-{number:03}", {ANY: milli}, devices, cpu, 10)
        for number, (milli, devices, cpu) in enumerate(asked)
    ]
    shapes = [
        NodeShape("a100-4", "A100", 4, 12_000, 131_072, price=14.0, pods=many),
        NodeShape("a100-1", "A100", 1, 4_000, 131_072, price=4.0, pods=few),
    ]
    free = tuple(
        FreeNode(f"node-{number}", "A100", (milli, 1000), 4_000, 4_000, pods)
        for number, (milli, pods) in enumerate(there)
    )
    packing = pack_nodes(needs, shapes, free)
    check_pods(packing, needs, shapes, free)
    assert not packing.unplaced, "each pod alone has room on an empty node of four GPUs"
    random.shuffle(needs)
    assert pack_nodes(needs, shapes, free) == packing


def test_a_smaller_shape_that_takes_fewer_pods_is_not_enough() -> None:
    needs = shares(9, 100)
    small = NodeShape("a100-1", "A100", 1, 12_000, 131_072, price=1.0, pods=2)
    large = NodeShape("a100-4", "A100", 4, 12_000, 131_072, price=14.0, pods=12)
    packing = pack_nodes(needs, [small, large])
    check_pods(packing, needs, [small, large])
    assert [node.shape for node in packing.new_nodes] == ["a100-4"]
