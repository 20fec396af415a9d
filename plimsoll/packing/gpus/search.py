"""The search for the fewest new GPUs: bound, best fit, diving, integer program. Each step runs only if it is still
needed."""

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
"""Maximum number of different items for the tighter bound and the integer program."""
_DIVES = (1.0, 0.8, 0.6, 0.9, 0.7)
"""Fraction from which each dive rounds up."""
_BOUND_SHARE = 0.6
"""Fraction of the time limit for the bound; the rest is for the packing."""
_PROVEN_SECONDS = 0.3
"""Seconds for the bound if the packing already meets it. It can then only become more precise."""


@dataclass(frozen=True, slots=True)
class Found:
    patterns: Patterns
    bound: Bound
    """The bound of the linear program over all patterns."""
    least: int
    """Best known lower bound of the number of new GPUs."""
    best_fit: int
    """Number of new GPUs of best fit decreasing."""


def pack_counts(counts: ShareCounts, effort: Effort) -> Found:
    """The best packing that was found for the shares, as patterns of `counts.problem()`, with a lower bound that holds
    for the true sizes."""
    problem = counts.problem()
    found = search(problem, effort)
    if problem.exact:
        return found
    bound, least = prove(counts.bounding(), Counter(), effort)
    return replace(found, bound=bound, least=min(least, problem.new_bins(found.patterns)))


def search(problem: Problem, effort: Effort) -> Found:
    """The best packing that was found, never worse than best fit decreasing. Stops as soon as it meets the bound."""
    fitted = best_fit(problem)
    if len(problem.sizes) > 1 and problem.new_bins(fitted):
        fitted = min(fitted, best_fit(problem, constrained_first=True), key=problem.new_bins)
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
        fitted = min(fitted, sizes.to_shares(problem, by_size.patterns), key=problem.new_bins)
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
        # Replacement pairs save pricing rounds, but leave fewer patterns for whole GPUs.
        patterns = master.patterns
        master = _master(problem, best)
        master.add(patterns)
        best = _dived(problem, master, effort, best, least)
    if problem.new_bins(best) > least and few and not effort.exhausted:
        # The integer solver checks its time limit rarely.
        chosen = choose_patterns(problem, master.patterns, problem.new_bins(best), least)
        best = trimmed(problem, chosen) if chosen else best
    return Found(best, bound, least, count)


def prove(problem: Problem, known: Patterns, effort: Effort) -> tuple[Bound, int]:
    """The bound of the linear program and the best known bound in whole GPUs, for a problem with a known packing.

    There may be items that no new GPU can hold, if the known patterns contain all of them.
    """
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
    """The best of `best` and several dives; `best` if it meets the bound `least`."""
    limited = Generation(problem, master, effort, limited=True)
    for number, up in enumerate(_DIVES):
        # One dive runs even if no time is left; it takes no longer than best fit.
        if problem.new_bins(best) <= least or (number and effort.exhausted):
            break
        limited.run(problem.demand, problem.supply)
        best = dive(problem, limited, best, least, up)
    return best


def _master(problem: Problem, fitted: Patterns, pairs: Sequence[tuple[int, int]] = ()) -> Master:
    """A master with the patterns of a packing, and with each item alone on a GPU so that a solution always exists."""
    alone = []
    for item in range(len(problem.demand)):
        bin_type = next(t for t in problem.new_types if problem.sizes[problem.bin_types[t].kind, item])
        alone.append((bin_type, ((item, 1),)))
    master = Master(problem, pairs)
    master.add([*sorted(fitted), *alone])
    return master
