"""The integer program over the patterns that column generation found, solved by HiGHS."""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from plimsoll.packing.gpus.problem import Pattern, Patterns, Problem
from plimsoll.packing.gpus.solver import solver

_NODES = 2000
"""Maximum number of nodes of the search tree; unlike a time limit, it gives the same result on every machine."""


def choose_patterns(problem: Problem, patterns: Sequence[Pattern], below: int, target: int, seconds: float) -> Patterns:
    """A packing from the given patterns with fewer than `below` new GPUs; empty if none exists or none was found within
    the limits.

    Stops at `target` new GPUs, and after `seconds`. A pattern of the result may hold more copies than there are.
    """
    import highspy  # imported on first use, see `solver`

    items, supply_row = len(problem.demand), {t: row for row, t in enumerate(problem.supply_types)}
    new = [problem.bin_types[pattern[0]].new for pattern in patterns]
    total_row = items + len(supply_row)
    starts, rows, entries = [0], [], []
    for pattern, is_new in zip(patterns, new, strict=True):
        column = [(item, float(count)) for item, count in pattern[1]]
        column.append((total_row, 1.0) if is_new else (items + supply_row[pattern[0]], 1.0))
        rows += [row for row, _ in column]
        entries += [entry for _, entry in column]
        starts.append(len(rows))
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(patterns), total_row + 1
    lp.col_cost_ = np.array(new, dtype=np.float64)
    lp.col_lower_ = np.zeros(len(patterns))
    lp.col_upper_ = np.full(len(patterns), math.inf)
    # The lower bound as a constraint: the search stops when it reaches `target`.
    lp.row_lower_ = np.concatenate([problem.demand, np.zeros(len(supply_row)), [target]]).astype(np.float64)
    lp.row_upper_ = np.concatenate([np.full(items, math.inf), problem.supply, [below - 1]]).astype(np.float64)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_ = np.array(starts, dtype=np.int32)
    lp.a_matrix_.index_ = np.array(rows, dtype=np.int32)
    lp.a_matrix_.value_ = np.array(entries)
    lp.integrality_ = [highspy.HighsVarType.kInteger] * len(patterns)
    highs = solver(mip_max_nodes=_NODES, mip_abs_gap=0.999, time_limit=seconds)
    highs.passModel(lp)
    highs.run()
    if highs.getInfo().primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return Counter()
    chosen = np.rint(np.asarray(highs.getSolution().col_value)).astype(int)
    return Counter({patterns[int(index)]: int(chosen[index]) for index in np.flatnonzero(chosen)})
