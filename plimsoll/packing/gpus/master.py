"""Master: the linear program over the known patterns, in HiGHS, which continues from the last solution."""

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from plimsoll.packing.gpus.knapsack import Values
from plimsoll.packing.gpus.problem import Counts, Pattern, Problem
from plimsoll.packing.gpus.solver import SOLVER_SECONDS, solver

_TOLERANCE = 1e-9
"""Feasibility tolerance of the solver (its default is 1e-7), no larger than the gain of a pattern that is added."""


class Master:
    """Minimizes the cost of new GPUs, subject to the demand and the supply.

    After `solve`, `activity` is the number of GPUs with each of `patterns`, there are duals of demand and supply, and
    `work` is the approximate seconds that the solve took.
    """

    def __init__(self, problem: Problem, pairs: Sequence[tuple[int, int]] = ()) -> None:
        """`pairs` are (item, another item that can replace it), see `dual_cuts`."""
        self._items = len(problem.demand)
        self._supply_row = {t: self._items + row for row, t in enumerate(problem.supply_types)}
        self._costs = [each.cost for each in problem.bin_types]
        self._highs = solver(
            presolve="off", primal_feasibility_tolerance=_TOLERANCE, dual_feasibility_tolerance=_TOLERANCE
        )
        nothing = np.array([], dtype=np.int32), np.array([], dtype=np.float64)
        for amount in (*problem.demand, *(-problem.supply)):
            self._highs.addRow(float(amount), math.inf, 0, *nothing)
        if pairs:
            self._highs.addCols(
                len(pairs), np.zeros(len(pairs)), np.zeros(len(pairs)), np.full(len(pairs), math.inf), 2 * len(pairs),
                np.arange(0, 2 * len(pairs), 2, dtype=np.int32), np.array(pairs, dtype=np.int32).ravel(),
                np.tile([-1.0, 1.0], len(pairs)),
            )  # fmt: skip
        self._pairs = len(pairs)
        self.patterns: list[Pattern] = []
        self._index: set[Pattern] = set()
        self._matrix = np.zeros((0, self._items), dtype=np.int32)
        self._open: NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)
        self.work = 0.0
        self.activity: Values = np.zeros(0)
        self.item_duals: Values = np.zeros(self._items)
        self.supply_duals: Values = np.zeros(len(problem.supply))

    def gain(self, pattern: Pattern) -> float:
        """Worth of a GPU with this pattern at the current duals, less its cost."""
        bin_type, items = pattern
        row = self._supply_row.get(bin_type)
        cost = self._costs[bin_type] if row is None else self.supply_duals[row - self._items]
        return float(sum(self.item_duals[item] * count for item, count in items)) - float(cost)

    def add(self, patterns: Iterable[Pattern]) -> bool:
        """Adds the new ones of these patterns as columns, in their order. Returns whether there were any."""
        added = [pattern for pattern in dict.fromkeys(patterns) if pattern not in self._index]
        if not added:
            return False
        costs: list[float] = []
        starts: list[int] = []
        rows: list[int] = []
        entries: list[int] = []
        for bin_type, items in added:
            starts.append(len(rows))
            rows += [item for item, _ in items]
            entries += [count for _, count in items]
            new = bin_type not in self._supply_row
            costs.append(self._costs[bin_type] if new else 0.0)
            if not new:
                rows.append(self._supply_row[bin_type])
                entries.append(-1)
        self._highs.addCols(
            len(added), np.array(costs), np.zeros(len(added)), np.full(len(added), math.inf),
            len(rows), np.array(starts, dtype=np.int32), np.array(rows, dtype=np.int32), np.array(entries, dtype=float),
        )  # fmt: skip
        self.patterns += added
        self._index.update(added)
        return True

    def reduce(self, demand: Counts, supply: Counts) -> None:
        """Reduces demand and supply. Patterns with more copies of an item than the demand are left out."""
        self._extend()
        amounts = np.concatenate([demand, -supply]).astype(np.float64)
        rows = np.arange(len(amounts), dtype=np.int32)
        self._highs.changeRowsBounds(len(amounts), rows, amounts, np.full(len(amounts), math.inf))
        fits: NDArray[np.bool_] = np.all(self._matrix <= demand, axis=1)
        changed = np.flatnonzero(fits != self._open).astype(np.int32)
        if len(changed):
            upper = np.where(fits[changed], math.inf, 0.0)
            self._highs.changeColsBounds(len(changed), changed + self._pairs, np.zeros(len(changed)), upper)
        self._open = fits

    def _extend(self) -> None:
        """Extends the table of patterns by those that were added since the last call."""
        added = self.patterns[len(self._matrix) :]
        matrix = np.zeros((len(added), self._items), dtype=np.int32)
        for index, (_, items) in enumerate(added):
            for item, count in items:
                matrix[index, item] = count
        self._matrix = np.concatenate([self._matrix, matrix])
        self._open = np.append(self._open, np.ones(len(added), dtype=np.bool_))

    def solve(self) -> bool:
        """Solves the program and sets activity and duals. Returns False if HiGHS finds no optimum in time."""
        # HiGHS's time limit covers all runs of an instance.
        self._highs.setOptionValue("time_limit", self._highs.getRunTime() + SOLVER_SECONDS)
        self._highs.run()
        if self._highs.modelStatusToString(self._highs.getModelStatus()) != "Optimal":
            return False
        solution = self._highs.getSolution()
        duals = np.maximum(np.asarray(solution.row_dual), 0.0)
        self.item_duals, self.supply_duals = duals[: self._items], duals[self._items :]
        self.activity = np.asarray(solution.col_value)[self._pairs :]
        iterations = self._highs.getInfo().simplex_iteration_count
        self.work = 5e-5 + iterations * (5e-6 + (self._items + len(self.patterns)) * 2e-8)
        return True
