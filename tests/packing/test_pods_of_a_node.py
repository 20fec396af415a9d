"""The number of pods that a node holds, including one reservation for each shared GPU."""

from random import Random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from plimsoll.packing.gpus import ANY
from plimsoll.packing.nodes import FreeNode, NodeShape, PodNeed, pack_nodes
from tests.packing.checking_nodes import check, is_shared

EIGHT = NodeShape("a100-8", "A100", 8, 96_000, 1_048_576, price=30.0, pods=110)
ONE = NodeShape("a100-1", "A100", 1, 12_000, 131_072, price=4.0, pods=4)


def shares(count: int, milli: int = 50, devices: int = 1) -> list[PodNeed]:
    return [PodNeed(f"pod-{number:03}", {ANY: milli}, devices, 10, 10) for number in range(count)]


@pytest.mark.parametrize(
    ("count", "nodes"),
    [
        pytest.param(103, 1, id="six GPUs are shared"),
        pytest.param(104, 1, id="as many as one takes"),
        pytest.param(105, 2, id="one more"),
        pytest.param(160, 2, id="as many as its GPUs would hold"),
        pytest.param(520, 5, id="five full ones"),
    ],
)
def test_small_shares_fill_nodes_up_to_the_number_of_pods(count: int, nodes: int) -> None:
    """20 shares fit a GPU, which has one reservation: 104 shares on 6 GPUs are 110 pods."""
    needs = shares(count)
    packing = pack_nodes(needs, [EIGHT])
    check(packing, needs, [EIGHT])
    assert not packing.unplaced
    assert (packing.gpus, packing.least) == (8 * nodes, 8 * nodes)


def test_small_and_large_shares_share_nodes() -> None:
    """Small shares alone would fill a node with pods; large ones use the GPUs that are left."""
    needs = [*shares(200, 10), *[PodNeed(f"large-{number}", {ANY: 900}, 1, 10, 10) for number in range(14)]]
    packing = pack_nodes(needs, [EIGHT])
    check(packing, needs, [EIGHT])
    assert not packing.unplaced
    assert packing.gpus <= 24


def test_a_node_without_room_for_a_pod_is_not_used() -> None:
    needs = shares(3)
    full = FreeNode("full", "A100", (1000,), 96_000, 1_048_576, 0)
    little = FreeNode("little", "A100", (1000,), 96_000, 1_048_576, 3)
    packing = pack_nodes(needs, [ONE], [full, little])
    check(packing, needs, [ONE], (full, little))
    assert sorted(len(node.pods) for node in packing.nodes) == [1, 2]
    assert [node.node for node in packing.nodes if node.node] == ["little"]


def test_a_shape_without_room_for_a_pod_is_not_used() -> None:
    packing = pack_nodes(shares(1), [NodeShape("none", "A100", 1, 1000, 1000, pods=0)])
    assert not packing.nodes
    assert len(packing.unplaced) == 1


@pytest.mark.parametrize(("pods", "gpus"), [(6, 2), (5, 4), (4, 4), (3, 8)])
def test_pods_with_several_gpus_count_once(pods: int, gpus: int) -> None:
    """Four pods on the same two GPUs are six pods together with the reservations."""
    needs = shares(4, 100, devices=2)
    two = NodeShape("a100-2", "A100", 2, 12_000, 131_072, pods=pods)
    packing = pack_nodes(needs, [two])
    check(packing, needs, [two])
    assert not packing.unplaced
    assert packing.gpus == gpus


def test_whole_gpus_have_no_reservations() -> None:
    needs = [PodNeed(f"pod-{number}", {ANY: 1000}, 1, 10, 10) for number in range(4)]
    four = NodeShape("a100-4", "A100", 4, 12_000, 131_072, pods=4)
    packing = pack_nodes(needs, [four])
    check(packing, needs, [four])
    assert (packing.gpus, packing.unplaced) == (4, ())


def test_a_shared_gpu_already_has_its_reservation() -> None:
    """A share on a shared GPU is one pod; on a free GPU it is two."""
    joined = FreeNode("joined", "A100", (500, 0), 96_000, 1_048_576, 1)
    fresh = FreeNode("fresh", "A100", (1000, 0), 96_000, 1_048_576, 1)
    for node, unplaced in ((joined, ()), (fresh, ("pod-000",))):
        packing = pack_nodes(shares(1), [], [node])
        check(packing, shares(1), [], [node])
        assert packing.unplaced == unplaced


def test_shares_use_fewer_gpus_if_pods_are_scarce() -> None:
    """Three GPUs with two shares each are nine pods; with all shares of one GPU moved to another they are eight."""
    needs = [*shares(4, 250), *[PodNeed(f"half-{number}", {ANY: 500}, 1, 10, 10) for number in range(2)]]
    three = NodeShape("a100-3", "A100", 3, 12_000, 131_072, pods=8)
    packing = pack_nodes(needs, [three])
    check(packing, needs, [three])
    assert (packing.gpus, packing.unplaced) == (3, ())


NEEDS = st.lists(
    st.tuples(st.sampled_from((10, 50, 100, 300, 600, 1000)), st.sampled_from((1, 1, 1, 2)), st.integers(0, 3000)),
    max_size=12,
)
MANY_NEEDS = [((50, 300, 600)[n % 3], 1 + (n % 15 == 0), 300) for n in range(30)]
PODS = st.sampled_from((1, 2, 3, 5, 12))
"""Numbers of pods; 1 is too few for a share and its reservation."""


@settings(max_examples=15)
@given(NEEDS, PODS, PODS, st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 4)), max_size=3), st.randoms())
@example(MANY_NEEDS, 5, 3, [(500, 2), (1000, 4)], Random(0))
def test_no_node_exceeds_its_maximum_of_pods(
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
    check(packing, needs, shapes, free)
    for need in needs:
        alone = 1 + need.devices * is_shared(need)
        room = any(each.gpus >= need.devices and each.pods >= alone for each in shapes)
        assert need.name not in packing.unplaced or not room, "an empty node takes it"
    random.shuffle(needs)
    assert pack_nodes(needs, shapes, free) == packing


def test_a_smaller_shape_with_fewer_pods_is_not_chosen() -> None:
    needs = shares(9, 100)
    small = NodeShape("a100-1", "A100", 1, 12_000, 131_072, price=1.0, pods=2)
    large = NodeShape("a100-4", "A100", 4, 12_000, 131_072, price=14.0, pods=12)
    packing = pack_nodes(needs, [small, large])
    check(packing, needs, [small, large])
    assert [node.shape for node in packing.new_nodes] == ["a100-4"]
