"""Program: a linear or integer program that is built by columns and rows and solved by HiGHS."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from plimsoll.packing.gpus.solver import SOLVER_SECONDS, solver

_NODES = 200
"""Default maximum number of nodes of the search tree; unlike a time limit, it gives the same result on every
machine."""


@dataclass(slots=True)
class Program:
    """Constraints `lower <= sum of coefficients * columns <= upper`. All columns are at least 0."""

    columns: int = 0
    integers: list[int] = field(default_factory=list)
    rows: list[tuple[float, float, dict[int, float]]] = field(default_factory=list)

    def column(self, integer: bool = False) -> int:
        self.columns += 1
        if integer:
            self.integers.append(self.columns - 1)
        return self.columns - 1

    def minimise(
        self,
        cost: Mapping[int, float],
        nodes: int = _NODES,
        sub_programs: bool = True,
        gap: float = 1e-6,
    ) -> tuple[list[float], float] | None:
        """Minimizes the cost, given by column. Returns the values of the columns and a lower bound of the cost; None if
        no solution was found.

        `nodes` limits the search tree. `sub_programs` are solved to find solutions. A solution
        that costs at most `gap` more than the lower bound is good enough.
        """
        import highspy  # imported on first use, see `solver`

        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = self.columns, len(self.rows)
        lp.col_cost_ = np.array([cost.get(column, 0.0) for column in range(self.columns)])
        lp.col_lower_, lp.col_upper_ = np.zeros(self.columns), np.full(self.columns, math.inf)
        lp.row_lower_ = np.array([lower for lower, _, _ in self.rows])
        lp.row_upper_ = np.array([upper for _, upper, _ in self.rows])
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = np.cumsum([0, *(len(entries) for _, _, entries in self.rows)], dtype=np.int32)
        lp.a_matrix_.index_ = np.array([column for *_, entries in self.rows for column in entries], dtype=np.int32)
        lp.a_matrix_.value_ = np.array([value for *_, entries in self.rows for value in entries.values()])
        integer = set(self.integers)
        kinds = highspy.HighsVarType
        lp.integrality_ = [kinds.kInteger if column in integer else kinds.kContinuous for column in range(self.columns)]
        highs = solver(
            time_limit=SOLVER_SECONDS,
            mip_max_nodes=nodes,
            mip_abs_gap=gap,
            mip_rel_gap=0.0,
            # This heuristic takes five times as long as the rest of the solution of a small program.
            mip_heuristic_run_feasibility_jump=False,
            mip_heuristic_run_rens=sub_programs,
            mip_heuristic_run_rins=sub_programs,
        )
        highs.passModel(lp)
        highs.run()
        info = highs.getInfo()
        if info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
            return None
        return [float(value) for value in highs.getSolution().col_value], float(info.mip_dual_bound)
