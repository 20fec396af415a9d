"""Problem: the packing problem with equal shares and equal free GPUs counted together."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from plimsoll.packing.units import Grid, Milli

_MOST_UNITS: Final = 2**15
"""Maximum units of a GPU; the size of tables is proportional to it."""

Counts = NDArray[np.int64]
Parts = NDArray[np.float64]
Pattern = tuple[int, tuple[tuple[int, int], ...]]
"""(bin type, ((item, copies), ...)): the items on one GPU."""
Patterns = Counter[Pattern]
"""Number of GPUs by pattern."""


@dataclass(frozen=True, slots=True)
class BinType:
    """GPUs of one kind with the same free part. `count` is None for new GPUs, whose number is not limited."""

    kind: int
    capacity: int
    count: int | None = None
    cost: float = 1.0
    """Cost of a new GPU."""

    @property
    def new(self) -> bool:
        return self.count is None


@dataclass(frozen=True, slots=True)
class ShareCounts:
    """Shares and free parts of GPUs by number. Kinds of GPU are numbered."""

    items: Sequence[tuple[Mapping[int, Milli], int]]
    """(thousandths by kind, number of shares)"""
    kinds: int
    new_kinds: Sequence[int]
    """Kinds of which GPUs may be new. Each item must be able to use one of them."""
    supply: Mapping[tuple[int, Milli], int]
    """Number of free GPUs by (kind, free thousandths)."""

    def bounding(self) -> "Problem":
        """The problem whose bounds hold for the true sizes."""
        problem = self.problem()
        return problem if problem.exact else self.problem(optimistic=True)

    def problem(self, optimistic: bool = False) -> "Problem":
        """The problem on a grid. If sizes are not whole on the grid, an `optimistic` one gives bounds that hold for the
        true sizes, but its packings may not fit."""
        sizes: list[list[Milli]] = [[] for _ in range(self.kinds)]
        for milli, _ in self.items:
            for kind, size in milli.items():
                sizes[kind].append(size)
        grids = tuple(Grid(of_kind, _MOST_UNITS, optimistic) for of_kind in sizes)
        table = np.zeros((self.kinds, len(self.items)), dtype=np.int64)
        for index, (milli, _) in enumerate(self.items):
            for kind, size in milli.items():
                table[kind, index] = max(1, grids[kind].size(size))
        capacities: Counter[tuple[int, int]] = Counter()
        for (kind, free), count in self.supply.items():
            if (units := grids[kind].free(free)) > 0:
                capacities[kind, units] += count
        bin_types = [BinType(kind, capacity, count) for (kind, capacity), count in sorted(capacities.items())]
        opened = _undominated(table, [grid.gpu for grid in grids], self.new_kinds)
        bin_types += [BinType(kind, grids[kind].gpu) for kind in opened]
        demand = np.array([count for _, count in self.items], dtype=np.int64)
        return Problem(sizes=table, demand=demand, bin_types=tuple(bin_types), grids=grids)


@dataclass(frozen=True)
class Problem:
    """`sizes[k, i]` is the size of item i on kind k; 0 if it cannot use the kind.

    Sizes and capacities of a kind are in units of its grid. Every item fits some new bin type.
    """

    sizes: Counts
    demand: Counts
    bin_types: tuple[BinType, ...]
    grids: tuple[Grid, ...] = ()
    """The units of sizes and capacities, by kind."""

    @cached_property
    def new_types(self) -> tuple[int, ...]:
        return tuple(index for index, each in enumerate(self.bin_types) if each.new)

    @cached_property
    def supply_types(self) -> tuple[int, ...]:
        return tuple(index for index, each in enumerate(self.bin_types) if not each.new)

    @cached_property
    def supply(self) -> Counts:
        """Number of GPUs of each of `supply_types`."""
        return np.array([self.bin_types[index].count for index in self.supply_types], dtype=np.int64)

    def rest(self, pattern: Pattern) -> int:
        """Free units that remain on a GPU with that pattern."""
        kind, items = self.bin_types[pattern[0]].kind, pattern[1]
        return self.bin_types[pattern[0]].capacity - sum(int(self.sizes[kind, item]) * count for item, count in items)

    def fits(self, kind: int, held: Iterable[tuple[int, int]]) -> bool:
        """Whether these numbers of items fit an empty GPU of the kind."""
        held = [(int(self.sizes[kind, item]), copies) for item, copies in held]
        whole = self.grids[kind].gpu
        return all(size for size, _ in held) and sum(size * copies for size, copies in held) <= whole

    def new_bins(self, patterns: Patterns) -> int:
        """Number of new GPUs in these patterns."""
        return sum(count for pattern, count in patterns.items() if self.bin_types[pattern[0]].new)

    @property
    def exact(self) -> bool:
        """Whether every size is exact on its grid."""
        return all(grid.exact for grid in self.grids)


def _undominated(sizes: Counts, gpu: Sequence[int], kinds: Sequence[int]) -> list[int]:
    """The kinds of new GPUs without those that another kind dominates: it holds the same items, with at most the same
    sizes."""
    kept: list[int] = []
    for kind in kinds:
        own = sizes[kind] / gpu[kind]
        better = [_covers(sizes[other] / gpu[other], own) for other in kinds]
        worse = [_covers(own, sizes[other] / gpu[other]) for other in kinds]
        if not any(better[at] and (other < kind or not worse[at]) for at, other in enumerate(kinds) if other != kind):
            kept.append(kind)
    return kept


def _covers(better: Parts, worse: Parts) -> bool:
    taken = worse > 0
    return bool(np.all((better[taken] > 0) & (better[taken] <= worse[taken])))
