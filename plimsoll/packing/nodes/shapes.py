"""Chooses how many nodes of which shapes to use: an integer program over GPUs, CPU and memory by kind."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from plimsoll.packing.gpus import Program
from plimsoll.packing.nodes.need import HOST, FreeNode, Limit, NodeShape
from plimsoll.packing.nodes.scale import Scale
from plimsoll.packing.units import GPU_MILLI, UNBOUNDED

_ROUNDING = 1e-6
"""Tolerance that keeps the solver's rounding from raising the bound."""
_WORTH = 1.001
"""Factor by which a count of parts must exceed the plain sum to be added as a constraint."""
_PARTS = 200
"""Maximum number of sizes of parts that are tried."""


@dataclass(frozen=True, slots=True)
class Load:
    """What a pod, or several pods that stay together, need of one node."""

    kinds: tuple[str, ...]
    """Kinds of GPU that can hold it, sorted."""
    shapes: frozenset[str]
    """Names of the shapes that it fits if the node is empty."""
    gpu_milli: int
    """Sum of thousandths of GPUs, on the kind where this is least."""
    devices: int
    """Number of whole GPUs of one node among them."""
    cpu_milli: int
    memory_mib: int
    storage_mib: int
    pod_milli: int
    """Thousandths of pods, including reservation pods."""
    count: int = 1
    """Number of such loads."""
    ratios: tuple[float, ...] = ()
    """Size on each of its kinds relative to `gpu_milli`; empty if it is the same on all."""


_Class = tuple[tuple[str, ...], frozenset[str], tuple[float, ...]]
"""Kinds, shapes and ratios of loads that can use the same nodes."""


class ShapeChoice:
    """The integer program. It is a relaxation: the GPUs, CPU and memory of a load may be on different nodes.

    `free` is what existing nodes offer to the loads, equal nodes once with their number.
    """

    def __init__(
        self, loads: Iterable[Load], shapes: Sequence[NodeShape], free: Sequence[tuple[FreeNode, int]] = ()
    ) -> None:
        self._shapes = sorted(shapes, key=lambda shape: shape.name)
        self._program = Program()
        self._required = 0
        self._count = {shape.name: self._program.column(integer=True) for shape in self._shapes}
        self._kinds = sorted({shape.kind for shape in shapes} | {node.kind for node, _ in free})
        self._names = {kind: frozenset(shape.name for shape in shapes if shape.kind == kind) for kind in self._kinds}
        self._free: dict[str, list[tuple[FreeNode, int]]] = defaultdict(list)
        for node, count in free:
            self._free[node.kind].append((node, count))
        self._classes: dict[_Class, list[Load]] = defaultdict(list)
        alone: dict[tuple[_Class, int], tuple[int, int]] = {}
        for load in loads:
            alike = load.kinds, load.shapes, load.ratios
            if (alike, load.devices) not in alone:
                alone[alike, load.devices] = self._taken_by(load)
            cpu_milli, memory_mib = map(max, alone[alike, load.devices], (load.cpu_milli, load.memory_mib))
            self._classes[alike].append(replace(load, cpu_milli=cpu_milli, memory_mib=memory_mib))
        every = [load for members in self._classes.values() for load in members]
        self._resource(
            lambda load: load.gpu_milli, lambda shape: GPU_MILLI * shape.devices, _free_gpu_milli, by_kind=True
        )
        for resource in HOST:
            whole = partial(_parts_of, resource, 1)
            self._resource(whole, whole, whole)
        if min((*(shape.pods for shape in shapes), *(node.pods for node, _ in free)), default=UNBOUNDED) < UNBOUNDED:
            most = sum(load.pod_milli * load.count for load in every)
            self._resource(
                lambda load: load.pod_milli,
                lambda shape: min(1000 * shape.pods, most),
                lambda node: min(_free_pod_milli(node), most),
            )
        for devices in sorted({load.devices for load in every} - {0, 1}):
            # Each load with this many whole GPUs or more uses at least that many GPUs of one node.
            self._resource(partial(_reaches, devices), partial(_places, devices), partial(_free_places, devices))

    def _taken_by(self, load: Load) -> tuple[int, int]:
        """CPU and memory that no other load can use: all of a node whose GPUs the load uses entirely."""
        fitting = [shape for shape in self._shapes if shape.name in load.shapes]
        shared = any(shape.devices != load.devices for shape in fitting)
        if not fitting or shared or any(_free_places(1, node) for kind in load.kinds for node, _ in self._free[kind]):
            return 0, 0
        return min(shape.cpu_milli for shape in fitting), min(shape.memory_mib for shape in fitting)

    def require_parts(self) -> None:
        """Adds constraints because loads cannot be split: a node has room for whole parts of a resource only.

        For example, 13 loads of 7 CPU fill a node with 96 CPU. Which parts matter is tried with each shape alone.
        """
        loads = [load for members in self._classes.values() for load in members]
        for resource in HOST:
            requested = np.repeat([getattr(load, resource) for load in loads], [load.count for load in loads])
            for part in self._parts(requested, {int(getattr(shape, resource)) for shape in self._shapes}):
                whole = partial(_parts_of, resource, part)
                self._resource(whole, whole, whole)

    def _parts(self, requested: NDArray[np.int64], capacities: set[int]) -> list[int]:
        """For each capacity, the part that raises the requested sum most; only if it exceeds the plain sum."""
        sizes = np.unique(requested)
        sizes = sizes[:: -(-len(sizes) // _PARTS) or 1]
        found = set()
        for capacity in capacities - {0}:
            # Candidates: just above a half, a third, ... of a node, and the requested amounts themselves.
            parts = np.unique([*(capacity // count + 1 for count in range(2, 6)), *sizes[sizes > 0]])
            parts = parts[parts <= capacity]
            nodes = [int((requested // part).sum()) / (capacity // int(part)) for part in parts]
            if nodes and max(nodes) > _WORTH * float(requested.sum()) / capacity:
                found.add(int(parts[int(np.argmax(nodes))]))
        return sorted(found)

    def require(self, gpus: int) -> None:
        """Constraint: new nodes have at least this many GPUs."""
        self._required = max(gpus, self._required)
        self._program.rows.append((gpus, math.inf, self._gpus()))

    def require_devices(self, devices: int) -> None:
        """Constraint: new nodes have at least this many devices."""
        most = max((shape.per_gpu for shape in self._shapes), default=1)
        self._required = max(-(-devices // most), self._required)
        columns = {self._count[shape.name]: float(shape.devices) for shape in self._shapes}
        self._program.rows.append((devices, math.inf, columns))

    def limit(self, left: int, uses: Mapping[str, int]) -> None:
        """Constraint: new nodes use at most `left`."""
        entries = {self._count[name]: float(amount) for name, amount in uses.items() if name in self._count and amount}
        if entries:
            self._program.rows.append((-math.inf, float(max(0, left)), entries))

    def exceeds(self, limits: Iterable[Limit]) -> bool:
        """Whether new nodes that offer enough exceed one of the limits."""
        over: dict[int, float] = {}
        for limit in limits:
            uses = {self._count[name]: amount for name, amount in limit.uses.items() if name in self._count and amount}
            if uses:
                most, column = max(uses.values()), self._program.column()
                over[column] = 1.0
                entries = {each: amount / most for each, amount in uses.items()}
                self._program.rows.append((-math.inf, max(0, limit.left) / most, {**entries, column: -1.0}))
        found = self._program.minimise(over)
        return found is not None and found[1] > _ROUNDING

    def require_one_of(self, shapes: Iterable[str]) -> None:
        """Constraint: at least one new node has one of these shapes."""
        self._program.rows.append((1.0, math.inf, {self._count[name]: 1.0 for name in shapes}))

    def least_gpus(self) -> int:
        """Lower bound of the GPUs of new nodes."""
        found = self._program.minimise(self._gpus())
        return self._required if found is None else max(self._required, math.ceil(found[1] - _ROUNDING))

    def choose(self) -> Counter[str]:
        """Number of nodes of each shape: with the fewest GPUs, then the lowest price, then the fewest nodes."""
        found = self._program.minimise(self._gpus())
        if found is None:
            return Counter()
        columns, _ = found
        gpus = sum(columns[column] * value for column, value in self._gpus().items())
        self._program.rows.append((-math.inf, round(gpus), self._gpus()))
        cheapest_price = min((shape.price for shape in self._shapes if shape.price), default=1.0)
        # The price counts first, then each node a thousandth of the cheapest one, then CPU and memory.
        price = {
            self._count[shape.name]: (shape.price or 0.0) / cheapest_price + 1e-3 - 1e-5 * self._plenty(shape)
            for shape in self._shapes
        }
        cheapest = self._program.minimise(price)
        self._program.rows.pop()
        columns = columns if cheapest is None else cheapest[0]
        chosen = {shape.name: round(columns[self._count[shape.name]]) for shape in self._shapes}
        return Counter({name: count for name, count in chosen.items() if count})

    def _plenty(self, shape: NodeShape) -> float:
        """CPU and memory of a node relative to the maximum of all shapes. Between equal choices, more of it is easier
        to fill."""
        cpu_milli = max(each.cpu_milli for each in self._shapes) or 1
        memory_mib = max(each.memory_mib for each in self._shapes) or 1
        return (shape.cpu_milli / cpu_milli + shape.memory_mib / memory_mib) / 2

    def _gpus(self) -> dict[int, float]:
        return {self._count[shape.name]: float(shape.gpus) for shape in self._shapes}

    def _resource(
        self,
        requested: Callable[[Load], int],
        offered: Callable[[NodeShape], int],
        free: Callable[[FreeNode], int],
        by_kind: bool = False,
    ) -> None:
        """Constraints: the load of each class is divided over its kinds, and the shapes of each kind offer enough for
        what fits no other shape."""
        scale = Scale(max((offered(shape) for shape in self._shapes), default=0))
        flows: dict[str, dict[frozenset[str], list[tuple[int, float]]]] = {
            kind: defaultdict(list) for kind in self._kinds
        }
        for (kinds, shapes, ratios), members in sorted(
            self._classes.items(), key=lambda each: (each[0][0], sorted(each[0][1]), each[0][2])
        ):
            ratio = dict(zip(kinds, ratios, strict=True)) if ratios and by_kind else {}
            load = scale.down(sum(requested(each) * each.count for each in members))
            if not load:
                continue
            columns = {kind: self._program.column() for kind in kinds if kind in flows}
            self._program.rows.append((load, load, dict.fromkeys(columns.values(), 1.0)))
            for kind, column in columns.items():
                flows[kind][shapes & self._names[kind]].append((column, ratio.get(kind, 1.0)))
        for kind, by_shapes in flows.items():
            room = scale.up(sum(free(node) * count for node, count in self._free[kind]))
            for fitting in sorted(by_shapes, key=sorted):
                entries = {
                    column: times
                    for shapes, columns in by_shapes.items()
                    if shapes <= fitting
                    for column, times in columns
                }
                for shape in self._shapes:
                    if shape.name in fitting:
                        entries[self._count[shape.name]] = -scale.up(offered(shape))
                self._program.rows.append((-math.inf, room, entries))


def _free_pod_milli(node: FreeNode) -> int:
    """Free thousandths of pods. Shares on a GPU that is shared already need no part of a reservation pod."""
    return 1000 * node.pods + math.ceil(sum(free for free in node.devices if free < GPU_MILLI))


def _free_gpu_milli(node: FreeNode) -> int:
    return math.ceil(sum(node.devices))


def _parts_of(resource: str, part: int, holder: Load | NodeShape | FreeNode) -> int:
    return int(getattr(holder, resource)) // part


def _reaches(devices: int, load: Load) -> int:
    return int(load.devices >= devices)


def _places(devices: int, shape: NodeShape) -> int:
    return shape.devices // devices


def _free_places(devices: int, node: FreeNode) -> int:
    return sum(free == GPU_MILLI for free in node.devices) // devices
