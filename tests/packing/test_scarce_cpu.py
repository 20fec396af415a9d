"""Nodes with scarce CPU or memory: shares are distributed so that no node runs out of CPU before its GPUs are full."""

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.packing.nodes import FreeNode, Heuristic, NodeShape, PodNeed, best_fit_gpus, pack_nodes
from tests.packing.checking_nodes import check

EIGHT = NodeShape("eight", "A100", 8, 96_000, 98_304)
FOUR = NodeShape("four", "A100", 4, 32_000, 131_072, price=3.0)
TWO = NodeShape("two", "T4", 2, 48_000, 65_536, price=1.0)


def needs_of(*asked: tuple[int, int, int, int]) -> list[PodNeed]:
    """Pods of (number, thousandths, CPU in millicores, memory in MiB)."""
    each = [(milli, cpu, memory) for count, milli, cpu, memory in asked for _ in range(count)]
    return [
        PodNeed(f"pod-{number:04}", {"A100": milli, "T4": milli}, 1, cpu, memory)
        for number, (milli, cpu, memory) in enumerate(each)
    ]


@pytest.mark.parametrize(
    ("asked", "nodes"),
    [
        # Half of the GPUs are full with pods of 20 CPU, half with pods of 4: 4 and 4 fill a node's CPU.
        ([(80, 1000, 20_000, 0), (80, 1000, 4_000, 0)], 20),
        # The same with shares, of which the heavy and the light fill a GPU each.
        ([(80, 500, 10_000, 0), (80, 500, 10_000, 0), (160, 500, 2_000, 0)], 20),
        # Equal shares of different CPU.
        ([(160, 500, 11_000, 0), (160, 500, 1_000, 0)], 20),
        # Memory alone, and both against each other.
        ([(160, 500, 0, 11_000), (160, 500, 0, 1_000)], 20),
        ([(160, 500, 11_000, 1_000), (160, 500, 1_000, 11_000)], 20),
        # CPU for 6 of 8 GPUs.
        ([(60, 900, 16_000, 0)], 10),
        # Pods cannot be cut: 13 of 7 CPU are on a node of 96, and 2 of 34.
        ([(260, 100, 7_000, 0)], 20),
        ([(20, 500, 34_000, 0), (20, 500, 40_000, 0), (20, 500, 16_000, 0)], 20),
        ([(60, 100, 0, 33_000)], 30),
        # CPU does not matter.
        ([(80, 600, 100, 100), (80, 400, 100, 100)], 10),
    ],
)
def test_known_minimum_of_nodes(asked: list[tuple[int, int, int, int]], nodes: int) -> None:
    needs = needs_of(*asked)
    packing = pack_nodes(needs, [EIGHT])
    check(packing, needs, [EIGHT])
    assert (len(packing.nodes), packing.least) == (nodes, 8 * nodes)


def test_a_realistic_mix_of_pods() -> None:
    """Three quarters of the CPU are requested, and best fit decreasing needs several more nodes."""
    generator = random.Random(7)
    needs = needs_of(
        *((1, generator.choice([130, 310, 460, 500, 810]), generator.choice([3_152, 4_000, 8_000, 11_908]), 1024)
          for _ in range(600))
    )  # fmt: skip
    packing = pack_nodes(needs, [EIGHT])
    check(packing, needs, [EIGHT])
    assert packing.gpus == packing.least
    assert best_fit_gpus(needs, [EIGHT]) > packing.gpus + 8


def test_nodes_of_one_gpu() -> None:
    """A node holds only what its GPU holds, so shares are chosen by their CPU, too."""
    generator = random.Random(7)
    one = NodeShape("one", "T4", 1, 16_000, 65_536)
    needs = needs_of(
        *((1, generator.choice([100, 200, 300]), generator.choice([1_000, 2_000, 3_000, 4_000]), 1024)
          for _ in range(600))
    )  # fmt: skip
    packing = pack_nodes(needs, [one])
    check(packing, needs, [one])
    assert packing.gpus - packing.least <= 1
    assert best_fit_gpus(needs, [one]) > packing.gpus + 3


def test_pods_that_all_differ_are_compared_without_a_large_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all sizes of what is left of a GPU by all sums of CPU, which takes most of the time and memory."""
    cells, full = [0], np.full

    def counted(shape: Any, *values: Any, **more: Any) -> Any:
        cells.append(int(np.prod(shape)))
        return full(shape, *values, **more)

    monkeypatch.setattr(np, "full", counted)
    generator = random.Random(0)
    sizes = [(milli := generator.randint(20, 400), milli * generator.randint(10, 60)) for _ in range(14)]
    needs = needs_of(*((1, milli, cpu, 10) for milli, cpu in sizes))
    packing = pack_nodes(needs, [NodeShape("two", "T4", 2, 32_000, 65_536)], seconds=0.2, without=[Heuristic.EXACT])
    assert packing.gpus == 8
    assert max(cells) < 200_000


def test_pods_with_alternatives_leave_room_for_pods_without() -> None:
    """Pods that may use both kinds are placed where no other pod must go."""
    only = [PodNeed(f"only-{number}", {"T4": 1000}, 1, 20_000, 1024) for number in range(8)]
    both = [PodNeed(f"both-{number}", {"A100": 1000, "T4": 1000}, 1, 8_000, 1024) for number in range(8)]
    packing = pack_nodes([*only, *both], [EIGHT, TWO])
    check(packing, [*only, *both], [EIGHT, TWO])
    assert packing.gpus == packing.least == 16


def test_the_choice_of_shapes_knows_which_pods_fit_which() -> None:
    """A cheap shape without CPU does not count for pods that do not fit it."""
    small = NodeShape("small", "A100", 1, 4_000, 65_536, price=0.1)
    needs = needs_of((16, 1000, 12_000, 1024))
    packing = pack_nodes(needs, [EIGHT, small])
    check(packing, needs, [EIGHT, small])
    assert packing.gpus == packing.least == 16


MANY = st.lists(
    st.tuples(
        st.sampled_from([120, 250, 333, 334, 500, 501, 740, 1000]),
        st.one_of(st.sampled_from([1_000, 3_152, 4_000, 8_000, 11_908]), st.integers(0, 32_000)),
        st.integers(0, 32_000),
    ),
    max_size=60,
)


@given(MANY, st.sampled_from([[EIGHT], [FOUR], [EIGHT, TWO], [FOUR, TWO], [EIGHT, FOUR, TWO]]))
def test_valid_and_never_more_than_best_fit(asked: Any, shapes: list[NodeShape]) -> None:
    needs = needs_of(*((1, *each) for each in asked))
    packing = pack_nodes(needs, shapes)
    check(packing, needs, shapes)
    assert not packing.unplaced
    assert packing.gpus <= best_fit_gpus(needs, shapes)


@given(MANY, st.randoms(use_true_random=False))
def test_order_does_not_matter_where_cpu_is_scarce(asked: Any, random: Any) -> None:
    needs, shapes = needs_of(*((1, *each) for each in asked)), [EIGHT, FOUR, TWO]
    ordered = pack_nodes(needs, shapes)
    random.shuffle(needs)
    random.shuffle(shapes)
    assert pack_nodes(needs, shapes) == ordered


def test_cpu_of_a_node_without_free_gpus_cannot_be_used() -> None:
    """A pod with 8 GPUs uses all of a node, however little CPU it requests."""
    eight = [PodNeed(f"eight-{number}", {"A100": 1000}, 8, 1_000, 1024) for number in range(10)]
    shares = needs_of((60, 100, 16_000, 1024))
    packing = pack_nodes([*eight, *shares], [EIGHT])
    check(packing, [*eight, *shares], [EIGHT])
    assert (len(packing.nodes), packing.least) == (20, 160)


def test_pods_with_alternatives_are_moved_to_make_room() -> None:
    """There are as many GPUs as pods, and some pods may use one kind only."""
    one = NodeShape("one", "H100", 1, 64_000, 65_536, price=1.0)
    needs = [
        PodNeed(f"{'-'.join(kinds)}-{number}", dict.fromkeys(kinds, 1000), 1, 4_000, 1024)
        for kinds, count in ((("T4",), 13), (("T4", "H100"), 7), (("A100", "T4"), 9), (("A100", "H100", "T4"), 5))
        for number in range(count)
    ]
    packing = pack_nodes(needs, [EIGHT, TWO, one])
    check(packing, needs, [EIGHT, TWO, one])
    assert packing.gpus == packing.least == 34


@pytest.mark.parametrize("resource", ["cpu", "memory"])
def test_free_nodes_are_filled_as_well_as_new_ones(resource: str) -> None:
    """Ten nodes of 8 GPUs, each filled by one large and one small share: best fit puts the large ones together."""
    heavy, light = (11_000, 1_000), (1_000, 1_000)
    if resource == "memory":
        heavy = heavy[::-1]
    needs = needs_of((80, 500, *heavy), (80, 500, *light))
    free = [FreeNode(f"node-{number}", "A100", (1000,) * 8, 96_000, 98_304) for number in range(10)]
    packing = pack_nodes(needs, [EIGHT], free)
    check(packing, needs, [EIGHT], free)
    assert (packing.gpus, packing.unplaced) == (0, ())


def test_free_parts_without_new_nodes_place_all_pods() -> None:
    """The same without new nodes; each GPU has a half left."""
    needs = needs_of((8, 500, 20_000, 0), (8, 500, 4_000, 0))
    free = [FreeNode(f"node-{number}", "A100", (500,) * 8, 96_000, 98_304) for number in range(2)]
    packing = pack_nodes(needs, [], free)
    check(packing, needs, [], free)
    assert packing.unplaced == ()


PARTS = ((470, 530), (810, 190), (320, 320, 360), (1000,), (650, 350), (230, 230, 540))


def _filled_nodes(generator: random.Random, shape: NodeShape, patterns: int) -> tuple[list[PodNeed], int]:
    """Pods that use all GPUs and all CPU of some nodes, each with one of some patterns."""
    asked, nodes = [], 0
    for _ in range(patterns):
        count = generator.randint(1, 12)
        nodes += count
        milli = [part for _ in range(shape.gpus) for part in generator.choice(PARTS)]
        cuts = [0, *sorted(generator.sample(range(1, shape.cpu_milli // 500), len(milli) - 1)), shape.cpu_milli // 500]
        asked += [(count, part, 500 * (high - low), 1) for part, low, high in zip(milli, cuts, cuts[1:], strict=False)]
    return needs_of(*asked), nodes


@pytest.mark.parametrize(("gpus", "seed"), [*((gpus, seed) for gpus in (1, 2, 4) for seed in range(3)), (8, 0)])
def test_nodes_that_can_all_be_filled(gpus: int, seed: int) -> None:
    """As many nodes as the pods were cut from suffice: no bound is above that, and the packing is close."""
    generator = random.Random(seed)
    shape = NodeShape("filled", "T4", gpus, gpus * generator.choice((6_000, 9_000)), 2**20)
    needs, nodes = _filled_nodes(generator, shape, 5)
    packing = pack_nodes(needs, [shape])
    check(packing, needs, [shape])
    assert packing.least == gpus * nodes
    assert packing.gpus - packing.least <= 2 * gpus
