"""The linear program over the patterns that are known, in HiGHS, warm from one solve to the next."""

import math

import numpy as np
from numpy.typing import NDArray

from plimsoll.plan.knapsack import Values
from plimsoll.plan.packing_problem import Counts, Pattern, Problem
from plimsoll.plan.solver import solver

_TOLERANCE = 1e-9


class Master:
    """Minimises the number of new GPUs, such that demand is met and supply is enough.

    After `solve`: `activity`, how many GPUs hold each of `patterns`; the duals of both kinds of row; `work`, about the
    seconds that it took.
    """

    def __init__(self, problem: Problem) -> None:
        self._items = len(problem.demand)
        self._supply_row = {t: self._items + row for row, t in enumerate(problem.supply_types)}
        self._highs = solver(
            presolve="off", primal_feasibility_tolerance=_TOLERANCE, dual_feasibility_tolerance=_TOLERANCE
        )
        nothing = np.array([], dtype=np.int32), np.array([], dtype=np.float64)
        for amount in (*problem.demand, *(-problem.supply)):
            self._highs.addRow(float(amount), math.inf, 0, *nothing)
        self.patterns: list[Pattern] = []
        self._index: set[Pattern] = set()
        self._matrix = np.zeros((256, self._items), dtype=np.int64)
        self._open: NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)
        self.work = 0.0
        self.activity: Values = np.zeros(0)
        self.item_duals: Values = np.zeros(self._items)
        self.supply_duals: Values = np.zeros(len(problem.supply))

    def gain(self, pattern: Pattern) -> float:
        """What a GPU with that pattern is worth at the master's duals, above its cost."""
        bin_type, items = pattern
        row = self._supply_row.get(bin_type)
        cost = 1.0 if row is None else self.supply_duals[row - self._items]
        return float(sum(self.item_duals[item] * count for item, count in items)) - float(cost)

    def add(self, pattern: Pattern) -> bool:
        """Adds a column; False where it is there already."""
        if pattern in self._index:
            return False
        bin_type, items = pattern
        rows = [item for item, _ in items]
        entries = [float(count) for _, count in items]
        new = bin_type not in self._supply_row
        if not new:
            rows.append(self._supply_row[bin_type])
            entries.append(-1.0)
        column = np.array(rows, dtype=np.int32), np.array(entries, dtype=np.float64)
        self._highs.addCol(float(new), 0.0, math.inf, len(rows), *column)
        if len(self.patterns) == len(self._matrix):
            self._matrix = np.concatenate([self._matrix, np.zeros_like(self._matrix)])
        for item, count in items:
            self._matrix[len(self.patterns), item] = count
        self.patterns.append(pattern)
        self._index.add(pattern)
        self._open = np.append(self._open, True)
        return True

    def reduce(self, demand: Counts, supply: Counts) -> None:
        """Goes on with less demand and supply; patterns with more of an item than is wanted are left out."""
        amounts = np.concatenate([demand, -supply]).astype(np.float64)
        rows = np.arange(len(amounts), dtype=np.int32)
        self._highs.changeRowsBounds(len(amounts), rows, amounts, np.full(len(amounts), math.inf))
        fits: NDArray[np.bool_] = np.all(self._matrix[: len(self.patterns)] <= demand, axis=1)
        changed = np.flatnonzero(fits != self._open).astype(np.int32)
        if len(changed):
            upper = np.where(fits[changed], math.inf, 0.0)
            self._highs.changeColsBounds(len(changed), changed, np.zeros(len(changed)), upper)
        self._open = fits

    def solve(self) -> bool:
        """Solves, and sets activity and duals; False where HiGHS gives no optimum."""
        self._highs.run()
        if self._highs.modelStatusToString(self._highs.getModelStatus()) != "Optimal":
            return False
        solution = self._highs.getSolution()
        duals = np.maximum(np.asarray(solution.row_dual), 0.0)
        self.item_duals, self.supply_duals = duals[: self._items], duals[self._items :]
        self.activity = np.asarray(solution.col_value)
        iterations = self._highs.getInfo().simplex_iteration_count
        self.work = 5e-5 + iterations * (5e-6 + (self._items + len(self.patterns)) * 2e-8)
        return True
