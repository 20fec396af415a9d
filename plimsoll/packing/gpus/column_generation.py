"""The lower bound: the linear program over all patterns, by column generation (Gilmore and Gomory, 1961).

minimise the number of new GPUs, over how many GPUs hold each pattern, such that every share is held and no more
existing GPUs are used than there are. Its dual prices are a proof that anyone can check without the patterns.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from plimsoll.packing.gpus.effort import Effort
from plimsoll.packing.gpus.knapsack import Knapsack, Priced, Values
from plimsoll.packing.gpus.master import Master
from plimsoll.packing.gpus.problem import Counts, Pattern, Problem

_TOLERANCE = 1e-9
"""A pattern that gains less than this does not improve the master."""
_ROUNDING = 1e-6
"""Floating-point noise that must not lift the bound to the next whole GPU."""
_SMALL = 3000
"""Rounds of pricing times items that are always run, so that the speed of the machine matters for large ones only."""
_BATCH = 30
"""Patterns that one round of pricing adds for a kind of GPU."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A feasible point of the dual, so a proof: no packing takes fewer new GPUs than `value`.

    `item_duals[i]` is at least 0, and no pattern of a new GPU is worth more than 1. `supply_duals[t]` is at least what
    any pattern of that supply type is worth. `value` is the sum of demand times item duals, less the sum of supply
    times supply duals.
    """

    value: float
    item_duals: Values
    supply_duals: Values
    exact: bool
    """It is the optimum of the linear program; False: time ran out, and the optimum may be higher."""

    @property
    def gpus(self) -> int:
        """The bound in whole GPUs."""
        return max(0, math.ceil(self.value - _ROUNDING))


class Generation:
    """Column generation on a master: prices patterns until none improves it, or time is up but for a reserve.

    `limited` leaves out patterns that hold more of an item than is wanted. The linear program is tighter then, and its
    bound holds for every packing all the same; but its duals prove it only to those who leave them out, too.
    """

    def __init__(
        self, problem: Problem, master: Master, effort: Effort, reserve: float = 0.0, limited: bool = False
    ) -> None:
        self._problem = problem
        self.master = master
        self._effort = effort
        self._reserve = reserve
        self._limited = limited
        self.bound = Bound(0.0, np.zeros(len(problem.demand)), np.zeros(len(problem.supply)), exact=False)

    @property
    def left(self) -> float:
        """Seconds."""
        return self._effort.left - self._reserve

    def run(self, demand: Counts, supply: Counts, seconds: float = math.inf, known: Iterable[Values] = ()) -> bool:
        """Sets `bound` for that demand and supply; ends after `seconds`, but for a few rounds that small programs get.

        `known` are prices of items that are likely to prove a good bound.
        True where the linear program over all patterns is solved.
        """
        if self._limited:
            self.master.reduce(demand, supply)
        self.bound = Bound(0.0, np.zeros(len(demand)), np.zeros(len(supply)), exact=False)
        knapsacks = self._knapsacks(demand if self._limited else None)
        for duals in () if self._limited else (*known, *simple_duals(self._problem)):
            if self.bound.value == 0.0 or self.left > 0:
                self._price(knapsacks, duals, demand, supply)
        enough = self.left - seconds
        rounds = _SMALL // len(demand)
        while self.master.solve(self._effort.wall(self._effort.left)):
            self._effort.spend(self.master.work)
            if not self._add(self._price(knapsacks, self.master.item_duals, demand, supply)):
                self.bound = replace(self.bound, exact=True)
                return True
            rounds -= 1
            if self.left <= 0 or (rounds < 0 and self.left <= enough):
                return False
        return False

    def _add(self, patterns: list[Pattern]) -> bool:
        return self.master.add(pattern for pattern in patterns if self.master.gain(pattern) > _TOLERANCE)

    def _knapsacks(self, limits: Counts | None) -> dict[int, Knapsack]:
        capacities: dict[int, int] = {}
        for each in self._problem.bin_types:
            capacities[each.kind] = max(each.capacity, capacities.get(each.kind, 0))
        bounds = None if limits is None else limits.tolist()
        return {kind: Knapsack(self._problem.sizes[kind].tolist(), capacity, bounds)
                for kind, capacity in sorted(capacities.items())}  # fmt: skip

    def _price(self, knapsacks: dict[int, Knapsack], duals: Values, demand: Counts, supply: Counts) -> list[Pattern]:
        """The patterns that are worth the most at these duals; keeps the bound that the duals prove."""
        problem = self._problem
        found: list[Pattern] = []
        most = 1.0
        worth = np.zeros(len(supply))
        for kind, knapsack in knapsacks.items():
            priced = knapsack.price(duals)
            self._effort.spend(knapsack.work)
            for row, bin_type in enumerate(problem.supply_types):
                each = problem.bin_types[bin_type]
                if each.kind == kind:
                    worth[row] = priced.values[each.capacity]
                    found.append((bin_type, tuple(priced.pattern(each.capacity).items())))
            for bin_type in problem.new_types:
                each = problem.bin_types[bin_type]
                if each.kind == kind:
                    most = max(most, float(priced.values[each.capacity]))
                    found.append((bin_type, tuple(priced.pattern(each.capacity).items())))
                    found += self._improving(priced, duals, bin_type, demand if self._limited else None)
        value = float(demand @ duals - supply @ worth) / most
        if value > self.bound.value:
            self.bound = Bound(value, duals / most, worth / most, exact=False)
        return found

    def _improving(self, priced: Priced, duals: Values, bin_type: int, limits: Counts | None) -> list[Pattern]:
        """For one item after the other the best pattern of a new GPU that contains it, while they pay.

        Items that stand in a pattern before are passed over, so that one round improves as many as it can.
        """
        each = self._problem.bin_types[bin_type]
        sizes = self._problem.sizes[each.kind]
        items = np.flatnonzero((sizes > 0) & (sizes <= each.capacity) & (duals > 0))
        worth = duals[items] + priced.values[each.capacity - sizes[items]]
        covered: set[int] = set()
        found: list[Pattern] = []
        for index in np.argsort(-worth, kind="stable"):
            item = int(items[index])
            if worth[index] <= 1.0 + _TOLERANCE or len(found) == _BATCH:
                break
            if item in covered:
                continue
            counts = priced.pattern(each.capacity - int(sizes[item]))
            counts[item] = counts.get(item, 0) + 1
            if limits is None or counts[item] <= limits[item]:
                covered |= counts.keys()
                found.append((bin_type, tuple(sorted(counts.items()))))
        return found


def simple_duals(problem: Problem) -> Iterator[Values]:
    """Feasible duals that need no search: the size, and the size with the small for nothing and the large for a GPU.

    The dual feasible functions behind the bound L2 of Martello and Toth (1990), for a few of their thresholds.
    """
    whole = max(problem.bin_types[index].capacity for index in problem.new_types)
    openable = problem.sizes[sorted({problem.bin_types[index].kind for index in problem.new_types})]
    least = np.where(openable > 0, openable, whole + 1).min(axis=0)
    for threshold in sorted({0, *(whole * step // 20 for step in range(1, 11))}):
        yield np.where(least > whole - threshold, 1.0, np.where(least < threshold, 0.0, least / whole))
