"""Packs pods onto free resources of existing nodes first, then onto new nodes with the fewest GPUs, then at the lowest
price.

Best fit runs first. If it does not reach the lower bound, column generation finds patterns of GPUs, and an integer
program chooses the shapes of nodes for them. If CPU or memory prevents reaching the bound, patterns of whole nodes
follow, and for few pods an integer program over all of them. Where pods are spread, they are placed one after the other
instead, as the scheduler will.
"""

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import chain, islice

from plimsoll.packing.gpus import Effort
from plimsoll.packing.nodes.bounding import Bounds, bounds, exceeds_limits
from plimsoll.packing.nodes.emptying import emptied
from plimsoll.packing.nodes.exact import exact_placing
from plimsoll.packing.nodes.heuristic import Heuristic
from plimsoll.packing.nodes.need import FreeNode, Limit, NodePacking, NodeShape, PodNeed
from plimsoll.packing.nodes.node_patterns import by_node_patterns
from plimsoll.packing.nodes.patterns import by_patterns
from plimsoll.packing.nodes.placing import NodeProblem, Placing, problem_of
from plimsoll.packing.nodes.ruled import RuledPlacing
from plimsoll.packing.nodes.rules import Rules
from plimsoll.packing.nodes.spreading import spread_out
from plimsoll.packing.units import UNBOUNDED

_TRIES_FOR_NODES = 3
"""Number of ways to try if only the number of nodes could still improve."""
_WAYS = 2
"""Number of ways by patterns of GPUs before those by patterns of nodes."""
_ANY_PLACING = Bounds(least=UNBOUNDED, price=math.inf)
"""What every placing of all pods meets."""
_FEW_ITEMS = 300
"""Maximum number of different pods for which best fit runs first."""


def pack_nodes(
    needs: Iterable[PodNeed],
    shapes: Iterable[NodeShape],
    nodes: Iterable[FreeNode] = (),
    *,
    limits: Sequence[Limit] = (),
    seconds: float = 2.0,
    without: Collection[Heuristic] = (),
    rules: Rules | None = None,
) -> NodePacking:
    """Packs pods onto free nodes and new ones within the limits. The result does not depend on the order of the
    arguments' elements.

    `seconds` limits the search, by counted work. Heuristics in `without` are left out, to measure what they gain. The
    pods that `rules` concern are placed first; the bounds ignore rules.
    """
    if rules is not None:
        needs, shapes, nodes = tuple(needs), tuple(shapes), tuple(nodes)
        placed = RuledPlacing((need for need in needs if rules.concern(need.name)), shapes, nodes, limits, rules)
        others = [need for need in needs if not rules.concern(need.name)]
        found = placed.joined(pack_nodes(others, shapes, placed.free, limits=placed.limits, seconds=seconds))
        left_out = set(found.unplaced)
        ignoring = pack_nodes([need for need in needs if need.name not in left_out], shapes, nodes, seconds=seconds)
        return replace(found, least=ignoring.least, lower_bound=ignoring.lower_bound)
    problem, unfit = problem_of(needs, shapes, nodes, limits)
    best, bound = _search(problem, Effort(seconds), without)
    unplaced = sorted(
        [*unfit, *(name for number, left in best.unplaced.items() for name in problem.items[number].names[-left:])]
    )
    return NodePacking(tuple(problem.named(best)), tuple(unplaced), bound.least, bound.lower_bound, best.cost[1])


def all_fit(
    needs: Iterable[PodNeed],
    shapes: Iterable[NodeShape],
    nodes: Iterable[FreeNode] = (),
    *,
    limits: Sequence[Limit] = (),
    seconds: float = 2.0,
    rules: Rules | None = None,
) -> bool:
    """Whether `pack_nodes` places all of these pods. This takes less time, because any placing will do."""
    if rules is not None:
        needs, shapes = tuple(needs), tuple(shapes)
        placed = RuledPlacing((need for need in needs if rules.concern(need.name)), shapes, nodes, limits, rules)
        others = [need for need in needs if not rules.concern(need.name)]
        return not placed.unplaced and all_fit(others, shapes, placed.free, limits=placed.limits, seconds=seconds)
    problem, unfit = problem_of(needs, shapes, nodes, limits)
    if unfit:
        return False
    if problem.turns:
        return not spread_out(problem).unplaced
    if not problem.opened(problem.on_nodes()).cost[0]:
        return True
    if exceeds_limits(problem, Effort(seconds)):
        return False
    best, _ = _search(problem, Effort(seconds), (), _ANY_PLACING)
    return not best.cost[0]


def best_fit_gpus(needs: Iterable[PodNeed], shapes: Iterable[NodeShape]) -> int:
    """GPUs of new nodes by best fit decreasing alone, for comparison."""
    problem, _ = problem_of(needs, shapes, (), ())
    return problem.opened(problem.on_nodes()).cost[1]


def _search(
    problem: NodeProblem, effort: Effort, without: Collection[Heuristic], enough: Bounds | None = None
) -> tuple[Placing, Bounds]:
    """The best placing that was found, with its bounds. Stops when all pods have a place on the fewest GPUs at the
    lowest price, or on as many GPUs and at such a price as `enough` says."""
    if problem.turns:
        spread = spread_out(problem)
        return spread, bounds(problem, spread.unplaced, effort)
    first = problem.on_nodes()
    if not first.left:
        return first, Bounds()
    bound, ways = by_patterns(problem, effort, without)
    bound = enough or bound
    ways = iter(()) if Heuristic.PATTERNS in without else ways
    some, fitted = islice(ways, _WAYS), map(problem.opened, [first])  # each way is computed when it is tried
    few = len(problem.items) < _FEW_ITEMS
    best = _best_of(chain(fitted, some) if few else chain(some, fitted), bound, effort)
    if not bound.met_by(best):
        # CPU or memory is scarce, or the bound is not tight.
        least, more = (0, ()) if Heuristic.NODE_PATTERNS in without else by_node_patterns(problem, best, effort)
        bound = replace(bound, least=max(bound.least, least))
        best = _best_of(chain((best,), map(problem.opened, more), ways), bound, effort)
    if not bound.met_by(best) and Heuristic.EMPTYING not in without:
        best = emptied(problem, best)
    if not bound.met_by(best) and Heuristic.EXACT not in without:
        least, exact = exact_placing(problem, best, any_placing=enough is not None)
        best = min((best, *exact), key=lambda each: each.cost)
        bound = replace(bound, least=max(bound.least, least))
    if best.unplaced:
        return best, bounds(problem, best.unplaced, effort)
    return best, bound


def _best_of(ways: Iterable[Placing], bound: Bounds, effort: Effort) -> Placing:
    """The best placing of at least one way. Stops when it meets the bound, or when the time is over."""
    best: Placing | None = None
    for tried, found in enumerate(ways, start=1):
        best = found if best is None else min(best, found, key=lambda each: each.cost)
        if effort.exhausted or (bound.met_by(best) and (bound.nodes_met_by(best) or tried >= _TRIES_FOR_NODES)):
            break
    assert best is not None, "there is one way at least"
    return best
