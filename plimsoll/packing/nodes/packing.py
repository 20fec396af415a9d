"""Packing onto nodes: free parts of existing nodes first, then the fewest GPUs of new ones, then the lowest price.

Shares are packed onto GPUs first, as tightly as `packing` can; then GPUs onto nodes, with CPU and memory. A bound over
both says how far from the fewest the result can be.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from plimsoll.packing.gpus import Bin, Clock, Effort, FreeGPU, Item, Packing, Price, pack_within, size_on
from plimsoll.packing.nodes.filling import Filling
from plimsoll.packing.nodes.need import UNBOUNDED, FreeNode, NodePacking, NodeShape, PodNeed
from plimsoll.packing.nodes.opening import onto_shapes
from plimsoll.packing.nodes.shapes import Load, ShapeChoice
from plimsoll.packing.nodes.units import (
    Unit,
    balanced,
    group,
    kinds_of,
    large_first,
    largest_share_first,
    place,
    takes,
    unit_of,
)
from plimsoll.packing.units import GPU_MILLI


def pack_nodes(
    needs: Iterable[PodNeed],
    shapes: Iterable[NodeShape],
    nodes: Iterable[FreeNode] = (),
    *,
    seconds: float = 2.0,
    clock: Clock | None = None,
) -> NodePacking:
    """Packs pods onto free nodes and new ones. The order of the arguments does not matter.

    `seconds` and `clock` are those of `packing.pack`.
    """
    return pack_nodes_within(Effort(seconds, clock), needs, shapes, nodes)


def pack_nodes_within(
    effort: Effort, needs: Iterable[PodNeed], shapes: Iterable[NodeShape], nodes: Iterable[FreeNode] = ()
) -> NodePacking:
    """`pack_nodes` with the rest of a limit that others share.

    Nodes have room for many more pods than their GPUs have, so that how many is looked at only where a packing without
    that limit passes it.
    """
    needs, shapes = tuple(needs), tuple(shapes)
    nodes = tuple(node for node in nodes if node.pods > 0)
    packing = _pack_both_ways(
        needs,
        [replace(shape, pods=UNBOUNDED) for shape in shapes if shape.pods > 0],
        [replace(node, pods=UNBOUNDED) for node in nodes],
        effort,
    )
    most = {shape.name: shape.pods for shape in shapes}
    room = {node.name: node.pods for node in nodes}
    over = (len(each.pods) > (room[each.node] if each.node else most[each.shape or ""]) for each in packing.nodes)
    return _pack_both_ways(needs, shapes, nodes, effort) if any(over) else packing


def _pack_both_ways(
    needs: Sequence[PodNeed], shapes: Sequence[NodeShape], nodes: Sequence[FreeNode], effort: Effort
) -> NodePacking:
    """Pods on several GPUs first onto free nodes; where that is not proven best, the largest shares of all first."""
    packing = _NodePacker(needs, shapes, nodes, effort).pack()
    several = any(need.devices > 1 and not need.whole for need in needs)
    if not nodes or not several or (packing.gpus <= packing.least and not packing.unplaced):
        return packing
    other = _NodePacker(needs, shapes, nodes, effort).pack(by_size=True)
    return min(packing, other, key=lambda each: (len(each.unplaced), each.gpus))


class _NodePacker:
    def __init__(
        self,
        needs: Iterable[PodNeed],
        shapes: Iterable[NodeShape],
        nodes: Iterable[FreeNode],
        effort: Effort,
    ) -> None:
        self._effort = effort
        self._shapes = sorted((shape for shape in shapes if shape.gpus > 0), key=lambda shape: shape.name)
        self._existing = Filling(nodes)
        self._free = tuple(self._existing.nodes)
        self._unplaced: dict[str, str] = {}
        self._lower_bound = 0.0
        self._prices: tuple[Price, ...] = ()
        self._whole_packing: Packing | None = None
        """Of all pods, where each asks for a part of one GPU."""
        self._needs: dict[str, PodNeed] = {}
        kinds_of = _KindsOf(self._shapes, self._free)
        for need in sorted(needs, key=lambda need: need.name):
            milli = kinds_of(need)
            if milli:
                self._needs[need.name] = replace(need, milli=milli)
            else:
                self._unplaced[need.name] = (
                    "no free node and no shape of node could take it, even if it were empty: ask for fewer GPUs of one "
                    "node, or less CPU or memory, or declare a NodePool of larger nodes"
                )

    def pack(self, by_size: bool = False) -> NodePacking:
        """`by_size` puts the largest shares onto free nodes first, those on one GPU among them."""
        order = largest_share_first if by_size else large_first
        ordered = sorted(self._needs.values(), key=order)
        rest = [need for need in ordered if (need.single and not by_size) or not place(self._existing, need)]
        whole = [need for need in rest if need.whole]
        together = Filling()
        group(together, [need for need in rest if not need.whole and not need.single], self._shapes)
        units, loose = self._pack_singles([need for need in rest if need.single], together)
        group(together, [need for need in loose if not place(self._existing, need)], self._shapes)
        units += [self._unit([(need.name,)] * need.devices, need.milli) for need in whole]
        for row in range(len(together.nodes)):
            gpus = [names for names in together.held(row) if names]
            units.append(self._unit(gpus, kinds_of(gpus, self._needs, (shape.kind for shape in self._shapes))))
        fitting = [unit for unit in units if any(unit.fits(shape) for shape in self._shapes)]
        placed = {name for node in self._existing.filled() for name in node.pods}
        placed.update(name for unit in fitting for name in unit.pods)
        for name in self._needs.keys() - placed:
            self._unplaced[name] = "no free node has room for it, and no shape of node can take it"
        # Those that have no place are none of the bound either: without them fewer GPUs may do.
        least = self._least(placed) if fitting else 0
        new = onto_shapes(fitting, self._shapes, self._needs, least, self._effort)
        nodes = (*self._existing.filled(), *new)
        return NodePacking(nodes, tuple(sorted(self._unplaced.items())), least, self._lower_bound, self._prices)

    def _pack_singles(self, singles: Sequence[PodNeed], together: Filling) -> tuple[list[Unit], list[PodNeed]]:
        """Shares onto free GPUs and those that pods `together` have opened; then the units of new GPUs.

        Also the pods that CPU or memory keeps from where they were packed.
        """
        where: dict[str, tuple[Filling, int, int]] = {}
        supply = []
        for filling in (self._existing, together):
            for row in range(len(filling.nodes)):
                node, held = filling.free(row), filling.held(row)
                for gpu, free in enumerate(node.gpus):
                    if free > 0 and (filling is self._existing or held[gpu]):
                        name = f"{len(where):08}"
                        where[name] = filling, row, gpu
                        supply.append(FreeGPU(name, node.kind, free))
        packing = self._pack([Item(need.name, need.milli) for need in singles], supply)
        if len(singles) == len(self._needs):
            self._whole_packing = packing
        loose = [self._needs[name] for name, _ in packing.unplaced]
        for each in packing.bins:
            if each.gpu is not None:
                filling, row, gpu = where[each.gpu]
                for need in (self._needs[name] for name in each.items):
                    if not filling.put_on(row, gpu, need):
                        loose.append(need)
        units = []
        for each in balanced([each for each in packing.bins if each.gpu is None], self._needs, self._shapes):
            kept, dropped = self._fitting(each)
            units += [kept] if kept.pods else []
            loose += dropped
        return units, loose

    def _fitting(self, each: Bin) -> tuple[Unit, list[PodNeed]]:
        """The GPU with what some shape has the CPU and memory for, and the pods that are too much: the heaviest."""
        unit = self._unit([each.items], each.kinds)
        dropped: list[PodNeed] = []
        while unit.pods and not any(unit.fits(shape) for shape in self._shapes):
            heaviest = max(
                unit.pods, key=lambda name: (self._needs[name].cpu_milli, self._needs[name].memory_mib, name)
            )
            dropped.append(self._needs[heaviest])
            unit = self._unit([[name for name in unit.pods if name != heaviest]], each.kinds)
        return unit, dropped

    def _unit(self, gpus: Iterable[Iterable[str]], kinds: Iterable[str]) -> Unit:
        return unit_of(gpus, kinds, self._needs)

    def _pack(self, items: Sequence[Item], supply: Sequence[FreeGPU]) -> Packing:
        return pack_within(self._effort, items, supply, {shape.kind for shape in self._shapes})

    def _least(self, placed: Collection[str]) -> int:
        """GPUs of new nodes: by all shares as if nodes did not matter, then by shapes, CPU and memory."""
        needs = [need for need in self._needs.values() if need.name in placed]
        fitting = self._fitting_shapes(needs)
        choice = ShapeChoice(
            (
                Load(
                    tuple(sorted(need.milli)),
                    shapes,
                    need.devices * min(need.milli.values()),
                    need.devices if need.whole else 0,
                    need.cpu_milli,
                    need.memory_mib,
                    1,
                )
                for need, (shapes, _) in zip(needs, fitting, strict=True)
            ),
            self._shapes,
            self._free,
        )
        every = len(needs) == len(self._needs)
        packing = self._whole_packing if self._whole_packing and every else self._pack_devices(needs)
        self._lower_bound, self._prices = packing.lower_bound, packing.prices
        choice.require(packing.least)
        choice.require_parts()
        for shapes in sorted({tuple(sorted(shapes)) for shapes, needed in fitting if needed and shapes}):
            choice.require_one_of(shapes)
        return choice.least_gpus()

    def _pack_devices(self, needs: Sequence[PodNeed]) -> Packing:
        """The GPUs of all pods, each for itself."""
        items = [Item(f"{need.name} {gpu}", need.milli) for need in needs for gpu in range(need.devices)]
        supply = [
            FreeGPU(f"{row} {gpu}", node.kind, free)
            for row, node in enumerate(self._free)
            for gpu, free in enumerate(node.gpus)
        ]
        return self._pack(items, supply)

    def _fitting_shapes(self, needs: Sequence[PodNeed]) -> list[tuple[frozenset[str], bool]]:
        """For each pod the names of shapes that take it, and whether it has to be one of these: no free node does."""
        empty = Filling(self._free)
        known: dict[tuple[object, ...], tuple[frozenset[str], bool]] = {}
        found = []
        for need in needs:
            key = (*sorted(need.milli.items()), need.devices, need.cpu_milli, need.memory_mib)
            if key not in known:
                fitting = (each.name for each in self._shapes if each.kind in need.milli and takes(each, need))
                needed = empty.find(need.milli, need.devices, need.cpu_milli, need.memory_mib) is None
                known[key] = frozenset(fitting), needed
            found.append(known[key])
        return found


class _KindsOf:
    """Thousandths by kind for pods, of the kinds of which an empty node of a shape or a free node could take them."""

    def __init__(self, shapes: Sequence[NodeShape], nodes: Sequence[FreeNode]) -> None:
        roomiest: dict[str, NodeShape] = {}
        for node in nodes:
            most = roomiest.get(node.kind, NodeShape("", node.kind, 0, 0, 0, pods=0))
            roomiest[node.kind] = NodeShape(
                "",
                node.kind,
                max(most.gpus, len(node.gpus)),
                max(most.cpu_milli, node.cpu_milli),
                max(most.memory_mib, node.memory_mib),
                pods=max(most.pods, node.pods),
            )
        self._shapes = [*shapes, *roomiest.values()]
        self._known: dict[tuple[object, ...], dict[str, int]] = {}

    def __call__(self, need: PodNeed) -> dict[str, int]:
        key = (tuple(sorted(need.milli.items())), need.devices, need.cpu_milli, need.memory_mib)
        found = self._known.get(key)
        if found is None:
            sizes = {shape.kind: size_on(need.milli, shape.kind) for shape in self._shapes if takes(shape, need)}
            found = self._known[key] = {kind: size for kind, size in sizes.items() if 0 < size <= GPU_MILLI}
        return found
