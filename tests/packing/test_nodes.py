"""Pods on nodes: free parts are used first, then the fewest GPUs of new nodes, with CPU and memory."""

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from plimsoll.packing import Milli, exact_milli
from plimsoll.packing.gpus import ANY
from plimsoll.packing.nodes import FreeNode, Limit, NodeShape, PodNeed, Unit, all_fit, left_out_in_order, pack_nodes
from tests.packing.checking_nodes import check

T4 = NodeShape("t4-1", "T4", 1, 16_000, 65_536, price=1.0)
T4X4 = NodeShape("t4-4", "T4", 4, 64_000, 262_144, price=3.5)
A100X8 = NodeShape("a100-8", "A100", 8, 96_000, 1_048_576, price=30.0)
SHAPES = (T4, T4X4, A100X8)


def a_need(
    name: str, milli: Milli | Mapping[str, Milli], devices: int = 1, cpu: int = 1000, memory: int = 1024
) -> PodNeed:
    """A pod; a plain number of thousandths holds for every kind."""
    return PodNeed(name, milli if isinstance(milli, Mapping) else {ANY: milli}, devices, cpu, memory)


def needs_of(*asked: tuple[Milli | Mapping[str, Milli], int]) -> list[PodNeed]:
    return [a_need(f"pod-{number}", milli, devices) for number, (milli, devices) in enumerate(asked)]


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
def test_fewest_gpus_of_shapes(asked: tuple[tuple[Milli | dict[str, Milli], int], ...], gpus: int) -> None:
    """T4 nodes have 1 or 4 GPUs, A100 nodes 8; several devices are on one node."""
    needs = needs_of(*asked)
    packing = pack_nodes(needs, SHAPES)
    check(packing, needs, SHAPES)
    assert packing.gpus == packing.least == gpus


@pytest.mark.parametrize(
    ("count", "milli", "gpus"),
    [
        pytest.param(16, exact_milli(Fraction("0.0625")), 1, id="sixteenths"),
        pytest.param(3, exact_milli(Fraction("0.3333")), 1, id="0.3333"),
        pytest.param(3, exact_milli(Fraction("0.3334")), 2, id="0.3334"),
        pytest.param(3, exact_milli(27300, 81900), 1, id="thirds of the MiB of a GPU"),
        pytest.param(7, Fraction(1000, 7), 1, id="sevenths"),
        pytest.param(8, Fraction(1000, 7), 2, id="one seventh more"),
        pytest.param(3, exact_milli(Fraction("0.3333333333333333")), 1, id="a third in 16 digits"),
        pytest.param(7, exact_milli(Fraction("0.14285714285714285")), 1, id="a seventh in 17 digits"),
        pytest.param(3, exact_milli(Fraction("0.333333333333333333")), 1, id="a third in 18 digits"),
        pytest.param(3, exact_milli(Fraction("0." + 30 * "3")), 1, id="a third in 30 digits"),
        pytest.param(13, Fraction(1000, 13) - Fraction(1, 10**40), 1, id="just below a 13th"),
    ],
)
def test_fractions_are_exact(count: int, milli: Milli, gpus: int) -> None:
    needs = needs_of(*[({"T4": milli}, 1)] * count)
    packing = pack_nodes(needs, [T4])
    check(packing, needs, [T4])
    assert (packing.gpus, packing.least) == (gpus, gpus)


@pytest.mark.parametrize("digits", [16, 17, 18])
def test_decimal_fractions_that_add_up_to_a_gpu_share_it(digits: int) -> None:
    part = Fraction("0.123456789123456789"[: 2 + digits])
    for more, gpus in ((0, 1), (Fraction(1, 10**digits), 2), (Fraction(1, 10**30), 2)):
        needs = needs_of(*[({"T4": exact_milli(share)}, 1) for share in (part, 1 - part + more)])
        packing = pack_nodes(needs, [T4])
        check(packing, needs, [T4])
        assert packing.gpus == gpus


def test_fractions_of_18_digits_choose_between_nodes_with_many_gpus() -> None:
    """The units of all GPUs of the wide node together exceed 64 bits."""
    free = [FreeNode(name, "T4", (1000,) * gpus, 8_000, 32_768) for name, gpus in (("a-wide", 16), ("narrow", 1))]
    needs = needs_of(*[({"T4": exact_milli(Fraction("0.333333333333333333"))}, 1)] * 3)
    packing = pack_nodes(needs, [], free)
    check(packing, needs, [], free)
    assert [node.node for node in packing.nodes] == ["narrow"], "what is left is least there"


def test_sizes_that_differ_on_many_kinds_are_exact_on_each() -> None:
    """Shares in MiB: two are exactly an A10G, and the other two share a GPU of any kind. The common
    denominator of the sizes on all kinds exceeds 64 bits."""
    shares = {"L4": 22800, "A10G": 22700, "T4": 15300, "L40S": 46000, "A100": 81900, "H100": 81500, "B200": 183300}
    shares |= {"H200": 143700, "A6000": 49100}
    shapes = [NodeShape(f"{kind}-1", kind, 1, 16_000, 65_536) for kind in shares]
    exactly = [{"A10G": exact_milli(mib, shares["A10G"])} for mib in (10_001, 12_699)]
    anywhere = [{kind: exact_milli(mib, of) for kind, of in shares.items()} for mib in (13_001, 12_007)]
    needs = needs_of(*[(milli, 1) for milli in (*exactly, *anywhere)])
    packing = pack_nodes(needs, shapes)
    check(packing, needs, shapes)
    assert (packing.gpus, packing.least) == (2, 2)


def test_fractions_fill_what_is_left_exactly() -> None:
    third = Fraction(1000, 3)
    free = [FreeNode("node-a", "T4", (1000 - 2 * third, 1000 - third), 8_000, 32_768)]
    needs = needs_of(*[({"T4": third}, 1)] * 3)
    packing = pack_nodes(needs, [], free)
    check(packing, needs, [], free)
    assert packing.unplaced == ()


def test_shares_of_other_sizes_on_each_kind_choose_by_gpus_then_price() -> None:
    """20000 MiB twice are 0.49 of an A100-40 each, and 0.25 of an A100-80."""
    needs = needs_of(*[({"A100-40": exact_milli(20000, 40900), "A100-80": exact_milli(20000, 81900)}, 1)] * 2)
    small = NodeShape("small", "A100-40", 1, 16_000, 65_536, price=6.52)
    large = NodeShape("large", "A100-80", 1, 16_000, 65_536, price=30.0)
    packing = pack_nodes(needs, [small, large])
    check(packing, needs, [small, large])
    assert [node.shape for node in packing.new_nodes] == ["small"]
    three = [*needs, a_need("pod-2", dict(needs[0].milli))]
    packing = pack_nodes(three, [small, large])
    check(packing, three, [small, large])
    assert [node.shape for node in packing.new_nodes] == ["large"], "one GPU rather than two"


def test_a_pod_with_all_gpus_of_a_node() -> None:
    two = NodeShape("t4-2", "T4", 2, 32_000, 131_072)
    needs = needs_of((200, 2), (200, 2), (600, 1))
    packing = pack_nodes(needs, [two])
    check(packing, needs, [two])
    assert (packing.gpus, packing.least) == (2, 2)


def test_pods_with_shares_of_several_gpus_use_other_nodes_than_best_fit_opened() -> None:
    """Best fit opens nodes of three GPUs. Two pairs of pods fill a node of four."""
    shapes = [NodeShape("three", "T4", 3, 96_000, 262_144), NodeShape("four", "T4", 4, 96_000, 262_144)]
    needs = [a_need(f"large-{number:02}", {"T4": 600}, 2, 0, 0) for number in range(40)]
    needs += [a_need(f"small-{number:02}", {"T4": 400}, 2, 0, 0) for number in range(39)]
    packing = pack_nodes(needs, shapes)
    check(packing, needs, shapes)
    assert packing.gpus == packing.least == 80


def test_price_decides_between_equal_numbers_of_gpus() -> None:
    needs = needs_of(*[({"T4": 1000}, 1)] * 4)
    packing = pack_nodes(needs, SHAPES)
    assert [node.shape for node in packing.new_nodes] == ["t4-4"]
    dear = NodeShape("t4-4", "T4", 4, 64_000, 262_144, price=40.0)
    assert [node.shape for node in pack_nodes(needs, [T4, dear]).new_nodes] == ["t4-1"] * 4


def test_the_lowest_price_counts_beside_a_shape_that_is_far_more_expensive() -> None:
    """Four nodes of two GPUs would be fewer nodes, at a higher price."""
    one, two = NodeShape("one", "T4", 1, 8_000, 65_536, 0.345), NodeShape("two", "T4", 2, 16_000, 65_536, 0.784)
    expensive = NodeShape("expensive", "A100", 8, 96_000, 1_048_576, 98.0)
    cpu = [4_000] * 3 + [8_000] * 2 + [12_000] * 3
    needs = [a_need(f"pod-{number}", {"T4": 1000}, cpu=each) for number, each in enumerate(cpu)]
    packing = pack_nodes(needs, [one, two, expensive])
    check(packing, needs, [one, two, expensive])
    assert Counter(node.shape for node in packing.new_nodes) == {"one": 2, "two": 3}


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


def test_a_pod_that_fits_no_new_node_leaves_room_for_others() -> None:
    """Best fit places it on the T4, the only free GPU that the other one could use."""
    free = [FreeNode("t4", "T4", (500,), 32_000, 65_536), FreeNode("a100", "A100", (600,), 32_000, 65_536)]
    needs = [a_need("heavy", {"T4": 500, "A100": 500}, cpu=20_000), a_need("light", {"T4": 400})]
    packing = pack_nodes(needs, [T4], free)
    check(packing, needs, [T4], free)
    assert (packing.gpus, packing.least) == (0, 0)


def test_an_existing_node_without_cpu_is_not_used() -> None:
    free = [FreeNode("node-a", "T4", (1000,), 500, 32_768)]
    packing = pack_nodes(needs_of((400, 1)), [T4], free)
    assert packing.gpus == 1
    assert packing.nodes[0].shape == "t4-1"


def test_a_pod_that_fits_no_node_is_unplaced_and_hides_no_other() -> None:
    needs = [a_need("huge", 1000, devices=1024), a_need("heavy", 500, cpu=10**6), a_need("other", {"H100": 500})]
    packing = pack_nodes([*needs, a_need("good", 500)], SHAPES)
    assert packing.unplaced == ("heavy", "huge", "other")
    assert packing.gpus == 1


def test_without_shapes_only_free_nodes_are_used() -> None:
    free = [FreeNode("node-a", "T4", (300,), 8_000, 32_768)]
    packing = pack_nodes(needs_of((300, 1), (300, 1)), [], free)
    check(packing, needs_of((300, 1), (300, 1)), [], free)
    assert packing.unplaced == ("pod-1",)


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
    max_size=12,
)
MANY_NEEDS = [
    (({ANY: 1000}, {ANY: 300}, {"T4": 400}, {"A100": 700})[n % 4], (1, 1, 1, 2, 4)[n % 5], 3_000 * (n % 2), 9_000)
    for n in range(25)
]
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


@given(NEEDS, FREE)
@example([*[({ANY: 1000}, 1, 0, 0)] * 10, ({ANY: 1000}, 1, 3531, 1), ({"T4": 1}, 1, 0, 65537)], [("T4", (1,), 0, 0)])
@example([({ANY: 1000}, 1, 0, 0), ({ANY: 500}, 2, 0, 1), ({"T4": 1, "A100": 1}, 1, 0, 1)], [])
@example([({"T4": Fraction(1, 10**n + 1), "A100": Fraction(999 * 10**n + n, 10**n)}, 2, 1, 1) for n in range(25)], [])
def test_no_node_is_overcommitted(asked: Any, free: Any) -> None:
    needs, nodes = _built(asked, free)
    check(pack_nodes(needs, SHAPES, nodes), needs, SHAPES, nodes)


@settings(max_examples=12)
@given(NEEDS, FREE, st.randoms(use_true_random=False))
def test_order_does_not_matter(asked: Any, free: Any, random: Any) -> None:
    needs, nodes = _built(asked, free)
    shapes = list(SHAPES)
    ordered = pack_nodes(needs, shapes, nodes)
    for each in (needs, nodes, shapes):
        random.shuffle(each)
    assert pack_nodes(needs, shapes, nodes) == ordered


@settings(max_examples=12)
@given(NEEDS)
def test_only_what_fits_an_empty_node_is_placed(asked: Any) -> None:
    needs, _ = _built(asked, [])
    packing = pack_nodes(needs, SHAPES)
    refused = set(packing.unplaced)
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


def test_limits_bind_all_shapes_together() -> None:
    needs = needs_of(*[(1000, 1)] * 6)
    limits = [Limit(4, {"t4-1": 1, "t4-4": 4, "a100-8": 8})]
    packing = pack_nodes(needs, SHAPES, limits=limits)
    check(packing, needs, SHAPES, limits=limits)
    assert (packing.gpus, len(packing.unplaced)) == (4, 2)


def test_a_limit_of_one_resource_leads_to_another_shape() -> None:
    """Four nodes of one GPU would have as few GPUs, but a higher price."""
    needs = needs_of(*[({"T4": 1000}, 1)] * 4)
    limits = [Limit(63_999, {"t4-4": 64_000, "t4-1": 15_000})]
    packing = pack_nodes(needs, SHAPES, limits=limits)
    check(packing, needs, SHAPES, limits=limits)
    assert [node.shape for node in packing.new_nodes] == ["t4-1"] * 4


def test_a_limit_of_zero_allows_free_nodes_only() -> None:
    free = [FreeNode("node-a", "T4", (500,), 8_000, 32_768)]
    needs, limits = needs_of((500, 1), (500, 1)), [Limit(-3, dict.fromkeys(("t4-1", "t4-4", "a100-8"), 1))]
    packing = pack_nodes(needs, SHAPES, free, limits=limits)
    check(packing, needs, SHAPES, free, limits)
    assert (packing.gpus, packing.unplaced) == (0, ("pod-1",))


LIMITS = st.lists(
    st.builds(
        Limit,
        st.integers(-2, 24),
        st.fixed_dictionaries(
            {}, optional={"t4-1": st.integers(0, 2), "t4-4": st.integers(0, 5), "a100-8": st.integers(0, 9)}
        ),
    ),
    min_size=1,
    max_size=2,
)


@settings(max_examples=12)
@given(NEEDS, FREE, LIMITS, st.randoms(use_true_random=False))
@example(  # The smallest shape is of a NodePool that exceeds its limit already.
    [({ANY: 1000}, 1, 0, 0), ({ANY: 1000}, 2, 0, 0)], [], [Limit(-1, {"t4-4": 1})], Random(0)
)
@example(MANY_NEEDS, [("T4", (1000, 300), 16_000, 65_536)], [Limit(9, {"t4-1": 1, "t4-4": 4, "a100-8": 8})], Random(0))
def test_limits_are_not_exceeded(asked: Any, free: Any, limits: list[Limit], random: Any) -> None:
    needs, nodes = _built(asked, free)
    packing = pack_nodes(needs, SHAPES, nodes, limits=limits)
    check(packing, needs, SHAPES, nodes, limits)
    random.shuffle(needs)
    random.shuffle(limits)
    assert pack_nodes(needs, SHAPES, nodes, limits=limits) == packing
    assert all_fit(needs, SHAPES, nodes, limits=limits) == (not packing.unplaced)


def test_pods_that_fit_no_shape_are_not_limited() -> None:
    free = [FreeNode("node", "K80", (1000,), 8_000, 32_768)]
    limits = [Limit(4, {"t4-1": 1})]
    assert all_fit(needs_of(({"K80": 500}, 1), ({"K80": 500}, 1)), SHAPES, free, limits=limits)
    assert not all_fit(needs_of(({"K80": 600}, 1), ({"K80": 600}, 1)), SHAPES, free, limits=limits)


def test_room_for_a_pod_depends_only_on_the_pods_before_it() -> None:
    free = [FreeNode("node-a", "T4", (1000,), 8_000, 32_768)]
    first, large, second = needs_of((400, 1), (700, 1), (600, 1))
    assert left_out_in_order([Unit([first]), Unit([large]), Unit([second])], [], free) == {"pod-1"}
    assert left_out_in_order([Unit([large]), Unit([first]), Unit([second])], [], free) == {"pod-0", "pod-2"}


def test_pods_of_a_unit_have_room_together_or_not_at_all() -> None:
    free = [FreeNode("node-a", "T4", (1000,), 8_000, 32_768)]
    one, other, third = needs_of((600, 1), (600, 1), (500, 1))
    assert left_out_in_order([Unit([one, other]), Unit([third])], [], free) == {"pod-0", "pod-1"}
    limits = [Limit(1, {"t4-1": 1})]
    assert left_out_in_order([Unit([one, other]), Unit([third])], [T4], free, limits) == {"pod-2"}


def test_pods_after_one_that_has_no_room_have_none() -> None:
    free = [FreeNode("node-a", "T4", (1000,), 8_000, 32_768)]
    one, other, third = needs_of((600, 1), (600, 1), (300, 1))
    units = [Unit([one, other]), Unit([third], after="pod-0")]
    assert left_out_in_order(units, [], free) == {"pod-0", "pod-1", "pod-2"}
