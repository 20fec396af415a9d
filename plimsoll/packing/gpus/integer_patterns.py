"""The integer program over the patterns that column generation found, solved by HiGHS."""

import math
from collections import Counter
from collections.abc import Sequence

from plimsoll.packing.gpus.integer_program import Program
from plimsoll.packing.gpus.problem import Pattern, Patterns, Problem

_NODES = 2000
"""Maximum number of nodes of the search tree; unlike a time limit, it gives the same result on every machine."""


def choose_patterns(problem: Problem, patterns: Sequence[Pattern], below: int, target: int) -> Patterns:
    """A packing from the given patterns with fewer than `below` new GPUs; empty if none exists or none was found within
    the limits.

    Stops at `target` new GPUs. A pattern of the result may hold more copies than there are.
    """
    items, supply_row = len(problem.demand), {t: row for row, t in enumerate(problem.supply_types)}
    program, cost = Program(), dict[int, float]()
    rows: list[dict[int, float]] = [{} for _ in range(items + len(supply_row) + 1)]
    for pattern in patterns:
        column = program.column(integer=True)
        for item, count in pattern[1]:
            rows[item][column] = float(count)
        if problem.bin_types[pattern[0]].new:
            cost[column] = rows[-1][column] = 1.0
        else:
            rows[items + supply_row[pattern[0]]][column] = 1.0
    # The lower bound as a constraint: the search stops when it reaches `target`.
    lower = (*map(float, problem.demand), *(0.0 for _ in supply_row), float(target))
    upper = (*(math.inf for _ in range(items)), *map(float, problem.supply), below - 1.0)
    program.rows += zip(lower, upper, rows, strict=True)
    # The number of GPUs is whole, so a gap below 1 is none.
    found = program.minimise(cost, _NODES, gap=0.999)
    chosen = () if found is None else map(round, found[0])
    return Counter({pattern: count for pattern, count in zip(patterns, chosen, strict=False) if count})
