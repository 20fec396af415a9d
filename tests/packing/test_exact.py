"""Compares packings of few pods with an exact solution: the bound is never above it, the packing never below."""

import random
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from plimsoll.packing import UNBOUNDED, Milli
from plimsoll.packing.gpus import ANY, Program, pack
from plimsoll.packing.nodes import FreeNode, Limit, NodeShape, PodNeed, all_fit, pack_nodes
from tests.packing import checking_nodes
from tests.packing.checking import check, some_gpus, some_items
from tests.packing.comparing import worse_than_exact
from tests.packing.exact import fewest_gpus, fewest_gpus_of_nodes

KINDS = ("T4", "A100", "V100")
SIZES = st.one_of(st.sampled_from([1, 120, 300, 334, 500, 999, 1000]), st.integers(1, 1000))
EXACT_SIZES = st.one_of(
    SIZES, st.sampled_from([Fraction(1000, 3), Fraction(125, 2), Fraction(25, 3), Fraction(2000, 7)])
)


def _milli(sizes: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        sizes.map(lambda size: {ANY: size}),
        st.tuples(st.sets(st.sampled_from(KINDS), min_size=1), sizes).map(
            lambda each: dict.fromkeys(sorted(each[0]), each[1])
        ),
        st.dictionaries(st.sampled_from(KINDS), sizes, min_size=1),
    )


MILLI = _milli(SIZES)
CPU = st.one_of(st.sampled_from([0, 1, 7_000, 16_000, 48_000, 96_000]), st.integers(0, 128_000))
MEMORY = st.one_of(st.sampled_from([0, 1, 65_536, 2**19, 2**20, 1_152_000]), st.integers(0, 2**21))
PODS = st.sampled_from([UNBOUNDED, UNBOUNDED, 1, 2, 3, 110])
DEVICES = st.sampled_from([1, 1, 1, 2, 3, 4])
NEEDS = st.one_of(
    st.lists(st.tuples(_milli(EXACT_SIZES), DEVICES, CPU, MEMORY), max_size=6),
    # Equal shares of different numbers of GPUs.
    _milli(EXACT_SIZES).flatmap(lambda milli: st.lists(st.tuples(st.just(milli), DEVICES, CPU, MEMORY), max_size=6)),
)
SHAPES = st.lists(
    st.tuples(
        st.sampled_from(KINDS), st.sampled_from([1, 2, 3, 4, 8]), CPU, MEMORY, st.sampled_from([None, 1.0, 30.0]), PODS
    ),
    max_size=3,
)
FREE_GPUS = st.lists(st.one_of(st.just(1000), st.integers(0, 1000)), min_size=1, max_size=4).map(tuple)
FREE = st.lists(st.tuples(st.sampled_from(KINDS), FREE_GPUS, CPU, MEMORY, PODS), max_size=3)
T4_AND_A100 = [
    ("T4", 1, 16_000, 65_536, 1.0, UNBOUNDED),
    ("T4", 4, 64_000, 262_144, 3.5, UNBOUNDED),
    ("A100", 8, 96_000, 1_048_576, 30.0, UNBOUNDED),
]


@settings(max_examples=100)
@given(
    st.lists(MILLI, max_size=7),
    st.lists(st.tuples(st.sampled_from(KINDS), st.one_of(st.just(1000), st.integers(1, 1000))), max_size=4),
    st.sets(st.sampled_from(KINDS)),
)
@example(
    # The share on A100 alone, of which there is no new one, is to leave room for another of A100.
    [
        {"A100": 334, "V100": 789},
        {ANY: 999},
        {ANY: 999},
        {ANY: 1000},
        {"A100": 120},
        {"V100": 1000, "T4": 1000},
        {ANY: 1},
    ],
    [("V100", 500), ("T4", 804), ("V100", 1000), ("A100", 824)],
    {"T4"},
)
def test_gpus_of_shares(milli: list[dict[str, int]], free: list[tuple[str, int]], new: set[str]) -> None:
    items, supply = some_items(*milli), some_gpus(*free)
    packing = pack(items, supply, new)
    check(packing, items, supply, new)
    unplaced = {name for name, _ in packing.unplaced}
    fewest = fewest_gpus([item for item in items if item.name not in unplaced], supply, new)
    assert fewest is not None
    assert packing.lower_bound <= fewest + 1e-6
    assert packing.least <= fewest <= packing.gpus


@settings(max_examples=60)
@given(NEEDS, SHAPES, FREE)
@example(
    # A row of two loads of 1 MiB beside nodes of 1 TiB.
    [({ANY: 1000}, 1, 0, 0), ({ANY: 500}, 2, 0, 1), ({"T4": 1, "A100": 1}, 1, 0, 1)],
    T4_AND_A100,
    [],
)
@example(
    # A pod that finds no place counts for nothing.
    [
        ({"V100": 1000, "T4": 1000}, 4, 0, 0),
        ({ANY: 334}, 2, 2, 0),
        ({ANY: 300}, 2, 1, 4),
        ({"T4": 1, "A100": 500}, 4, 2, 1),
    ],
    [
        ("A100", 8, 102_997, 65_536, 3.0, 110),
        ("T4", 4, 4_444, 65_536, 30.0, 110),
        ("V100", 4, 16_000, 1_152_000, 30.0, 2),
    ],
    [("A100", (0, 1000, 784), 4, 4, 0), ("V100", (584, 1000, 500, 500), 4, 4, 1)],
)
@example(
    [({ANY: 400}, devices, 0, 0) for devices in (3, 2, 3)], [("T4", 1, 0, 0, None, 9), ("T4", 4, 0, 0, None, 9)], []
)
def test_gpus_of_nodes(asked: Any, shaped: Any, free: Any) -> None:
    needs = [PodNeed(f"pod-{number}", *each) for number, each in enumerate(asked)]
    shapes = [NodeShape(f"shape-{number}", *each) for number, each in enumerate(shaped)]
    nodes = [FreeNode(f"node-{number}", *each) for number, each in enumerate(free)]
    packing = pack_nodes(needs, shapes, nodes)
    checking_nodes.check(packing, needs, shapes, nodes)
    fewest = fewest_gpus_of_nodes([need for need in needs if need.name not in packing.unplaced], shapes, nodes)
    assert fewest is not None
    assert packing.least <= fewest <= packing.gpus
    for need in needs:
        if need.name in packing.unplaced:
            assert fewest_gpus_of_nodes([need], shapes) is None, "a shape takes it"


def _random_pods(
    generator: random.Random, least: int = 1, most: int = 9
) -> tuple[list[PodNeed], list[NodeShape], list[FreeNode]]:
    """Shares, whole GPUs and pods with several GPUs of two kinds, in addition to free parts; CPU is scarce in every
    second case."""
    scarce = generator.random() < 0.5
    needs = [
        PodNeed(
            f"pod-{number:02}",
            dict.fromkeys(generator.choice((["A"], ["B"], ["A", "B"])), _size(generator)),
            generator.choice((1, 1, 1, 1, 2, 3)),
            generator.choice((0, 1, 2, 4, 7)) if scarce else 1,
            generator.choice((0, 1, 3, 5)),
        )
        for number in range(generator.randint(least, most))
    ]
    shapes = [
        NodeShape("a-1", "A", 1, 8, 8, pods=generator.choice((3, 110))),
        NodeShape("a-4", "A", 4, 24, 24, pods=110),
        NodeShape("b-2", "B", 2, 12, 16, pods=generator.choice((4, 110))),
    ]
    free = [
        FreeNode(
            f"node-{number}",
            generator.choice("AB"),
            tuple(generator.choice((1000, 1000, 500, 300, 0, 700)) for _ in range(generator.randint(1, 4))),
            generator.choice((2, 6, 12)),
            generator.choice((4, 12)),
            generator.choice((2, 110)),
        )
        for number in range(generator.randint(0, 3))
    ]
    shapes = [shape for shape in shapes if generator.random() < 0.8]
    if generator.random() < 0.25:  # storage is scarce
        needs = [replace(need, storage_mib=generator.choice((0, 0, 1, 3, 6))) for need in needs]
        shapes = [replace(shape, storage_mib=generator.choice((4, 8, 20))) for shape in shapes]
        free = [replace(node, storage_mib=generator.choice((0, 3, 8))) for node in free]
    return needs, shapes, free


def _size(generator: random.Random) -> Milli:
    return generator.choice((100, 200, 250, 300, 330, Fraction(1000, 3), 400, 500, 600, 700, 1000))


CASES = 120
WORSE_THAN_EXACT = CASES // 100


def test_an_exact_packing_is_hardly_ever_better() -> None:
    worse = {seed: how for seed in range(CASES) if (how := worse_than_exact(*_random_pods(random.Random(seed))))}
    assert len(worse) <= WORSE_THAN_EXACT, worse


STORAGE = st.tuples(st.sampled_from([100, 250, 400, 1000]), st.integers(0, 3), st.sampled_from([0, 1, 40, 60, 100]))


@settings(max_examples=60)
@given(
    st.lists(STORAGE, min_size=1, max_size=6),
    st.lists(st.tuples(st.sampled_from([1, 2, 4]), st.sampled_from([4, 16]), st.sampled_from([50, 100, 250]))),
    st.lists(st.sampled_from([0, 60, 120]), max_size=2),
)
def test_storage_of_a_node_is_a_resource_as_any_other(
    asked: list[tuple[int, int, int]], shaped: list[tuple[int, int, int]], free: list[int]
) -> None:
    needs = [
        PodNeed(f"pod-{number}", {"T4": milli}, 1, cpu, storage_mib=storage)
        for number, (milli, cpu, storage) in enumerate(asked)
    ]
    shapes = [
        NodeShape(f"shape-{number}", "T4", gpus, cpu, 0, storage_mib=storage)
        for number, (gpus, cpu, storage) in enumerate(shaped[:3])
    ]
    nodes = [
        FreeNode(f"node-{number}", "T4", (1000,), 16, 0, storage_mib=storage) for number, storage in enumerate(free)
    ]
    assert worse_than_exact(needs, shapes, nodes) == ""


def test_an_exact_packing_of_twelve_pods_is_not_better() -> None:
    assert not worse_than_exact(*_random_pods(random.Random(8), least=12, most=12))


def _of_schedulers(seed: int) -> tuple[list[PodNeed], list[NodeShape], list[FreeNode]]:
    """Random pods, a part of them of either of two schedulers, and nodes that pods of one use already."""
    needs, shapes, free = _random_pods(random.Random(seed), most=8)
    generator = random.Random(-seed)
    needs = [replace(need, scheduler=generator.choice(("", "a", "a", "b"))) for need in needs]
    free = [replace(node, scheduler=generator.choice(("", "", "a"))) for node in free]
    return needs, shapes, free


MIXED_ON_A_NEW_NODE = (800_037, 800_044, 800_222)
"""The fewest GPUs of these, if new nodes could be shared, are too few."""


@pytest.mark.parametrize("seed", [*range(40), *MIXED_ON_A_NEW_NODE])
def test_an_exact_packing_of_pods_of_several_schedulers_is_not_better(seed: int) -> None:
    assert not worse_than_exact(*_of_schedulers(seed))


@pytest.mark.parametrize("seed", range(40))
def test_pods_of_different_schedulers_are_never_on_one_node_within_limits(seed: int) -> None:
    needs, shapes, free = _of_schedulers(seed)
    limits = [Limit(random.Random(seed).randint(0, 6), {shape.name: shape.devices for shape in shapes})]
    packing = pack_nodes(needs, shapes, free, limits=limits)
    checking_nodes.check(packing, needs, shapes, free, limits)
    fewest = fewest_gpus_of_nodes([need for need in needs if need.name not in packing.unplaced], shapes, free)
    assert fewest is not None
    assert packing.least <= fewest <= packing.gpus


@pytest.mark.parametrize("shapes", [[], [NodeShape("new", "A", 1, 8, 8)]])
def test_existing_nodes_that_either_scheduler_may_use_count_in_no_limit(shapes: list[NodeShape]) -> None:
    """Where best fit does not suffice, so that the integer program is solved, too."""
    needs = [
        *(
            PodNeed(f"a-{number}", {"A": size}, scheduler="a")
            for number, size in enumerate((500, 400, 300, 300, 250, 250))
        ),
        PodNeed("b", {"A": 300}, scheduler="b"),
    ]
    free = [FreeNode(f"idle-{number}", "A", (1000,), 8, 8) for number in range(3)]
    limits = [Limit(0, {"new": 1})]
    assert pack_nodes(needs, shapes, free, limits=limits).unplaced == ()
    assert all_fit(needs, shapes, free, limits=limits)
    assert not all_fit(needs, shapes, free[:2], limits=limits)


@pytest.mark.parametrize("seed", range(3))
def test_few_pods_on_many_kinds_of_node_reach_the_bound(seed: int) -> None:
    """Whatever the kinds are named: four instance types in four zones, and pods that differ in which they can use."""
    kinds = list("abcdefghijklmnop")
    named = dict(zip(kinds, random.Random(seed).sample(kinds, len(kinds)), strict=True))
    shapes = [
        NodeShape(named[kind], named[kind], gpus, cpu, memory, None, 110)
        for of_type, gpus, cpu, memory in (
            ("abcd", 8, 95_690, 1_088_069), ("ehij", 4, 47_810, 178_757),
            ("fgkl", 1, 7_910, 28_745), ("mnop", 1, 15_890, 59_055),
        )
        for kind in of_type
    ]  # fmt: skip

    def of(able: str, large: int | Fraction, other: int | Fraction, devices: int, cpu: int, memory: int) -> PodNeed:
        """A pod with that share of the GPUs of the largest type, and of those of the others."""
        milli = {named[kind]: large if kind in "abcd" else other for kind in able}
        return PodNeed(f"pod-{able}-{other}", milli, devices, cpu, memory)

    everywhere = "abcdefghijklmnop"
    third, part = Fraction(300_000, 409), (Fraction(20_000, 409), Fraction(2_000, 23))
    pods = [
        of("abcd", third, third, 1, 0, 0), of("bekn", *part, 1, 3000, 9216), of("abcdefghijkl", *part, 1, 0, 0),
        of("abcdefghijkl", 300, 300, 2, 500, 0), of("fgkl", 600, 600, 1, 0, 1024),
        of(everywhere, 900, 900, 1, 0, 1024), of(everywhere, 400, 400, 1, 0, 1024), of("bekn", 900, 900, 1, 0, 1024),
        of("fgkl", 250, 250, 1, 0, 1024), of("aghp", 900, 900, 1, 0, 1024), of(everywhere, 200, 200, 1, 3000, 1024),
        of("djlo", 100, 100, 1, 500, 1024),
        of(everywhere, Fraction(76_000, 409), Fraction(7_600, 23), 4, 0, 0), of("a", third, third, 1, 500, 0),
    ]  # fmt: skip
    found = pack_nodes(pods, shapes)
    assert (found.unplaced, found.gpus, found.least) == ((), 10, 10)


def test_many_pods_with_shares_of_several_gpus_are_not_solved_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    """40 of a namespace took each of two packings of a plan ten seconds, with the same number of nodes."""
    solved, minimise = list[int](), Program.minimise

    def counting(program: Program, cost: Mapping[int, float], *args: Any, **fields: Any) -> Any:
        solved.append(program.columns)
        return minimise(program, cost, *args, **fields)

    monkeypatch.setattr(Program, "minimise", counting)
    pods = [PodNeed(f"pod-{n}", {"L4": 100 + 10 * n}, 2 + n % 3, 4_000, 0) for n in range(23)]
    found = pack_nodes(pods, [NodeShape("g6.12xlarge", "L4", 4, 48_000, 196_608, None, 110)])
    assert (found.unplaced, found.gpus) == ((), 20)
    assert max(solved, default=0) < 500


IN_MIB = st.tuples(
    st.sampled_from([100, 200, 250, 300, 400, 500]), st.sampled_from([1_000, 4_000, 8_000, 12_000, 16_000])
)
"""Thousandths of a GPU of 80 GiB, of which one of 40 GiB has half, and CPU in millicores."""


@settings(max_examples=50)
@given(
    st.lists(IN_MIB, min_size=2, max_size=5),
    st.sampled_from([1, 2, 4]),
    st.sampled_from([8_000, 16_000, 32_000]),
    st.sampled_from([1, 2]),
    st.sampled_from([8_000, 16_000, 32_000]),
)
# The CPU of a pod is the same on both, although its share is not.
@example([(300, 1_000), (250, 16_000), (300, 12_000), (250, 12_000), (250, 16_000)], 1, 32_000, 1, 16_000)
def test_shares_in_mib_on_gpus_of_two_sizes_with_scarce_cpu(
    asked: list[tuple[int, int]], small_gpus: int, small_cpu: int, large_gpus: int, large_cpu: int
) -> None:
    needs = [
        PodNeed(f"pod-{number}", {"40 GiB": 2 * milli, "80 GiB": milli}, 1, cpu, 0)
        for number, (milli, cpu) in enumerate(asked)
    ]
    small = NodeShape("small", "40 GiB", small_gpus, small_cpu, 2**20)
    large = NodeShape("large", "80 GiB", large_gpus, large_cpu, 2**20)
    assert worse_than_exact(needs, [small, large], []) == ""


def test_equal_free_gpus_are_filled_by_different_patterns() -> None:
    """Five GPUs with 800 thousandths free each: any other way needs a new one."""
    sizes = [120, 50, 330, 300, 90, 420, 120, 170, 250, 200, 30, 320, 430, 30, 340, 320, 230, 250]
    needs = [PodNeed(f"pod-{number:02}", {"T4": milli}, 1, 0, 0) for number, milli in enumerate(sizes)]
    nodes = [FreeNode(f"node-{number}", "T4", (800,), 2**20, 2**20) for number in range(5)]
    packing = pack_nodes(needs, [NodeShape("new", "T4", 1, 2**20, 2**20)], nodes)
    checking_nodes.check(packing, needs, [], nodes)
    assert packing.gpus == 0
