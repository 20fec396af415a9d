"""A lower bound on the GPUs of new nodes, and on their price: no packing of these pods can do with less."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from plimsoll.packing.gpus import Effort, Found, ShareCounts, prove
from plimsoll.packing.nodes.need import Item
from plimsoll.packing.nodes.placing import Placing, Stock
from plimsoll.packing.nodes.shapes import Load, ShapeChoice
from plimsoll.packing.units import Milli

_ROUNDING = 1e-9
"""Floating-point noise that must not lift the bound."""


@dataclass(frozen=True, slots=True)
class Bounds:
    least: int = 0
    """GPUs."""
    lower_bound: float = 0.0
    """GPUs by the linear program over patterns alone."""
    price: float = 0.0
    """Of so many GPUs, as if CPU, memory and GPUs of a pod might lie on different nodes."""
    shapes: Mapping[str, int] = field(default_factory=dict)
    """Number of nodes of each shape at that price, by name."""

    def met_by(self, placing: Placing) -> bool:
        """Whether all pods have a place, on the fewest GPUs, at the lowest price."""
        unplaced, gpus, price, _ = placing.cost
        return not unplaced and gpus <= self.least and price <= self.price

    def nodes_met_by(self, placing: Placing) -> bool:
        """Whether there are no more nodes than at that price are needed."""
        return placing.cost[3] <= sum(self.shapes.values())


def bounds(stock: Stock, without: Mapping[int, int], effort: Effort, found: Found | None = None) -> Bounds:
    """Of all pods but so many of these items. `found` is a packing of all pods that share one GPU each, if they do."""
    counts = {
        number: item.count - without.get(number, 0)
        for number, item in enumerate(stock.items)
        if item.count > without.get(number, 0)
    }
    if not any(stock.fitting[number] for number in counts):
        return Bounds()
    choice = _choice(stock, counts)
    if found is not None:
        lower_bound, shares = found.bound.value, found.least
    else:
        bound, shares = prove(_share_counts(stock, counts), Counter(), effort)
        lower_bound = bound.value
    choice.require(shares)
    least = choice.least_gpus()
    choice.require(least)
    prices = {shape.name: shape.price or 0.0 for shape in stock.shapes}
    chosen = choice.choose()
    price = sum(prices[name] * count for name, count in chosen.items())
    return Bounds(least, min(lower_bound, float(least)), round(price, 9), chosen)


def _choice(stock: Stock, counts: dict[int, int]) -> ShapeChoice:
    loads = []
    for number, count in counts.items():
        item = stock.items[number]
        loads.append(
            Load(
                tuple(kind for kind, _ in item.milli),
                frozenset(stock.shapes[shape].name for shape in stock.fitting[number]),
                int(item.devices * item.least_milli),
                item.devices if item.whole else 0,
                item.cpu_milli,
                item.memory_mib,
                1000 + (0 if item.whole else int(item.devices * item.least_milli)),
                count,
                _ratios(item),
            )
        )
    choice = ShapeChoice(loads, stock.shapes, list(stock.free))
    choice.require_parts()
    empty = stock.empty()
    needed = {
        tuple(sorted(loads[at].shapes))
        for at, number in enumerate(counts)
        if stock.fitting[number] and not empty.takes(stock.asks[number])
    }
    for shapes in sorted(needed):
        choice.require_one_of(shapes)
    return choice


def _ratios(item: Item) -> tuple[float, ...]:
    """What an item takes of a GPU of each of its kinds, beside the least; empty where it is the same on all."""
    sizes = [size for _, size in item.milli]
    if len(set(sizes)) == 1:
        return ()
    return tuple(float(size / item.least_milli) * (1 - _ROUNDING) for size in sizes)


def _share_counts(stock: Stock, counts: dict[int, int]) -> ShareCounts:
    """Each GPU of these pods for itself, onto the free GPUs and new ones; pods that no new node takes are left out."""
    devices: Counter[tuple[tuple[str, Milli], ...]] = Counter()
    for number, count in counts.items():
        item = stock.items[number]
        if stock.fitting[number]:
            devices[item.milli] += count * item.devices
    supply: Counter[tuple[int, Milli]] = Counter()
    for node, count in stock.free:
        for free in node.gpus:
            if free > 0:
                supply[stock.kind[node.kind], free] += count
    return ShareCounts(
        items=tuple(
            ({stock.kind[kind]: size for kind, size in milli}, count) for milli, count in sorted(devices.items())
        ),
        kinds=len(stock.kinds),
        new_kinds=stock.new_kinds,
        supply=supply,
    )
