"""The most valuable items for each capacity: the bounded knapsack problem, by dynamic programming.

This is the pricing step of column generation (Gilmore and Gomory, 1961), where the value of an item is its dual price.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

# A smaller gain is floating-point noise of the duals; with it, patterns would depend on the order of additions.
_GAIN = 1e-12


@dataclass(frozen=True, slots=True)
class Priced:
    """`values[c]` is the largest value that fits capacity `c`, for `c` from 0 to the knapsack's capacity."""

    values: Values
    _taken: NDArray[np.bool_]
    _steps: Sequence[tuple[int, int, int]]

    def pattern(self, capacity: int) -> dict[int, int]:
        """Number of copies of each item that reach `values[capacity]`, by item in increasing order."""
        counts: dict[int, int] = {}
        above = len(self._steps)
        while len(used := np.flatnonzero(self._taken[:above, capacity])):
            above = int(used[-1])
            item, copies, weight = self._steps[above]
            counts[item] = counts.get(item, 0) + copies
            capacity -= weight
        return dict(sorted(counts.items()))


class Knapsack:
    """A capacity and the sizes of the items; their values are arguments of `price`.

    `sizes[i]` is the size of item i; 0 excludes the item. `limits[i]` is the maximum number of its copies; with None,
    only the capacity limits them.
    """

    def __init__(self, sizes: Sequence[int], capacity: int, limits: Sequence[int] | None = None) -> None:
        self.capacity = capacity
        self._steps: list[tuple[int, int, int]] = []
        for item, size in enumerate(sizes):
            if not 0 < size <= capacity:
                continue
            most = capacity // size
            left = most if limits is None else min(most, limits[item])
            copies = 1
            # Copies in powers of two and a remainder reach every number up to the limit.
            while left > 0:
                copies = min(copies, left)
                self._steps.append((item, copies, copies * size))
                left -= copies
                copies *= 2

    @property
    def work(self) -> float:
        """Approximate seconds that one call of `price` takes."""
        return len(self._steps) * (3e-6 + self.capacity * 6e-10)

    def price(self, values: Values) -> Priced:
        """Solves the problem for all capacities. Items without value are left out."""
        steps = [step for step in self._steps if values[step[0]] > 0]
        best = np.zeros(self.capacity + 1)
        taken = np.zeros((len(steps), self.capacity + 1), dtype=bool)
        for index, (item, copies, weight) in enumerate(steps):
            gained = best[: self.capacity + 1 - weight] + values[item] * copies
            tail = best[weight:]
            np.greater(gained, tail + _GAIN, out=taken[index, weight:])
            np.maximum(tail, gained, out=tail)
        return Priced(best, taken, steps)
