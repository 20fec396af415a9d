"""Lower bounds of the GPUs and the price of new nodes."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from plimsoll.packing.gpus import Effort, Found, ShareCounts, prove
from plimsoll.packing.nodes.need import Item
from plimsoll.packing.nodes.placing import NodeProblem, Placing
from plimsoll.packing.nodes.shapes import Load, ShapeChoice
from plimsoll.packing.units import Milli

_ROUNDING = 1e-9
"""Tolerance that keeps floating-point noise from raising the bound."""


@dataclass(frozen=True, slots=True)
class Bounds:
    least: int = 0
    """Lower bound of the GPUs of new nodes."""
    lower_bound: float = 0.0
    """Lower bound of the new GPUs by the linear program over patterns alone, which ignores nodes."""
    price: float = 0.0
    """Lower bound of the price of new nodes with `least` GPUs, if the GPUs, CPU and memory of a pod could be on
    different nodes."""
    shapes: Mapping[str, int] = field(default_factory=dict)
    """Number of nodes at that price, by name of the shape."""

    def met_by(self, placing: Placing) -> bool:
        """Whether the placing has all pods, on the fewest GPUs and at the lowest price."""
        unplaced, gpus, price, _ = placing.cost
        return not unplaced and gpus <= self.least and price <= self.price

    def nodes_met_by(self, placing: Placing) -> bool:
        """Whether the placing has no more nodes than the bound needs at its price."""
        return placing.cost[3] <= sum(self.shapes.values())


def bounds(problem: NodeProblem, without: Mapping[int, int], effort: Effort, found: Found | None = None) -> Bounds:
    """Bounds for all pods except the given numbers of items in `without`. `found` is a packing of all pods, if each of
    them uses one GPU."""
    counts = {
        number: item.count - without.get(number, 0)
        for number, item in enumerate(problem.items)
        if item.count > without.get(number, 0)
    }
    if not any(problem.fitting[number] for number in counts):
        return Bounds()
    choice = _choice(problem, counts)
    if found is not None:
        lower_bound, shares = found.bound.value, found.least
    else:
        bound, shares = prove(_share_counts(problem, counts).bounding(), Counter(), effort)
        lower_bound = bound.value
    choice.require_devices(shares)
    least = choice.least_gpus()
    choice.require(least)
    prices = {shape.name: shape.price or 0.0 for shape in problem.shapes}
    chosen = choice.choose()
    price = sum(prices[name] * count for name, count in chosen.items())
    return Bounds(least, min(lower_bound, float(least)), round(price, 9), chosen)


def exceeds_limits(problem: NodeProblem, effort: Effort) -> bool:
    """Whether a lower bound shows that the new nodes for all pods exceed a limit."""
    if not any(problem.fitting):
        return False
    counts = {number: item.count for number, item in enumerate(problem.items)}
    choice = _choice(problem, counts)
    choice.require_devices(prove(_share_counts(problem, counts).bounding(), Counter(), effort)[1])
    return choice.exceeds(problem.limits)


def _choice(problem: NodeProblem, counts: dict[int, int]) -> ShapeChoice:
    loads = []
    for number, count in counts.items():
        item = problem.items[number]
        loads.append(
            Load(
                tuple(kind for kind, _ in item.milli),
                frozenset(problem.shapes[shape].name for shape in problem.fitting[number]),
                int(item.devices * item.least_milli),
                item.devices if item.whole else 0,
                item.cpu_milli,
                item.memory_mib,
                item.storage_mib,
                1000 + (0 if item.whole else int(item.devices * item.least_milli)),
                count,
                _ratios(item),
            )
        )
    choice = ShapeChoice(loads, problem.shapes, list(problem.free))
    choice.require_parts()
    empty = problem.empty()
    needed = {
        tuple(sorted(loads[at].shapes))
        for at, number in enumerate(counts)
        if problem.fitting[number] and not empty.fits(problem.requests[number])
    }
    for shapes in sorted(needed):
        choice.require_one_of(shapes)
    return choice


def _ratios(item: Item) -> tuple[float, ...]:
    """Size of the item on each of its kinds, relative to the smallest; empty if it is the same on all."""
    sizes = [size for _, size in item.milli]
    if len(set(sizes)) == 1:
        return ()
    return tuple(float(size / item.least_milli) * (1 - _ROUNDING) for size in sizes)


def _share_counts(problem: NodeProblem, counts: dict[int, int]) -> ShareCounts:
    """The packing problem of each GPU of these pods on its own, onto free GPUs and new ones. Pods that fit no new node
    are left out."""
    devices: Counter[tuple[tuple[str, Milli], ...]] = Counter()
    for number, count in counts.items():
        item = problem.items[number]
        if problem.fitting[number]:
            devices[item.milli] += count * item.devices
    supply: Counter[tuple[int, Milli]] = Counter()
    for node, count in problem.free:
        for free in node.devices:
            if free > 0:
                supply[problem.kind[node.kind], free] += count
    return ShareCounts(
        items=tuple(
            ({problem.kind[kind]: size for kind, size in milli}, count) for milli, count in sorted(devices.items())
        ),
        kinds=len(problem.kinds),
        new_kinds=problem.new_kinds,
        supply=supply,
    )
