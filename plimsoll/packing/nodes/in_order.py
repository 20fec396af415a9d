"""Pods placed one after the other in a given order, by best fit: who finds no room depends on those before it alone."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from plimsoll.packing.nodes.items import items_of, useful
from plimsoll.packing.nodes.need import FreeNode, Limit, NodeShape, PodNeed
from plimsoll.packing.nodes.placing import Placing, Stock


class Unit(NamedTuple):
    """Pods that have room together or not at all."""

    pods: Sequence[PodNeed]
    after: str = ""
    """Name of a pod without which these have no room either; empty: none."""


def left_out_in_order(
    units: Sequence[Unit],
    shapes: Iterable[NodeShape],
    nodes: Iterable[FreeNode] = (),
    limits: Sequence[Limit] = (),
) -> set[str]:
    """Names of the pods without room beside those before them. `units` are in order."""
    shapes = sorted((shape for shape in shapes if shape.gpus > 0 and shape.pods > 0), key=lambda shape: shape.name)
    nodes = [node for node in nodes if node.pods > 0]
    items, unfit = items_of((need for unit in units for need in unit.pods), shapes, nodes)
    stock = Stock(items, shapes, useful(items, nodes), limits)
    number_of = {name: number for number, item in enumerate(items) for name in item.names}
    out = set(unfit)
    placing = Placing(stock.empty())
    full: set[int] = set()
    """Items of which one found no room: room only gets less."""
    for unit in units:
        numbers = [number_of.get(need.name, -1) for need in unit.pods]
        if unit.after in out or any(number < 0 or number in full for number in numbers):
            out.update(need.name for need in unit.pods)
            continue
        before = placing if len(unit.pods) == 1 else Placing(placing.filling.copy(), shapes=dict(placing.shapes))
        for number in numbers:
            if placing.filling.place(stock.asks[number], 1):
                placing.left = {number: 1}
                stock.open(placing)
        if placing.unplaced:
            out.update(need.name for need in unit.pods)
            full.update(placing.unplaced if len(unit.pods) == 1 else ())
            placing = before
            placing.unplaced = {}
    return out
