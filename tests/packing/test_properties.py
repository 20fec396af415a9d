"""Properties of every packing."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from plimsoll.packing.gpus import ANY, FreeGPU, Item, pack
from tests.packing.checking import check, some_gpus, some_items

SIZES = st.one_of(st.integers(1, 1000), st.sampled_from([100, 200, 250, 330, 334, 470, 500, 501, 600, 810]))
KINDS = ("T4", "A100", "H100")
CONSTRAINED = st.one_of(
    SIZES.map(lambda size: {ANY: size}),
    st.dictionaries(st.sampled_from(KINDS), SIZES, min_size=1, max_size=3),
    st.tuples(st.lists(st.sampled_from(KINDS), min_size=1, max_size=2, unique=True), SIZES).map(
        lambda given: dict.fromkeys(given[0], given[1])
    ),
)
SUPPLY = st.lists(st.tuples(st.sampled_from((*KINDS, "V100")), st.integers(1, 1000)), max_size=12)


@given(st.lists(SIZES, max_size=60))
def test_shares_on_any_gpu(sizes: list[int]) -> None:
    items = some_items(*sizes)
    packing = pack(items)
    check(packing, items)
    assert packing.gap <= 1
    assert packing.gpus >= -(-sum(sizes) // 1000)


@given(st.lists(CONSTRAINED, max_size=30), SUPPLY)
def test_constraints_are_never_mixed(milli: list[dict[str, int]], free: list[tuple[str, int]]) -> None:
    items, supply = some_items(*milli), some_gpus(*free)
    check(pack(items, supply), items, supply)


@given(st.lists(CONSTRAINED, max_size=25), SUPPLY, st.randoms(use_true_random=False))
def test_order_does_not_matter(milli: list[dict[str, int]], free: list[tuple[str, int]], random: Any) -> None:
    items, supply = some_items(*milli), some_gpus(*free)
    ordered = pack(items, supply)
    random.shuffle(items)
    random.shuffle(supply)
    assert pack(items, supply) == ordered


@given(st.lists(CONSTRAINED, min_size=1, max_size=30))
def test_a_repeated_packing_onto_its_own_gpus_needs_no_new_ones(milli: list[dict[str, int]]) -> None:
    items = some_items(*milli)
    first = pack(items)
    supply = [FreeGPU(f"new-{number}", each.kinds[0], 1000) for number, each in enumerate(first.bins)]
    second = pack(items, supply)
    check(second, items, supply)
    assert second.gpus == 0
    assert second.least == 0


@given(st.lists(CONSTRAINED, max_size=25), SUPPLY)
def test_more_supply_never_needs_more_new_gpus(milli: list[dict[str, int]], free: list[tuple[str, int]]) -> None:
    items = some_items(*milli)
    assert pack(items, some_gpus(*free)).gpus <= pack(items).best_fit


@given(st.lists(CONSTRAINED, max_size=25), SUPPLY, st.sets(st.sampled_from(KINDS)))
def test_only_kinds_that_may_be_new_are_new(
    milli: list[dict[str, int]], free: list[tuple[str, int]], new: set[str]
) -> None:
    items, supply = some_items(*milli), some_gpus(*free)
    packing = pack(items, supply, new)
    check(packing, items, supply, new)
    refused = {name for name, _ in packing.unplaced}
    for item in items:
        assert item.name not in refused or not (new if ANY in item.milli else new & item.milli.keys())
    for each in packing.bins:
        assert each.gpu is not None or set(each.kinds) <= new


@given(st.lists(CONSTRAINED, max_size=40), SUPPLY)
def test_without_time_the_result_is_best_fit_with_a_proven_bound(
    milli: list[dict[str, int]], free: list[tuple[str, int]]
) -> None:
    items, supply = some_items(*milli), some_gpus(*free)
    packing = pack(items, supply, seconds=0)
    check(packing, items, supply)


@given(st.lists(st.tuples(st.integers(1, 400), st.integers(1, 400)), min_size=1, max_size=12))
def test_gpus_that_can_be_filled_are_filled(pairs: list[tuple[int, int]]) -> None:
    """Each triple fills one GPU, so the fewest GPUs are known."""
    triples = [(a, b, 1000 - a - b) for a, b in pairs]
    items = [Item(f"{number}-{part}", {ANY: size}) for number, triple in enumerate(triples)
             for part, size in enumerate(triple)]  # fmt: skip
    packing = pack(items)
    assert packing.least == len(triples)
    assert packing.gpus <= len(triples) + 1
