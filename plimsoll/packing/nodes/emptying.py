"""New nodes emptied: where the pods of one find room on others, it is not needed."""

from collections import Counter
from collections.abc import Iterator, Sequence

from plimsoll.packing.nodes.placing import Placing, Stock

_TRIES = 40
"""Nodes that are looked at, those with the least in use first."""


def emptied(stock: Stock, placing: Placing) -> Placing:
    """The same without new nodes that are not needed."""
    found = placing
    for at in _least_used(stock, placing):
        found = _without(stock, found, at) or found
    return found


def _least_used(stock: Stock, placing: Placing) -> Sequence[int]:
    """Rows of new nodes."""
    used = {}
    for at in placing.shapes:
        row = placing.filling.row(at)
        used[at] = sum(stock.grid.gpu - free for free in row.gpus)
    return sorted(used, key=lambda at: (used[at], at))[:_TRIES]


def _without(stock: Stock, placing: Placing, at: int) -> Placing | None:
    """The pods of one node of the row placed on other nodes; None where they find no room."""
    filling = placing.filling.copy()
    alone = filling.split(at)
    row = filling.row(alone)
    filling.drop(alone)
    for item, count in sorted(_pods(stock, row.held), key=lambda each: (-stock.items[each[0]].devices, each)):
        if filling.place(stock.asks[item], count):
            return None
    return stock.finished(Placing(filling, unplaced=dict(placing.unplaced)))


def _pods(stock: Stock, held: Sequence[Sequence[int]]) -> Iterator[tuple[int, int]]:
    for item, copies in Counter(item for items in held for item in items).items():
        yield item, copies // stock.items[item].devices
