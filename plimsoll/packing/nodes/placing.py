"""NodeProblem and Placing: the packing problem in numbers, and a solution with its cost."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from plimsoll.packing.nodes.filling import Filling, PlacementRequest, Row
from plimsoll.packing.nodes.items import items_of, useful
from plimsoll.packing.nodes.need import HOST, FilledNode, FreeNode, Item, Limit, NodeShape, PodNeed
from plimsoll.packing.nodes.rates import rated
from plimsoll.packing.units import GPU_MILLI, Grid, Milli

_OVER_LIMIT = 10**9
"""Cost of exceeding a limit, relative to a pod without a place."""
_FINEST = math.lcm(10**9, *range(1, 31))
"""Maximum units of a GPU in which sizes are counted: 5.8 * 10^18, below the maximum of int64 of 9.2 * 10^18.

`Filling` keeps the units of a GPU as int64, and sums those of several GPUs as floating-point numbers, so that a node
may have any number of GPUs. Decimal fractions of up to 18 digits are exact. If sizes need more units, a GPU has this
number and sizes are rounded up. It is a multiple of 10^9 and of 1 to 30: decimal fractions of up to 9 digits stay exact
then, and n shares of a long decimal fraction just below 1/n still fit one GPU.
"""
_NEW_TIER = 9
"""Tier of new nodes, above those of existing nodes."""

Cost = tuple[int, int, float, int]
"""(pods without a place, GPUs, price, number of new nodes); smaller is better."""


@dataclass
class Placing:
    """Pods on existing and new nodes."""

    filling: Filling
    left: dict[int, int] = field(default_factory=dict)
    """Number of pods that are not placed yet, by item."""
    unplaced: dict[int, int] = field(default_factory=dict)
    """Number of pods that found no place, by item."""
    shapes: dict[int, int] = field(default_factory=dict)
    """Number of the shape of each row of new nodes."""
    cost: Cost = (0, 0, 0.0, 0)

    def note_shapes(self) -> None:
        """Sets the shape of each row of new nodes, because placing splits rows."""
        self.shapes |= {at: row.label for at, row in self.filling.rows(new=True)}


def problem_of(
    needs: Iterable[PodNeed], shapes: Iterable[NodeShape], nodes: Iterable[FreeNode], limits: Sequence[Limit]
) -> "tuple[NodeProblem, list[str]]":
    """The problem in numbers, and the names of pods that fit no node even if it were empty."""
    needs = tuple(needs)
    able = [shape for shape in shapes if shape.gpus > 0 and shape.pods > 0]
    shapes = sorted(rated(able), key=lambda shape: shape.name)
    nodes = [node for node in nodes if node.pods > 0]
    items, unfit = items_of(needs, shapes, nodes)
    spread = any(shape.spread for shape in shapes) or any(node.spread for node in nodes)
    number_of = {name: number for number, item in enumerate(items) for name in item.names} if spread else {}
    in_turn = sorted((need.order, need.name) for need in needs if need.name in number_of)
    turns = [number_of[name] for _, name in in_turn]
    return NodeProblem(items, shapes, useful(items, nodes), limits, turns), unfit


class NodeProblem:
    """Items, shapes, free nodes and limits. Kinds, items and shapes are numbered."""

    def __init__(
        self,
        items: Sequence[Item],
        shapes: Sequence[NodeShape],
        nodes: Iterable[FreeNode],
        limits: Sequence[Limit],
        turns: Sequence[int] = (),
    ) -> None:
        self.turns = turns
        """Where nodes are spread over: the item of each pod, in the order in which a scheduler places the pods."""
        self.items = items
        self.shapes = shapes
        self.limits = limits
        # Nodes differ in what is left of storage, and hardly any pod requests it.
        stored = any(item.storage_mib for item in items)
        alike: defaultdict[tuple[object, ...], list[FreeNode]] = defaultdict(list)
        for node in nodes:
            # A scheduler that spreads takes the first by name of nodes that are as good.
            alike[(node.name,) if turns else (*node.alike, stored and node.storage_mib)].append(node)
        self._groups = [sorted(group, key=lambda node: node.name) for _, group in sorted(alike.items())]
        schedulers = {*(item.scheduler for item in items), *(group[0].scheduler for group in self._groups)} - {""}
        # One scheduler alone need not be compared with others.
        self._scheduler = {name: number for number, name in enumerate(sorted(schedulers), 1) if len(schedulers) > 1}
        kinds = {kind for item in items for kind, _ in item.milli}
        self.kinds = sorted(kinds | {shape.kind for shape in shapes} | {group[0].kind for group in self._groups})
        self.kind = {kind: number for number, kind in enumerate(self.kinds)}
        self.grids = self._grids()
        """The units of sizes on a GPU, by kind."""
        self.requests = [self._request(number, item) for number, item in enumerate(items)]
        self.fitting = [
            tuple(number for number, shape in enumerate(shapes) if self.fits_empty(request, shape))
            for request in self.requests
        ]
        """For each item, the numbers of the shapes of which an empty node takes it."""

    def _grids(self) -> tuple[Grid, ...]:
        """One grid for all kinds. If sizes are not exact on it, one for each kind: a size is only compared with GPUs of
        its own kind, and the sizes of pods in MiB have a denominator for each kind."""
        sizes: list[list[Milli]] = [[] for _ in self.kinds]
        for item in self.items:
            for kind, size in item.milli:
                sizes[self.kind[kind]].append(size)
        common = Grid(chain.from_iterable(sizes), _FINEST)
        return tuple(common if common.exact else Grid(of_kind, _FINEST) for of_kind in sizes)

    def _request(self, number: int, item: Item) -> PlacementRequest:
        milli = dict(item.milli)
        sizes = tuple(
            grid.size(milli[kind]) if kind in milli else 0 for kind, grid in zip(self.kinds, self.grids, strict=True)
        )
        used, scheduler = ((number,),) * item.devices, self._scheduler.get(item.scheduler, 0)
        return PlacementRequest(
            sizes, used, item.cpu_milli, item.memory_mib, 1, not item.whole, scheduler, item.storage_mib
        )

    def fits_empty(self, request: PlacementRequest, node: NodeShape | FreeNode) -> bool:
        """Whether the request fits the entirely free GPUs of the node, its host resources and number of pods."""
        devices = len(request.held)
        return (
            bool(request.sizes[self.kind[node.kind]])
            and (node.devices if isinstance(node, NodeShape) else node.devices.count(GPU_MILLI)) >= devices
            and node.cpu_milli >= request.cpu_milli
            and node.memory_mib >= request.memory_mib
            and node.storage_mib >= request.storage_mib
            and node.pods >= request.pods + (devices if request.shares else 0)
        )

    @property
    def free(self) -> Iterator[tuple[FreeNode, int]]:
        """A free node of each group of equal ones, with their number."""
        return ((group[0], len(group)) for group in self._groups)

    @property
    def new_kinds(self) -> tuple[int, ...]:
        """Numbers of the kinds of the shapes, in order."""
        return tuple(sorted({self.kind[shape.kind] for shape in self.shapes}))

    def large_first(self, numbers: Iterable[int]) -> list[int]:
        """The items in order: most GPUs first, then largest share."""
        return sorted(numbers, key=lambda item: (-self.items[item].devices, -self.items[item].least_milli, item))

    def place_several(self, placing: Placing) -> None:
        """Places by best fit, on existing nodes, the pods that are not a share of one GPU."""
        for number in self.large_first(at for at, item in enumerate(self.items) if not item.single):
            if left := placing.filling.place(self.requests[number], self.items[number].count):
                placing.left[number] = left

    def on_nodes(self) -> Placing:
        """A placing on free nodes alone, by best fit, largest pods first."""
        placing = Placing(self.empty())
        for number in sorted(range(len(self.items)), key=lambda number: _size_order(self.items[number])):
            if left := placing.filling.place(self.requests[number], self.items[number].count):
                placing.left[number] = left
        return placing

    def empty(self) -> Filling:
        """The free nodes without pods."""
        filling = Filling([grid.gpu for grid in self.grids])
        for label, group in enumerate(self._groups):
            node, kind = group[0], self.kind[group[0].kind]
            gpus = tuple(self.grids[kind].free(free) for free in node.free)
            filling.add(
                Row(label, kind, gpus, ((),) * len(gpus), node.cpu_milli, node.memory_mib, node.pods,
                    len(group), node.tier, False, self._scheduler.get(node.scheduler, 0), node.storage_mib, node.spread)
            )  # fmt: skip
        return filling

    def opened(self, placing: Placing) -> Placing:
        """The placing with the remaining pods placed by best fit, on new nodes of the smallest shapes that fit."""
        self.open(placing)
        return self.finished(placing)

    def open(self, placing: Placing) -> None:
        """Places the remaining pods by best fit, on new nodes if necessary."""
        opened: defaultdict[int, int] = defaultdict(int)
        for row, shape in placing.shapes.items():
            opened[shape] += placing.filling.row(row).count
        for number, count in placing.left.items():
            left = placing.filling.place(self.requests[number], count)
            while left:
                wanted = self.shape_for(number, opened)
                if wanted is None:
                    placing.unplaced[number] = placing.unplaced.get(number, 0) + left
                    break
                most = min(left, self.room(opened, wanted))
                before = len(placing.filling)
                row = self.add_new(placing, wanted, most)
                left = placing.filling.place(self.requests[number], left)
                if not any(placing.filling.row(row).held):
                    placing.filling.drop(row)
                for at in range(before, len(placing.filling)):
                    placing.shapes[at] = wanted
                    opened[wanted] += placing.filling.row(at).count
        placing.left = {}

    def shape_for(self, number: int, opened: Mapping[int, int]) -> int | None:
        """The smallest shape for a pod of the item of which the limits allow a further node; None if there is none."""
        milli = dict(self.items[number].milli)

        def rank(shape: int) -> tuple[object, ...]:
            offered = self.shapes[shape]
            return offered.gpus, milli[offered.kind], offered.price or 0.0, offered.name

        return min((shape for shape in self.fitting[number] if self.room(opened, shape)), key=rank, default=None)

    def add_new(self, placing: Placing, shape: int, count: int) -> int:
        """Adds empty nodes of a shape. Returns their row."""
        offered, kind = self.shapes[shape], self.kind[self.shapes[shape].kind]
        gpus = (self.grids[kind].gpu,) * offered.devices
        at = placing.filling.add(
            Row(shape, kind, gpus, ((),) * offered.devices, offered.cpu_milli, offered.memory_mib, offered.pods,
                count, _NEW_TIER, new=True, storage_mib=offered.storage_mib, spread=offered.spread)
        )  # fmt: skip
        placing.shapes[at] = shape
        return at

    def room(self, opened: Mapping[int, int], shape: int) -> int:
        """Number of further nodes of a shape that the limits allow."""
        most = 2**30
        for limit in self.limits:
            use = limit.uses.get(self.shapes[shape].name, 0)
            if use > 0:
                used = sum(limit.uses.get(self.shapes[other].name, 0) * count for other, count in opened.items())
                most = min(most, (limit.left - used) // use)
        return max(0, most)

    def finished(self, placing: Placing) -> Placing:
        """The placing with the smallest, then cheapest sufficient shape for each new node, and with its cost."""
        shapes = {at: row.label for at, row in placing.filling.rows(new=True) if any(row.held)}
        # Where pods are spread, their places depend on how large each node is.
        wanted = {at: self._smallest(placing.filling.row(at), shape) for at, shape in shapes.items()}
        if not self.turns and self._allowed(placing, wanted):
            shapes = wanted
        within = self._allowed(placing, shapes)
        placing.shapes = shapes
        counts = {at: placing.filling.row(at).count for at in shapes}
        placing.cost = (
            sum(placing.unplaced.values()) + sum(placing.left.values()) + (0 if within else _OVER_LIMIT),
            sum(self.shapes[shape].gpus * counts[at] for at, shape in shapes.items()),
            round(sum((self.shapes[shape].price or 0.0) * counts[at] for at, shape in shapes.items()), 9),
            sum(counts.values()),
        )
        return placing

    def _allowed(self, placing: Placing, shapes: Mapping[int, int]) -> bool:
        return all(
            sum(
                limit.uses.get(self.shapes[shape].name, 0) * placing.filling.row(at).count
                for at, shape in shapes.items()
            )
            <= max(0, limit.left)
            for limit in self.limits
        )

    def _smallest(self, row: Row, shape: int) -> int:
        present = self.shapes[shape]
        used = [items for items in row.held if items]
        taken = {name: getattr(present, name) - getattr(row, name) for name in (*HOST, "pods")}
        enough = [
            number
            for number, other in enumerate(self.shapes)
            if other.devices >= len(used)
            and all(getattr(other, name) >= amount for name, amount in taken.items())
            and (other.kind == present.kind or self.holds(self.kind[other.kind], used))
        ]

        def rank(number: int) -> tuple[object, ...]:
            other = self.shapes[number]
            return other.gpus, other.price or 0.0, other.cpu_milli, other.memory_mib, other.name

        return min(enough, key=rank)

    def holds(self, kind: int, gpus: Iterable[Sequence[int]]) -> bool:
        """Whether each GPU of the kind can hold its items, and these can be on one node."""
        if self._scheduler and len({self.requests[item].scheduler for items in gpus for item in items} - {0}) > 1:
            return False
        for items in gpus:
            sizes = [self.requests[item].sizes[kind] for item in items]
            if not all(sizes) or sum(sizes) > self.grids[kind].gpu:
                return False
        return True

    def named(self, placing: Placing) -> list[FilledNode]:
        """The nodes with names of pods: existing nodes by name, then new ones."""
        names = [iter(item.names) for item in self.items]
        groups = [iter(group) for group in self._groups]
        existing, new = [], []
        for at, row in placing.filling.rows():
            if not any(row.held):
                continue
            shape = self.shapes[placing.shapes[at]] if at in placing.shapes else None
            for _ in range(row.count):
                gpus = self._name_gpus(row.held, names)
                if shape is not None:
                    used = sorted((held for held in gpus if held), key=lambda held: (-len(held), held))
                    padded = (*used, *((),) * (shape.devices - len(used)))
                    new.append(FilledNode(padded, shape.kind, shape=shape.name))
                else:
                    node = next(groups[row.label])
                    placed: list[tuple[str, ...]] = [()] * len(node.devices)
                    for gpu, held in zip(node.least_first, gpus, strict=True):
                        placed[gpu] = held
                    existing.append(FilledNode(tuple(placed), node.kind, node=node.name))
        return [
            *sorted(existing, key=lambda node: node.node or ""),
            *sorted(new, key=lambda node: (node.shape or "", node.devices)),
        ]

    def _name_gpus(self, held: Sequence[Sequence[int]], names: Sequence[Iterator[str]]) -> list[tuple[str, ...]]:
        """Names of the pods on each GPU. A pod that uses several GPUs is on each."""
        gpus: list[list[str]] = [[] for _ in held]
        by_item: defaultdict[int, list[int]] = defaultdict(list)
        for gpu, items in enumerate(held):
            for item in items:
                by_item[item].append(gpu)
        for item, places in by_item.items():
            devices = self.items[item].devices
            if devices == 1:
                for gpu in places:
                    gpus[gpu].append(next(names[item]))
                continue
            # The pods of an item use different GPUs each, so the GPUs with the most copies left come first.
            left = {gpu: places.count(gpu) for gpu in dict.fromkeys(places)}
            for _ in range(len(places) // devices):
                name = next(names[item])
                for gpu in sorted(left, key=lambda gpu: (-left[gpu], gpu))[:devices]:
                    gpus[gpu].append(name)
                    left[gpu] -= 1
        return [tuple(sorted(each)) for each in gpus]


def _size_order(item: Item) -> tuple[object, ...]:
    return (-item.devices, -item.least_milli, -item.cpu_milli, -item.memory_mib, item.milli)
