"""Packs one class: into free resources, then into requested nodes, then into new nodes within the limits."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from plimsoll.packing import GPU_MILLI
from plimsoll.packing.gpus import Effort, Price
from plimsoll.packing.nodes import (
    FilledNode,
    Filling,
    FreeNode,
    NodePacking,
    NodeShape,
    PodNeed,
    large_first,
    pack_nodes_within,
    place,
    takes,
)
from plimsoll.plan.demand.demand import Promise
from plimsoll.plan.demand.free_parts import FreeParts
from plimsoll.plan.pools import Excess, PoolLimits, PoolShape


@dataclass(frozen=True, slots=True)
class PromisedNode:
    """A requested node, outstanding or just registered, with the resources that it offers to its class."""

    free: FreeNode
    node_pool: str
    instance_types: tuple[str, ...]
    largest: PoolShape | None
    """What it counts for against the limits of its NodePool; None where that is not known."""
    came: bool = False
    """It is there already."""

    @classmethod
    def of(cls, promise: Promise, shapes: Sequence[PoolShape]) -> "PromisedNode":
        """`shapes` are those that it may come as, at least one."""
        free = FreeNode(
            promise.name,
            shapes[0].kind,
            (GPU_MILLI,) * promise.gpus,
            min(each.cpu_milli for each in shapes),
            min(each.memory_mib for each in shapes),
            min(each.pods for each in shapes),
        )
        largest = max(shapes, key=lambda shape: (shape.gpus, shape.cpu_milli, shape.name))
        return cls(free, promise.node_pool, promise.instance_types, largest)

    def holds(self, shape: PoolShape, cpu_milli: int, memory_mib: int, pods: int) -> bool:
        """Whether it is, or will be, a whole node of that shape with room for so much."""
        return (
            self.node_pool == shape.node_pool
            and shape.instance_type in self.instance_types
            and self.free.gpus == (GPU_MILLI,) * shape.gpus
            and self.free.cpu_milli >= cpu_milli
            and self.free.memory_mib >= memory_mib
            and self.free.pods >= pods
        )


@dataclass(frozen=True, slots=True)
class Given:
    """Inputs of packing a class, without limits."""

    needs: tuple[PodNeed, ...]
    shapes: tuple[PoolShape, ...]
    free: FreeParts
    promised: tuple[PromisedNode, ...]

    @property
    def came(self) -> list[FreeNode]:
        """What is free of nodes that came for the class."""
        return [each.free for each in self.promised if each.came]


@dataclass
class PackedClass:
    packing: NodePacking
    """As if nothing had been promised."""
    on_nodes: tuple[FilledNode, ...] = ()
    on_promises: dict[str, FilledNode] = field(default_factory=dict)
    """By name of the promise, or of the node that came for one."""
    new: tuple[FilledNode, ...] = ()
    unplaced: dict[str, str] = field(default_factory=dict)

    @cached_property
    def pods_on_promises(self) -> Mapping[str, tuple[str, ...]]:
        """UIDs by promise, sorted."""
        return {name: node.pods for name, node in sorted(self.on_promises.items())}

    @cached_property
    def pods_on_nodes(self) -> dict[str, tuple[str, ...]]:
        """UIDs by existing node."""
        return {node.node: node.pods for node in self.on_nodes if node.node is not None}

    def awaited(self, given: Given) -> int:
        """GPUs of nodes that are still to come for it, asked for or not."""
        came = {each.free.name for each in given.promised if each.came}
        coming = sum(len(node.gpus) for name, node in self.on_promises.items() if name not in came)
        return coming + sum(len(node.gpus) for node in self.new)


class ClassPacker:
    """Packs the pods of one class.

    Requested nodes are given to the packing that they were requested for. Without them, the packing depends only on the
    pods and the free resources, so a repeated plan finds its own nodes among them. If pods were added or removed since,
    requested nodes are filled first.
    """

    def __init__(
        self,
        shapes: Sequence[PoolShape],
        free: Sequence[FreeNode],
        promised: Sequence[PromisedNode],
        limits: PoolLimits,
        effort: Effort,
    ) -> None:
        self._shapes = {shape.name: shape for shape in shapes}
        self._free = free
        self._promised = sorted(promised, key=lambda each: each.free.name)
        self._limits = limits
        self._effort = effort

    def pack(self, needs: Sequence[PodNeed]) -> PackedClass:
        """Takes from the limits what the new nodes need beyond promises."""
        # A promise may count against the limits already: its own room is there for it.
        roomy = self._limits.copy()
        for each in self._promised:
            if each.largest is not None:
                roomy.give(each.largest)
        packing = self._pack(needs, self._free, roomy)
        on_nodes = tuple(each for each in packing.nodes if each.shape is None)
        unplaced = dict(packing.unplaced)
        by_name = {need.name: need for need in needs}
        matched, rest = self._matched(packing.new_nodes, by_name)
        if (rest or unplaced) and self._promised:
            waiting = [by_name[name] for node in packing.new_nodes for name in node.pods]
            waiting += [by_name[name] for name in unplaced]
            again = self._pack(waiting, [each.free for each in self._promised], self._limits.copy())
            left = tuple(each for each in again.nodes if each.shape is not None)
            lacking, would_lack = (len(unplaced), _gpus(rest)), (len(again.unplaced), _gpus(left))
            if would_lack < lacking or (rest and would_lack == lacking):
                matched = {each.node: each for each in again.nodes if each.node is not None}
                rest, unplaced = left, dict(again.unplaced)
        new, over = self._within_limits(rest, self._limits)
        for node, why in over:
            unplaced |= dict.fromkeys(node.pods, str(why))
        return PackedClass(packing, on_nodes, matched, new, unplaced)

    def pack_onto_promised(self, needs: Sequence[PodNeed]) -> PackedClass:
        """The same, first into what was promised; what is free besides is used where that needs new nodes otherwise."""
        promised = {each.free.name: each for each in self._promised}
        frees = [each.free for each in self._promised]
        packing = self._pack(needs, frees, self._limits.copy())
        if packing.new_nodes or packing.unplaced:
            packing = self._best_fit(needs, frees) or self._pack(needs, [*self._free, *frees], self._limits.copy())
        there = [each for each in packing.nodes if each.node is not None]
        on_promises = {each.node: each for each in there if each.node in promised}
        as_new = (
            replace(each, node=None, shape=largest.name)
            for name, each in on_promises.items()
            if (largest := promised[name].largest) is not None
        )
        new, over = self._within_limits(packing.new_nodes, self._limits)
        unplaced = dict(packing.unplaced)
        for node, why in over:
            unplaced |= dict.fromkeys(node.pods, str(why))
        on_nodes = tuple(each for each in there if each.node not in promised)
        nodes = (*on_nodes, *as_new, *packing.new_nodes)
        return PackedClass(replace(packing, nodes=nodes), on_nodes, on_promises, new, unplaced)

    def _best_fit(self, needs: Sequence[PodNeed], promised: Sequence[FreeNode]) -> NodePacking | None:
        """Best fit alone onto what was promised and then what is free; None where that is not enough."""
        for first in (large_first, _heavy_first):
            fillings = Filling(promised), Filling(self._free)
            if all(any(place(filling, need) for filling in fillings) for need in sorted(needs, key=first)):
                return NodePacking((*fillings[1].filled(), *fillings[0].filled()))
        return None

    def _pack(self, needs: Sequence[PodNeed], free: Sequence[FreeNode], limits: PoolLimits) -> NodePacking:
        """NodePools of the greatest weight first, as Karpenter does; what would pass a limit is left out."""
        left, nodes, least, bound = list(needs), list[FilledNode](), 0, 0.0
        prices: tuple[Price, ...] = ()
        why: dict[str, str] = {}
        excess: Excess | None = None
        for weight in sorted({shape.weight for shape in self._shapes.values()} or {0}, reverse=True):
            over_limit: list[tuple[FilledNode, Excess]] | None = None
            while left and (over_limit is None or over_limit):
                shapes = [each for each in self._shapes.values() if each.weight == weight]
                excesses = [(each, limits.excess(each)) for each in shapes]
                fitting = [as_node_shape(each) for each, over in excesses if over is None]
                excess = next((over for _, over in excesses if over is not None), excess)
                packing = pack_nodes_within(self._effort, left, fitting, free)
                taken, over_limit = self._within_limits(packing.new_nodes, limits)
                nodes += [*(each for each in packing.nodes if each.shape is None), *taken]
                least, bound, free = least + packing.least, bound + packing.lower_bound, ()
                prices = prices or packing.prices
                why |= dict(packing.unplaced)
                placed = {name for each in packing.nodes for name in each.pods}
                placed -= {name for node, _ in over_limit for name in node.pods}
                left = [need for need in left if need.name not in placed]
        unplaced = ((need.name, self._why(need, why[need.name], excess)) for need in left)
        return NodePacking(tuple(nodes), tuple(sorted(unplaced)), min(least, _gpus(nodes)), bound, prices)

    def _why(self, need: PodNeed, reason: str, excess: Excess | None) -> str:
        """A limit where a node that would pass it could take the pod."""
        could = any(each.kind in need.milli and takes(as_node_shape(each), need) for each in self._shapes.values())
        return str(excess) if excess is not None and could else reason

    def _within_limits(
        self, nodes: Iterable[FilledNode], limits: PoolLimits
    ) -> tuple[tuple[FilledNode, ...], list[tuple[FilledNode, Excess]]]:
        """The nodes that there is room for, which is taken, and those that would pass a limit."""
        taken, over = [], []
        for node in nodes:
            shape = self._shapes[node.shape or ""]
            excess = limits.excess(shape)
            if excess is None:
                limits.give(shape, -1)
                taken.append(node)
            else:
                over.append((node, excess))
        return tuple(taken), over

    def _matched(
        self, nodes: Sequence[FilledNode], needs: Mapping[str, PodNeed]
    ) -> tuple[dict[str, FilledNode], tuple[FilledNode, ...]]:
        """Planned nodes that were promised before, by promise, and the others."""
        found: dict[str, FilledNode] = {}
        left, rest = list(self._promised), []
        for node in sorted(nodes, key=lambda node: node.pods):
            shape = self._shapes[node.shape or ""]
            cpu_milli = sum(needs[name].cpu_milli for name in node.pods)
            memory_mib = sum(needs[name].memory_mib for name in node.pods)
            holding = (at for at, each in enumerate(left) if each.holds(shape, cpu_milli, memory_mib, len(node.pods)))
            at = next(holding, None)
            if at is None:
                rest.append(node)
            else:
                found[left.pop(at).free.name] = node
        return found, tuple(rest)


def _heavy_first(need: PodNeed) -> tuple[int, int, tuple[int, int, int, str]]:
    """Sorts pods before others that are hard to place beside CPU and memory."""
    return (-need.cpu_milli, -need.memory_mib, large_first(need))


def as_node_shape(shape: PoolShape) -> NodeShape:
    return NodeShape(shape.name, shape.kind, shape.gpus, shape.cpu_milli, shape.memory_mib, shape.price, shape.pods)


def _gpus(nodes: Iterable[FilledNode]) -> int:
    """Of new nodes."""
    return sum(len(each.gpus) for each in nodes if each.shape is not None)
