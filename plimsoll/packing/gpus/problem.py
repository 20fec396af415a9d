"""Shares as a packing problem: equal shares counted together, equal free GPUs counted together."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from plimsoll.packing.units import GPU_MILLI

Counts = NDArray[np.int64]
Pattern = tuple[int, tuple[tuple[int, int], ...]]
"""(bin type, ((item, copies), ...)): what one GPU holds."""
Patterns = Counter[Pattern]
"""How many GPUs hold each pattern."""


@dataclass(frozen=True, slots=True)
class BinType:
    """GPUs of one kind with the same free part. `count` None: GPUs that do not exist yet, as many as it takes."""

    kind: int
    capacity: int
    count: int | None = None

    @property
    def new(self) -> bool:
        return self.count is None


@dataclass(frozen=True)
class Problem:
    """`sizes[k, i]` is what a share of item i takes of a GPU of kind k, 0 where it may not go there.

    Sizes and capacities are in units of their greatest common divisor, so that tables stay small. Every item fits
    some bin type that is new.
    """

    sizes: Counts
    demand: Counts
    bin_types: tuple[BinType, ...]
    unit: int = field(default=1)
    """Thousandths that one unit of size stands for."""

    @cached_property
    def new_types(self) -> tuple[int, ...]:
        return tuple(index for index, each in enumerate(self.bin_types) if each.new)

    @cached_property
    def supply_types(self) -> tuple[int, ...]:
        return tuple(index for index, each in enumerate(self.bin_types) if not each.new)

    @cached_property
    def supply(self) -> Counts:
        """GPUs of each of `supply_types`."""
        return np.array([self.bin_types[index].count for index in self.supply_types], dtype=np.int64)

    def rest(self, pattern: Pattern) -> int:
        """Units that stay free on a GPU with that pattern."""
        kind, items = self.bin_types[pattern[0]].kind, pattern[1]
        return self.bin_types[pattern[0]].capacity - sum(int(self.sizes[kind, item]) * count for item, count in items)

    def new_bins(self, patterns: Patterns) -> int:
        """GPUs among them that do not exist yet."""
        return sum(count for pattern, count in patterns.items() if self.bin_types[pattern[0]].new)

    @classmethod
    def build(
        cls,
        items: Sequence[tuple[Mapping[int, int], int]],
        kinds: int,
        new_kinds: Sequence[int],
        supply: Mapping[tuple[int, int], int],
    ) -> "Problem":
        """Items as (thousandths by kind, how many), supply as (kind, free thousandths) to the number of GPUs."""
        sizes = np.zeros((kinds, len(items)), dtype=np.int64)
        for index, (milli, _) in enumerate(items):
            for kind, size in milli.items():
                sizes[kind, index] = size
        unit = math.gcd(*(int(size) for size in np.unique(sizes)), GPU_MILLI)
        capacities: Counter[tuple[int, int]] = Counter()
        for (kind, free), count in supply.items():
            if free // unit > 0:
                capacities[kind, free // unit] += count
        sizes //= unit
        bin_types = [BinType(kind, capacity, count) for (kind, capacity), count in sorted(capacities.items())]
        bin_types += [BinType(kind, GPU_MILLI // unit) for kind in _undominated(sizes, new_kinds)]
        demand = np.array([count for _, count in items], dtype=np.int64)
        return cls(sizes=sizes, demand=demand, bin_types=tuple(bin_types), unit=unit)


def _undominated(sizes: Counts, kinds: Sequence[int]) -> list[int]:
    """The kinds worth opening: none of the others takes all that it takes in no more space."""
    kept: list[int] = []
    for kind in kinds:
        own = sizes[kind]
        others = [other for other in kinds if other != kind]
        if not any(_covers(sizes[other], own) and (other < kind or not _covers(own, sizes[other])) for other in others):
            kept.append(kind)
    return kept


def _covers(better: Counts, worse: Counts) -> bool:
    taken = worse > 0
    return bool(np.all((better[taken] > 0) & (better[taken] <= worse[taken])))
