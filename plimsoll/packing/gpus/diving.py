"""From the linear program to whole GPUs, by diving: fix what is whole, then the largest fraction, and solve again."""

from collections import Counter

import numpy as np

from plimsoll.packing.gpus.best_fit import best_fit
from plimsoll.packing.gpus.column_generation import Generation
from plimsoll.packing.gpus.master import Master
from plimsoll.packing.gpus.problem import Counts, Pattern, Patterns, Problem

_WHOLE = 1e-6
_STEPS_AT_ONCE = 5
"""How many times its even part of the time one step may take."""


def dive(problem: Problem, generation: Generation, best: Patterns, target: int, up: float) -> Patterns:
    """A packing with fewer new GPUs than `best` where one is found; stops at `target`, or when time is up.

    The generation is limited, and its master has a solution of the whole problem; both are left with what was not
    fixed. `up` is the part from which on a fraction counts as whole.
    """
    demand, supply = problem.demand.copy(), problem.supply.copy()
    fixed: Patterns = Counter()
    while demand.any():
        before = int(demand.sum())
        for pattern, count in _fixable(generation.master, up):
            _fix(problem, fixed, (demand, supply), pattern, count)
        if int(demand.sum()) == before:
            break  # the solver gave nothing new
        candidate = best_fit(problem, demand, onto=fixed)
        if problem.new_bins(candidate) < problem.new_bins(best):
            best = candidate
        if problem.new_bins(best) <= target or problem.new_bins(fixed) >= problem.new_bins(best):
            break
        if generation.left <= 0:
            break
        # A step for each GPU that the fractional packing still takes is the most there can be; it is far fewer.
        steps = 1.0 + generation.master.activity.sum()
        generation.run(demand, supply, seconds=_STEPS_AT_ONCE * generation.left / steps)
    return best


def trimmed(problem: Problem, patterns: Patterns) -> Patterns:
    """The same GPUs without what they hold above the demand."""
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
    """Takes a pattern that many times, without what is not wanted any more; `left` is demand and supply."""
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
    """What a GPU of that pattern is to hold of what is left: in place of what is not there, the most that fits."""
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
            # The largest, and of these one with the fewest kinds to choose from.
            largest = fitting[sizes[fitting] == sizes[fitting].max()]
            item = int(largest[np.argmin((problem.sizes[:, largest] > 0).sum(axis=0))])
            taken[item] = taken.get(item, 0) + 1
            left[item] -= 1
            room -= int(sizes[item])
    return tuple(sorted(taken.items()))
