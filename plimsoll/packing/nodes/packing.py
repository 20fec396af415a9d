"""Packing onto nodes: free parts of existing nodes first, then the fewest GPUs of new ones, then the lowest price.

Best fit comes first. Where it does not reach the bound, patterns of GPUs by column generation are filled onto shapes
that an integer program chose. Where CPU or memory keeps that from the bound, patterns of whole nodes come next; and
where few pods are there, one integer program places them all.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import chain, islice

from plimsoll.packing.gpus import Clock, Effort
from plimsoll.packing.nodes.bounding import Bounds, bounds
from plimsoll.packing.nodes.emptying import emptied
from plimsoll.packing.nodes.exact import exact_placing
from plimsoll.packing.nodes.heuristic import Heuristic
from plimsoll.packing.nodes.items import items_of, useful
from plimsoll.packing.nodes.need import FreeNode, Item, Limit, NodePacking, NodeShape, PodNeed
from plimsoll.packing.nodes.node_patterns import by_node_patterns
from plimsoll.packing.nodes.patterns import by_patterns
from plimsoll.packing.nodes.placing import Cost, Placing, Stock

_TRIES_FOR_NODES = 3
"""Ways that are tried where only fewer nodes could be better."""
_WAYS = 2
"""Ways by patterns of GPUs before those by patterns of nodes."""
_FEW_ITEMS = 300
"""Up to so many different pods best fit is tried first."""


def pack_nodes(
    needs: Iterable[PodNeed],
    shapes: Iterable[NodeShape],
    nodes: Iterable[FreeNode] = (),
    *,
    limits: Sequence[Limit] = (),
    seconds: float = 2.0,
    clock: Clock | None = None,
    without: Collection[Heuristic] = (),
) -> NodePacking:
    """Packs pods onto free nodes and new ones within the limits. The order of the arguments does not matter.

    `seconds` and `clock` are those of `packing.pack`. `without` leaves heuristics out, to measure what they gain.
    """
    effort = Effort(seconds, clock)
    shapes = sorted((shape for shape in shapes if shape.gpus > 0 and shape.pods > 0), key=lambda shape: shape.name)
    nodes = [node for node in nodes if node.pods > 0]
    items, unfit = items_of(needs, shapes, nodes)
    stock = Stock(items, shapes, useful(items, nodes), limits)
    best, bound = _search(stock, effort, without)
    unplaced = sorted(
        [*unfit, *(name for number, left in best.unplaced.items() for name in items[number].names[-left:])]
    )
    return NodePacking(tuple(stock.named(best)), tuple(unplaced), bound.least, bound.lower_bound)


def best_fit_gpus(needs: Iterable[PodNeed], shapes: Iterable[NodeShape]) -> int:
    """GPUs of new nodes by best fit decreasing alone, to compare with."""
    shapes = sorted(shapes, key=lambda shape: shape.name)
    items, _ = items_of(needs, shapes, ())
    stock = Stock(items, shapes, (), ())
    return stock.opened(stock.on_nodes(_large_first)).cost[1]


def _search(stock: Stock, effort: Effort, without: Collection[Heuristic]) -> tuple[Placing, Bounds]:
    """Stops as soon as all have a place, with the fewest GPUs at the lowest price."""
    first = stock.on_nodes(_large_first)
    if not first.left:
        return first, Bounds()
    bound, ways = by_patterns(stock, effort, without)
    ways = iter(()) if Heuristic.PATTERNS in without else ways
    early = [stock.opened(first)] if len(stock.items) < _FEW_ITEMS else []
    late = (stock.opened(stock.on_nodes(_large_first)) for _ in range(not early))
    best = _best_of(chain(early, islice(ways, _WAYS), late), bound, effort)
    if not bound.met_by(best):
        # CPU or memory binds, or the bound is not tight.
        least, more = (0, ()) if Heuristic.NODE_PATTERNS in without else by_node_patterns(stock, best, effort)
        bound = replace(bound, least=max(bound.least, least))
        best = _best_of(chain((best,), map(stock.opened, more), ways), bound, effort)
    if not bound.met_by(best) and Heuristic.EMPTYING not in without:
        best = emptied(stock, best)
    if not bound.met_by(best) and Heuristic.EXACT not in without:
        least, exact = exact_placing(stock, best)
        best = min((best, *exact), key=_cost)
        bound = replace(bound, least=max(bound.least, least))
    if best.unplaced:
        return best, bounds(stock, best.unplaced, effort)
    return best, bound


def _best_of(ways: Iterable[Placing], bound: Bounds, effort: Effort) -> Placing:
    """The best of at least one way; no more are tried once it meets the bound, or time is up."""
    best: Placing | None = None
    for tried, found in enumerate(ways, start=1):
        best = found if best is None else min(best, found, key=_cost)
        if effort.exhausted or (bound.met_by(best) and (bound.nodes_met_by(best) or tried >= _TRIES_FOR_NODES)):
            break
    assert best is not None, "there is one way at least"
    return best


def _cost(placing: Placing) -> Cost:
    return placing.cost


def _large_first(item: Item) -> tuple[object, ...]:
    return (-item.devices, -item.least_milli, -item.cpu_milli, -item.memory_mib, item.milli)
