"""Pods that go together: what the GPUs of new nodes are to hold, before nodes are chosen."""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from plimsoll.packing.gpus import Bin
from plimsoll.packing.nodes.filling import Filling
from plimsoll.packing.nodes.need import UNBOUNDED, FreeNode, NodeShape, PodNeed
from plimsoll.packing.nodes.shapes import Load
from plimsoll.packing.units import GPU_MILLI


@dataclass(frozen=True, slots=True)
class Unit:
    """GPUs of one node with what they are to hold; nobody else shares them."""

    gpus: tuple[tuple[str, ...], ...]
    kinds: tuple[str, ...]
    cpu_milli: int
    memory_mib: int

    @property
    def pods(self) -> tuple[str, ...]:
        """Sorted, each once."""
        return tuple(sorted({name for held in self.gpus for name in held}))

    def load(self, shapes: Iterable[NodeShape], headroom: float = 0.0) -> Load:
        """What it asks, with a part more of CPU and memory, of new nodes of these shapes."""
        count, more = len(self.gpus), 1.0 + headroom
        fitting = frozenset(shape.name for shape in shapes if self.fits(shape))
        return Load(
            self.kinds,
            fitting,
            GPU_MILLI * count,
            count,
            int(self.cpu_milli * more),
            int(self.memory_mib * more),
            len(self.pods),
        )

    def interchangeable(self, needs: Mapping[str, PodNeed]) -> bool:
        """Whether it is one GPU, and others can stand in for its pods."""
        return len(self.gpus) == 1 and all(needs[name].devices == 1 for name in self.gpus[0])

    def fits(self, shape: NodeShape) -> bool:
        """Whether an empty node of the shape takes it."""
        return (
            shape.kind in self.kinds
            and shape.gpus >= len(self.gpus)
            and shape.cpu_milli >= self.cpu_milli
            and shape.memory_mib >= self.memory_mib
            and (shape.pods >= UNBOUNDED or shape.pods >= len(self.pods))
        )


def unit_of(gpus: Iterable[Iterable[str]], kinds: Iterable[str], needs: Mapping[str, PodNeed]) -> Unit:
    """The unit of these pods by GPU; a pod of several devices stands on several GPUs and counts once."""
    held = tuple(tuple(sorted(names)) for names in gpus)
    pods = {name for names in held for name in names}
    return Unit(
        held,
        tuple(sorted(kinds)),
        sum(needs[name].cpu_milli for name in pods),
        sum(needs[name].memory_mib for name in pods),
    )


def balanced(bins: Sequence[Bin], needs: Mapping[str, PodNeed], shapes: Sequence[NodeShape]) -> list[Bin]:
    """The same bins with pods of equal shares exchanged, so that none is much heavier on CPU and memory than others."""
    cpu = max((shape.cpu_milli / shape.gpus for shape in shapes), default=1) or 1
    memory = max((shape.memory_mib / shape.gpus for shape in shapes), default=1) or 1
    weight = {
        name: needs[name].cpu_milli / cpu + needs[name].memory_mib / memory for each in bins for name in each.items
    }
    slots: dict[tuple[tuple[str, int], ...], list[int]] = defaultdict(list)
    pods: dict[tuple[tuple[str, int], ...], list[str]] = defaultdict(list)
    for number, each in enumerate(bins):
        for name in each.items:
            key = tuple(sorted(needs[name].milli.items()))
            slots[key].append(number)
            pods[key].append(name)
    load = [0.0] * len(bins)
    dealt: list[list[str]] = [[] for _ in bins]
    # The largest shares first: they have the fewest bins to choose from.
    for key in sorted(slots, key=lambda key: (-max(size for _, size in key), key)):
        free: dict[int, int] = defaultdict(int)
        for number in slots[key]:
            free[number] += 1
        waiting = [(load[number], number) for number in free]
        heapq.heapify(waiting)
        for name in sorted(pods[key], key=lambda name: (-weight[name], name)):
            _, number = heapq.heappop(waiting)
            dealt[number].append(name)
            load[number] += weight[name]
            free[number] -= 1
            if free[number]:
                heapq.heappush(waiting, (load[number], number))
    return [Bin(tuple(sorted(names)), each.gpu, each.kinds) for names, each in zip(dealt, bins, strict=True)]


def group(filling: Filling, needs: Sequence[PodNeed], shapes: Sequence[NodeShape]) -> list[PodNeed]:
    """Puts pods together on as few GPUs as best fit finds, on nodes of the smallest shapes, added as needed.

    For pods with shares on several GPUs of one node, and for those that CPU or memory keeps from where packing put
    them. Gives the pods that no shape can take.
    """
    left = []
    for need in sorted(needs, key=large_first):
        if place(filling, need):
            continue
        roomy = [shape for shape in shapes if shape.kind in need.milli and takes(shape, need)]
        if not roomy:
            left.append(need)
            continue
        best = min(roomy, key=lambda shape: (shape.gpus, need.milli[shape.kind], shape.price or 0.0, shape.name))
        filling.add([empty_node(best, len(filling.nodes))])
        place(filling, need)
    return left


def kinds_of(gpus: Iterable[Iterable[str]], needs: Mapping[str, PodNeed], kinds: Iterable[str]) -> list[str]:
    """The kinds of which every one of these GPUs can hold its pods."""
    held = [[needs[name].milli for name in names] for names in gpus]
    return [
        kind
        for kind in sorted(set(kinds))
        if all(kind in milli for pods in held for milli in pods)
        and all(sum(milli[kind] for milli in pods) <= GPU_MILLI for pods in held)
    ]


def place(filling: Filling, need: PodNeed) -> bool:
    """Puts a pod on the best node for it; False where none has room."""
    row = filling.find(need.milli, need.devices, need.cpu_milli, need.memory_mib)
    if row is None:
        return False
    size = need.milli[filling.nodes[row].kind]
    filling.put(row, [(need.name,)] * need.devices, size, need.cpu_milli, need.memory_mib)
    return True


def place_unit(filling: Filling, unit: Unit) -> bool:
    """Puts a unit on empty GPUs of the best node for it; False where none has room."""
    milli = dict.fromkeys(unit.kinds, GPU_MILLI)
    row = filling.find(milli, len(unit.gpus), unit.cpu_milli, unit.memory_mib, len(unit.pods))
    if row is not None:
        filling.put(row, unit.gpus, GPU_MILLI, unit.cpu_milli, unit.memory_mib)
    return row is not None


def empty_node(shape: NodeShape, number: int) -> FreeNode:
    """A new node of the shape, named by its number."""
    gpus = (GPU_MILLI,) * shape.gpus
    return FreeNode(f"{number:06}", shape.kind, gpus, shape.cpu_milli, shape.memory_mib, shape.pods)


def takes(shape: NodeShape, need: PodNeed) -> bool:
    """Whether an empty node of the shape takes the pod, as far as numbers go."""
    return (
        shape.gpus >= need.devices
        and shape.cpu_milli >= need.cpu_milli
        and shape.memory_mib >= need.memory_mib
        and shape.pods > 0
    )


def large_first(need: PodNeed) -> tuple[int, int, int, str]:
    """Sorts pods that are hard to place before others."""
    return (-need.devices, -min(need.milli.values(), default=0), -need.cpu_milli, need.name)


def largest_share_first(need: PodNeed) -> tuple[int, int, int, str]:
    """Sorts pods by what they take of each of their GPUs."""
    return (-min(need.milli.values(), default=0), -need.devices, -need.cpu_milli, need.name)
