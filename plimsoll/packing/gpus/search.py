"""The search for the fewest new GPUs: bound, best fit, diving, integer program, each only where still needed."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from plimsoll.packing.gpus.best_fit import best_fit
from plimsoll.packing.gpus.by_size import Sizes
from plimsoll.packing.gpus.column_generation import Bound, Generation
from plimsoll.packing.gpus.diving import dive, trimmed
from plimsoll.packing.gpus.dual_cuts import replacements
from plimsoll.packing.gpus.effort import Effort
from plimsoll.packing.gpus.integer_patterns import choose_patterns
from plimsoll.packing.gpus.master import Master
from plimsoll.packing.gpus.problem import Patterns, Problem, ShareCounts

_FEW_ITEMS = 300
"""Items up to which a tighter bound and the integer program are worth their time."""
_DIVES = (1.0, 0.8, 0.6, 0.9, 0.7)
"""From which part on each dive rounds a fraction up."""
_BOUND_SHARE = 0.6
"""Of the time, for the bound; the rest is for whole GPUs."""
_PROVEN_SECONDS = 0.3
"""For the bound where it is met already: it can only become more exact."""


@dataclass(frozen=True, slots=True)
class Found:
    patterns: Patterns
    bound: Bound
    """Of the linear program over all patterns."""
    least: int
    """New GPUs that no packing can do without, by the best bound known."""
    best_fit: int
    """New GPUs of best fit decreasing."""


def pack_counts(counts: ShareCounts, effort: Effort) -> Found:
    """The fewest new GPUs that were found for the shares, as patterns of `counts.problem()`, with a true bound."""
    problem = counts.problem()
    found = search(problem, effort)
    if problem.exact:
        return found
    bound, least = prove(counts, Counter(), effort)
    return replace(found, bound=bound, least=min(least, problem.new_bins(found.patterns)))


def search(problem: Problem, effort: Effort) -> Found:
    """Never worse than best fit decreasing; stops as soon as the bound is met."""
    fitted = best_fit(problem)
    if len(problem.sizes) > 1 and problem.new_bins(fitted):
        fitted = min(fitted, best_fit(problem, choosy_first=True), key=problem.new_bins)
    effort.spend(1e-5 * int(problem.demand.sum()))
    count = problem.new_bins(fitted)
    if count == 0:
        nothing = Bound(0.0, np.zeros(len(problem.demand)), np.zeros(len(problem.supply)), exact=True)
        return Found(fitted, nothing, 0, 0)
    few = len(problem.demand) <= _FEW_ITEMS
    sizes = None if few else Sizes.of(problem)
    duals, seconds = [], math.inf
    if sizes is not None:
        by_size = search(sizes.problem, effort)
        duals = [sizes.duals(by_size.bound.item_duals)]
        fitted = min(fitted, sizes.dealt(problem, by_size.patterns), key=problem.new_bins)
        seconds = _PROVEN_SECONDS if problem.new_bins(fitted) <= by_size.bound.gpus else math.inf
    master = _master(problem, fitted, () if few else replacements(problem))
    reserve = effort.left * (1 - _BOUND_SHARE)
    generation = Generation(problem, master, effort, reserve)
    generation.run(problem.demand, problem.supply, seconds, duals)
    bound, least, best = generation.bound, generation.bound.gpus, fitted
    if count > least and few:
        limited = Generation(problem, master, effort, reserve, limited=True)
        limited.run(problem.demand, problem.supply)
        least = max(least, limited.bound.gpus)
    best = _dived(problem, master, effort, best, least)
    if not few and problem.new_bins(best) > least and not effort.exhausted:
        # Replacements spare rounds, and leave less to choose from when GPUs become whole.
        patterns = master.patterns
        master = _master(problem, best)
        master.add(patterns)
        best = _dived(problem, master, effort, best, least)
    if problem.new_bins(best) > least and few and not effort.exhausted:
        # The integer solver looks at its clock only now and then.
        chosen = choose_patterns(problem, master.patterns, problem.new_bins(best), least, effort.wall(effort.left / 2))
        best = trimmed(problem, chosen) if chosen else best
    return Found(best, bound, least, count)


def prove(counts: ShareCounts, known: Patterns, effort: Effort) -> tuple[Bound, int]:
    """The bound of the linear program, and in whole GPUs the best bound known, beside a packing that is there.

    `known` are patterns of `counts.problem()`. Items may be there that no new GPU can hold, as long as the known
    patterns hold them all.
    """
    problem = counts.problem()
    if not problem.exact:
        problem, known = counts.problem(optimistic=True), Counter()
    known = known or best_fit(problem)
    master = Master(problem)
    master.add(sorted(known))
    generation = Generation(problem, master, effort)
    generation.run(problem.demand, problem.supply)
    least = generation.bound.gpus
    if problem.new_bins(known) > least and len(problem.demand) <= _FEW_ITEMS:
        limited = Generation(problem, master, effort, limited=True)
        limited.run(problem.demand, problem.supply)
        least = max(least, limited.bound.gpus)
    return generation.bound, least


def _dived(problem: Problem, master: Master, effort: Effort, best: Patterns, least: int) -> Patterns:
    """The best of several dives; none where the bound is met."""
    limited = Generation(problem, master, effort, limited=True)
    for number, up in enumerate(_DIVES):
        # One is made even without time left: it takes no longer than best fit.
        if problem.new_bins(best) <= least or (number and effort.exhausted):
            break
        limited.run(problem.demand, problem.supply)
        best = dive(problem, limited, best, least, up)
    return best


def _master(problem: Problem, fitted: Patterns, pairs: Sequence[tuple[int, int]] = ()) -> Master:
    """A master that has a packing, and a GPU for each item alone, so that it always has a solution."""
    alone = []
    for item in range(len(problem.demand)):
        bin_type = next(t for t in problem.new_types if problem.sizes[problem.bin_types[t].kind, item])
        alone.append((bin_type, ((item, 1),)))
    master = Master(problem, pairs)
    master.add([*sorted(fitted), *alone])
    return master
