"""The lower bound without a search: never above the fewest GPUs, and tight for equal sizes."""

from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.packing import Milli
from plimsoll.packing.gpus import Item, least_gpus
from tests.packing.exact import fewest_gpus


@pytest.mark.parametrize(
    ("sizes", "least"),
    [
        ([600] * 7, 7),
        ([350] * 6, 3),
        ([500] * 7, 4),
        ([Fraction(1000, 3)] * 7, 3),
        ([100] * 5, 1),
        ([600] * 3 + [400], 3),
        ([], 0),
    ],
)
def test_known_bounds(sizes: list[Milli], least: int) -> None:
    assert least_gpus(Counter(sizes)) == least


@given(st.lists(st.integers(1, 1000), max_size=8))
def test_it_is_never_above_the_fewest_gpus(sizes: list[int]) -> None:
    items = [Item(str(number), {"L4": size}) for number, size in enumerate(sizes)]
    fewest = fewest_gpus(items, (), ["L4"])
    assert fewest is not None
    assert least_gpus(Counter(sizes)) <= fewest
