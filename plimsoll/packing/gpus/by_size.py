"""Packs shares by their sizes alone, as if every share could use every kind of GPU. Fast, gives a lower bound, and
mostly an optimal packing.

If shares take the same part of every kind of GPU and differ only in which kinds they may use, there are many different
shares of few sizes. A lower bound for the sizes is a lower bound for the shares, and shares of one size can replace
each other: each GPU of the packing of sizes is assigned a kind, and shares that may use this kind.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass

import numpy as np

from plimsoll.packing.gpus.best_fit import best_fit
from plimsoll.packing.gpus.knapsack import Values
from plimsoll.packing.gpus.problem import BinType, Counts, Patterns, Problem


@dataclass(frozen=True)
class Sizes:
    """The packing problem of the sizes alone."""

    problem: Problem
    """The problem of the sizes: one kind of GPU, one item per size."""
    size_of: tuple[int, ...]
    """Index of the size of each share."""

    @classmethod
    def of(cls, problem: Problem) -> "Sizes | None":
        """None if there is only one kind of GPU, if free GPUs exist, or if a share's size differs between kinds."""
        kinds = [problem.bin_types[index].kind for index in problem.new_types]
        sizes = problem.sizes[kinds]
        largest = sizes.max(axis=0)
        same = len({problem.grids[kind].gpu for kind in kinds}) == 1
        if len(kinds) < 2 or not same or problem.supply_types or ((sizes > 0) & (sizes != largest)).any():
            return None
        distinct, size_of = np.unique(-largest, return_inverse=True)
        demand = np.bincount(size_of, weights=problem.demand).astype(np.int64)
        bin_type = BinType(0, problem.bin_types[problem.new_types[0]].capacity)
        return cls(
            Problem(-distinct[None, :], demand, (bin_type,), problem.grids[kinds[0] : kinds[0] + 1]),
            tuple(int(each) for each in size_of),
        )

    def duals(self, of_sizes: Values) -> Values:
        """Dual prices of the shares from those of the sizes. They are feasible: no GPU holds shares worth more than
        sizes."""
        return of_sizes[list(self.size_of)]

    def to_shares(self, problem: Problem, packing: Patterns) -> Patterns:
        """Converts a packing of sizes into one of shares. Shares that find no place in it are placed by best fit."""
        left = problem.demand.copy()
        waiting = _Waiting(problem, self.size_of, left)
        fixed: Patterns = Counter()
        for (_, sizes), count in sorted(packing.items()):
            for _ in range(count):
                bin_type = waiting.best_type([size for size, _ in sizes])
                held: Counter[int] = Counter()
                for size, copies in sizes:
                    for _ in range(copies):
                        item = waiting.first(size, bin_type)
                        if item is not None:
                            left[item] -= 1
                            held[item] += 1
                if held:
                    fixed[bin_type, tuple(sorted(held.items()))] += 1
        return best_fit(problem, left, onto=fixed)


class _Waiting:
    """Shares without a place, by size and kind of GPU, those with the fewest possible kinds first."""

    def __init__(self, problem: Problem, size_of: tuple[int, ...], left: Counts) -> None:
        self._left = left
        self._queues: dict[tuple[int, int], list[int]] = defaultdict(list)
        allowed = {index: problem.sizes[problem.bin_types[index].kind] > 0 for index in problem.new_types}
        self._types = [[index for index in allowed if allowed[index][item]] for item in range(len(size_of))]
        for item in sorted(range(len(size_of)), key=lambda item: (-len(self._types[item]), item)):
            for index in self._types[item]:
                self._queues[size_of[item], index].append(item)

    def first(self, size: int, bin_type: int) -> int | None:
        queue = self._queues[size, bin_type]
        while queue and not self._left[queue[-1]]:
            queue.pop()
        return queue[-1] if queue else None

    def best_type(self, sizes: list[int]) -> int:
        """The kind of GPU for these sizes: it can hold the share of the first size that has the fewest possible kinds,
        and shares of as many of the other sizes as possible."""
        types = sorted({index for _, index in self._queues})
        firsts = [item for index in types if (item := self.first(sizes[0], index)) is not None]
        if firsts:
            types = self._types[min(firsts, key=lambda item: (len(self._types[item]), item))]
        return max(types, key=lambda index: (sum(self.first(size, index) is not None for size in sizes), -index))
