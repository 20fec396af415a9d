"""Diving: turns a solution of the linear program into whole GPUs. It fixes the patterns with whole numbers, else the
largest fraction, and solves the rest again."""

from collections import Counter

import numpy as np

from plimsoll.packing.gpus.best_fit import best_fit
from plimsoll.packing.gpus.column_generation import Generation
from plimsoll.packing.gpus.master import Master
from plimsoll.packing.gpus.problem import Counts, Pattern, Patterns, Problem

_WHOLE = 1e-6
"""Tolerance for the solver's rounding: a value this little below a whole number is that number."""
_STEPS_AT_ONCE = 5
"""A step may take this many times its even share of the time."""


def dive(problem: Problem, generation: Generation, best: Patterns, target: int, up: float) -> Patterns:
    """A packing with fewer new GPUs than `best` if one is found, else `best`. Stops at `target` new GPUs, or when the
    time is over.

    The generation must be `limited`, and its master must have a solution of the whole problem; both are left with the
    demand that was not fixed. Fractions of at least `up` count as whole.
    """
    demand, supply = problem.demand.copy(), problem.supply.copy()
    fixed: Patterns = Counter()
    while demand.any():
        before = int(demand.sum())
        for pattern, count in _fixable(generation.master, up):
            _fix(problem, fixed, (demand, supply), pattern, count)
        if int(demand.sum()) == before:
            break  # the solver found no further solution
        candidate = best_fit(problem, demand, onto=fixed)
        if problem.new_bins(candidate) < problem.new_bins(best):
            best = candidate
        if problem.new_bins(best) <= target or problem.new_bins(fixed) >= problem.new_bins(best):
            break
        if generation.left <= 0:
            break
        # The fractional number of GPUs limits the number of steps; mostly far fewer are needed.
        steps = 1.0 + generation.master.activity.sum()
        generation.run(demand, supply, seconds=_STEPS_AT_ONCE * generation.left / steps)
    return best


def trimmed(problem: Problem, patterns: Patterns) -> Patterns:
    """The same patterns without copies in excess of the demand."""
    demand, supply = problem.demand.copy(), problem.supply.copy()
    kept: Patterns = Counter()
    for pattern, count in sorted(patterns.items()):
        _fix(problem, kept, (demand, supply), pattern, count)
    return kept


def _fixable(master: Master, up: float) -> list[tuple[Pattern, int]]:
    activity, patterns = master.activity, master.patterns
    whole = np.floor(activity + (1.0 - up) + _WHOLE).astype(np.int64)
    if whole.any():
        return [(patterns[index], int(whole[index])) for index in np.flatnonzero(whole)]
    return [(patterns[int(np.argmax(activity))], 1)] if len(activity) else []


def _fix(problem: Problem, fixed: Patterns, left: tuple[Counts, Counts], pattern: Pattern, count: int) -> None:
    """Adds `count` GPUs with this pattern to `fixed`, without items that are no longer needed, and subtracts them from
    `left`, which is (demand, supply)."""
    demand, supply = left
    bin_type = pattern[0]
    if not problem.bin_types[bin_type].new:
        row = problem.supply_types.index(bin_type)
        count = min(count, int(supply[row]))
        supply[row] -= count
    for _ in range(count):
        wanted = _wanted(problem, demand, pattern)
        if not wanted:
            return
        fixed[bin_type, wanted] += 1
        for item, copies in wanted:
            demand[item] -= copies


def _wanted(problem: Problem, demand: Counts, pattern: Pattern) -> tuple[tuple[int, int], ...]:
    """The items of a GPU with this pattern, limited to the remaining demand. Missing items are replaced by the largest
    ones that fit."""
    bin_type, items = pattern
    taken = {item: min(copies, int(demand[item])) for item, copies in items if demand[item]}
    if sum(taken.values()) < sum(copies for _, copies in items):
        kind = problem.bin_types[bin_type].kind
        room = problem.bin_types[bin_type].capacity - sum(
            int(problem.sizes[kind, item]) * copies for item, copies in taken.items()
        )
        sizes = problem.sizes[kind]
        left = demand.copy()
        for item, copies in taken.items():
            left[item] -= copies
        while room > 0:
            fitting = np.flatnonzero((left > 0) & (sizes > 0) & (sizes <= room))
            if not len(fitting):
                break
            # The largest; of equal ones, the one with the fewest possible kinds.
            largest = fitting[sizes[fitting] == sizes[fitting].max()]
            item = int(largest[np.argmin((problem.sizes[:, largest] > 0).sum(axis=0))])
            taken[item] = taken.get(item, 0) + 1
            left[item] -= 1
            room -= int(sizes[item])
    return tuple(sorted(taken.items()))
