"""The lower bound of the number of GPUs: the linear program over all patterns, solved by column generation (Gilmore and
Gomory, 1961).

The program minimizes the number of new GPUs; its variables are how many GPUs hold each pattern. Every share must be
placed, and no more existing GPUs may be used than there are. Its dual prices prove the bound without the patterns.
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
"""A pattern must improve the objective by more than this."""
_ROUNDING = 1e-6
"""Tolerance that keeps floating-point noise from raising the bound to the next whole GPU."""
_SMALL = 3000
"""Product of pricing rounds and items up to which pricing is never stopped early, so that small problems do not depend
on the time limit."""
_BATCH = 30
"""Maximum number of patterns that one pricing round adds for a kind of GPU."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A lower bound with its proof, a feasible point of the dual program: no packing takes fewer new GPUs than `value`.

    `item_duals[i]` is at least 0, and no pattern of a new GPU is worth more than 1. `supply_duals[t]` is at least the
    worth of any pattern on supply type t. `value` is the sum of demand times item duals, less the sum of supply times
    supply duals.
    """

    value: float
    item_duals: Values
    supply_duals: Values
    exact: bool
    """Whether `value` is the optimum of the linear program. If not, the search ended early, and the optimum may be
    higher."""

    @property
    def gpus(self) -> int:
        """The bound rounded up to whole GPUs."""
        return max(0, math.ceil(self.value - _ROUNDING))


class Generation:
    """Column generation: adds patterns until none improves the program, or until only `reserve` seconds of the time
    limit are left.

    `limited` excludes patterns that hold more copies of an item than there are. The linear program is then tighter, and
    its bound still holds for every packing, but the duals prove it only together with this restriction.
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
        """Seconds that are left for this run."""
        return self._effort.left - self._reserve

    def run(self, demand: Counts, supply: Counts, seconds: float = math.inf, known: Iterable[Values] = ()) -> bool:
        """Sets `bound` for this demand and supply. Ends after `seconds`, except for a few rounds that small programs
        always get.

        `known` are item prices that probably prove a good bound. Returns whether the linear program over all patterns
        was solved.
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
        while self.master.solve():
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
        """The most valuable patterns at these duals. Keeps the bound that the duals prove."""
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
        # Divided by the worth of the best pattern, the duals are feasible (Farley, 1990).
        value = float(demand @ duals - supply @ worth) / most
        if value > self.bound.value:
            self.bound = Bound(value, duals / most, worth / most, exact=False)
        return found

    def _improving(self, priced: Priced, duals: Values, bin_type: int, limits: Counts | None) -> list[Pattern]:
        """For each item, the best pattern of a new GPU that contains it, if the pattern improves the program.

        Items of a pattern that was already found are skipped, so that one round improves as many items as possible.
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
    """Feasible duals that need no search: the size, and the size with small shares worth 0 and large shares worth a
    GPU.

    These are the dual feasible functions behind the bound L2 of Martello and Toth (1990), for some of their thresholds.
    """
    whole = max(problem.bin_types[index].capacity for index in problem.new_types)
    openable = problem.sizes[sorted({problem.bin_types[index].kind for index in problem.new_types})]
    least = np.where(openable > 0, openable, whole + 1).min(axis=0)
    for threshold in sorted({0, *(whole * step // 20 for step in range(1, 11))}):
        yield np.where(least > whole - threshold, 1.0, np.where(least < threshold, 0.0, least / whole))
