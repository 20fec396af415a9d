"""Repairs the last packing of a class: changes it only where its pods or its supply changed."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from plimsoll.packing import GPU_MILLI
from plimsoll.packing.nodes import (
    FilledNode,
    Filling,
    FreeNode,
    NodePacking,
    NodeUse,
    PodNeed,
    large_first,
    place,
    takes,
)
from plimsoll.plan.demand.packer import Given, PackedClass, PromisedNode, as_node_shape
from plimsoll.plan.pools import PoolLimits, PoolShape

_EXCHANGES = 20
"""How many nodes may change what they were matched with so that one more is matched."""

Held = tuple[tuple[str, ...], ...]
"""Pods on each GPU of a node."""


class _Offer(NamedTuple):
    """What is promised, names aside: thousands of nodes that are asked for are of a few kinds."""

    instance_types: tuple[str, ...]
    kind: str
    gpus: tuple[int, ...]
    cpu_milli: int
    memory_mib: int
    pods: int


@dataclass(slots=True)
class _Standing:
    """A node with the pods that keep their place on it."""

    free: FreeNode
    """Before them."""
    held: Held
    shape: PoolShape | None = None
    """Of a node that was asked for or is to be; None of an existing one, and where it is not known."""
    promise: str | None = None

    def with_more(self, more: Sequence[Collection[str]]) -> Held:
        return tuple(tuple(sorted((*names, *new))) for names, new in zip(self.held, more, strict=True))


class ClassRepair:
    """Pods that are still there keep their place where it is still right; the others go by best fit into what is free
    of existing nodes, then of nodes that were asked for or are to be, then onto unused promises, then onto new nodes.
    """

    def __init__(self, packed: PackedClass, given: Given, limits: PoolLimits) -> None:
        self._packed = packed
        self._given = given
        self._limits = limits.copy()
        self._needs = {need.name: need for need in given.needs}
        self._shapes = {shape.name: shape for shape in given.shapes}
        self._homeless: dict[str, PodNeed] = dict(self._needs)
        self._existing: dict[str, _Standing] = {}
        self._new: list[_Standing] = []
        self._unused = {each.free.name: each for each in sorted(given.promised, key=lambda each: each.free.name)}
        self._unplaced: dict[str, str] = {}

    def pack(self) -> PackedClass | None:
        """None where a pod finds no place that might have one: then all is packed anew."""
        for node in self._packed.on_nodes:
            free = self._given.free.get(node.node or "")
            if free is not None and (standing := self._kept(free, node.gpus)):
                self._existing[free.name] = standing
        self._keep_new()
        return self._result() if self._within_limits() and self._place_homeless() else None

    def _kept(self, free: FreeNode, held: Held) -> _Standing | None:
        """Pods where they were, or where else they fit on the same node; None where none does."""
        held = tuple(tuple(name for name in names if name in self._homeless) for names in held)
        if not any(held):
            return None
        use = NodeUse.of(free, held, self._needs)
        if use is None or not use.fits(free):
            filling = Filling([free])
            for need in sorted((self._needs[name] for name in {n for names in held for n in names}), key=large_first):
                place(filling, need)
            held = filling.held(0)
        for name in {name for names in held for name in names}:
            del self._homeless[name]
        return _Standing(free, held) if any(held) else None

    def _keep_new(self) -> None:
        """Nodes that were asked for by name; then what is known by another name now, as it came or was asked for."""
        others = list(self._packed.new)
        for name, node in self._packed.on_promises.items():
            promised = self._unused.get(name)
            if promised is None:
                others.append(node)
            elif (standing := self._kept(promised.free, node.gpus[: len(promised.free.gpus)])) is not None:
                self._stand_on(promised, standing)
        found = self._matched(others)
        for number, node in enumerate(others):
            promised, shape = found.get(number), self._shapes.get(node.shape or "")
            if promised is not None and (standing := self._kept(promised.free, node.gpus)) is not None:
                self._stand_on(promised, standing)
            elif promised is None and shape and (standing := self._kept(_empty(shape), node.gpus)) is not None:
                standing.shape = shape
                self._new.append(standing)

    def _matched(self, nodes: Sequence[FilledNode]) -> dict[int, PromisedNode]:
        """By the number of the node what is promised and takes its pods: as many as possible, of its type first."""
        alike: dict[_Offer, list[PromisedNode]] = {}
        for each in self._unused.values():
            alike.setdefault(_offer(each), []).append(each)
        holders: dict[_Offer, list[int]] = {offer: [] for offer in alike}
        choice = [self._takers(node, alike) for node in nodes]

        def match(number: int, seen: set[_Offer], depth: int) -> bool:
            for offer in choice[number]:
                if offer in seen:
                    continue
                seen.add(offer)
                if len(holders[offer]) < len(alike[offer]):
                    holders[offer].append(number)
                    return True
                for at, other in enumerate(holders[offer] if depth else ()):
                    if match(other, seen, depth - 1):
                        holders[offer][at] = number
                        return True
            return False

        for number in range(len(nodes)):
            match(number, set(), _EXCHANGES)
        return {
            number: each
            for offer, numbers in holders.items()
            for number, each in zip(numbers, alike[offer], strict=False)
        }

    def _takers(self, node: FilledNode, alike: Mapping[_Offer, Sequence[PromisedNode]]) -> list[_Offer]:
        """What is promised that takes the pods of a node, its own type first."""
        held = tuple(tuple(name for name in names if name in self._homeless) for names in node.gpus)
        if not any(held):
            return []
        frees = {offer: several[0].free for offer, several in alike.items()}
        uses = {free.kind: NodeUse.of(free, held, self._needs) for free in frees.values()}
        found = [offer for offer, free in frees.items() if (use := uses[free.kind]) is not None and use.fits(free)]
        shape = self._shapes.get(node.shape or "")
        wanted = shape.instance_type if shape is not None else ""
        found.sort(key=lambda offer: (wanted not in offer.instance_types[:1], wanted not in offer.instance_types))
        return found

    def _stand_on(self, promised: PromisedNode, standing: _Standing) -> None:
        del self._unused[promised.free.name]
        standing.shape, standing.promise = promised.largest, promised.free.name
        self._new.append(standing)

    def _within_limits(self) -> bool:
        """Whether the nodes that are still to be asked for may be, which is taken."""
        for each in self._new:
            if each.promise is None and each.shape is not None:
                if self._limits.excess(each.shape) is not None:
                    return False
                self._limits.give(each.shape, -1)
        return True

    def _place_homeless(self) -> bool:
        if not self._homeless:
            return True
        rests = (self._left(node) for node in self._given.free.useful(self._homeless.values()))
        existing = Filling(rest for rest in rests if any(rest.gpus))
        own = Filling()
        own.add([_left(each, f"{number:06}", self._needs) for number, each in enumerate(self._new)])
        unused = Filling(each.free for each in self._unused.values())
        for need in sorted(self._homeless.values(), key=large_first):
            if not any(place(each, need) for each in (existing, own, unused)) and not self._open(own, need):
                if need.name not in self._packed.unplaced or self._could_be(need):
                    return False
                self._unplaced[need.name] = self._packed.unplaced[need.name]
        for node in existing.filled():
            name = node.node or ""
            standing = self._existing.get(name)
            free = self._given.free.get(name)
            if standing is None and free is not None:
                self._existing[name] = _Standing(free, node.gpus)
            elif standing is not None:
                standing.held = standing.with_more(node.gpus)
        for number, each in enumerate(self._new):
            each.held = each.with_more(own.held(number))
        for node in unused.filled():
            promised = self._unused[node.node or ""]
            self._stand_on(promised, _Standing(promised.free, node.gpus))
        return True

    def _left(self, node: FreeNode) -> FreeNode:
        standing = self._existing.get(node.name)
        return node if standing is None else _left(standing, node.name, self._needs)

    def _open(self, own: Filling, need: PodNeed) -> bool:
        """A new node for the pod, of the smallest and then cheapest shape of the first NodePools that could take it."""
        fitting = [
            each for each in self._shapes.values() if each.kind in need.milli and takes(as_node_shape(each), need)
        ]
        first = [each for each in fitting if each.weight == max(other.weight for other in fitting)]
        if not first or any(self._limits.excess(each) is not None for each in first):
            return False
        shape = min(first, key=lambda each: (each.gpus, need.milli[each.kind], each.price or 0.0, each.name))
        self._limits.give(shape, -1)
        empty = _empty(shape)
        own.add([empty])
        self._new.append(_Standing(empty, ((),) * shape.gpus, shape))
        return place(own, need)

    def _could_be(self, need: PodNeed) -> bool:
        """Whether the pod might find a place if all others made room for it."""
        if any(each.kind in need.milli and takes(as_node_shape(each), need) for each in self._shapes.values()):
            return True
        return place(Filling([*self._given.free.useful([need]), *(each.free for each in self._given.promised)]), need)

    def _result(self) -> PackedClass:
        on_nodes = tuple(
            FilledNode(each.held, each.free.kind, node=name) for name, each in sorted(self._existing.items())
        )
        promised = {each.promise: _as_new(each) for each in self._new if each.promise is not None}
        new = tuple(_as_new(each) for each in self._new if each.promise is None)
        nodes = (*on_nodes, *(node for node in promised.values() if node.shape is not None), *new)
        before = self._packed.packing
        packing = NodePacking(
            nodes, tuple(sorted(self._unplaced.items())), before.least, before.lower_bound, before.prices
        )
        return PackedClass(packing, on_nodes, promised, new, self._unplaced)


def _offer(each: PromisedNode) -> _Offer:
    free = each.free
    return _Offer(each.instance_types, free.kind, free.gpus, free.cpu_milli, free.memory_mib, free.pods)


def _as_new(each: _Standing) -> FilledNode:
    count = max(len(each.held), each.shape.gpus if each.shape is not None else 0)
    held = (*each.held, *((),) * (count - len(each.held)))
    return FilledNode(held, each.free.kind, shape=each.shape.name if each.shape is not None else None)


def _left(each: _Standing, name: str, needs: Mapping[str, PodNeed]) -> FreeNode:
    """What the node has free beside the pods that keep their place."""
    use = NodeUse.of(each.free, each.held, needs)
    assert use is not None, "pods stand only where they may"
    return replace(use.taken_from(each.free), name=name)


def _empty(shape: PoolShape) -> FreeNode:
    return FreeNode("", shape.kind, (GPU_MILLI,) * shape.gpus, shape.cpu_milli, shape.memory_mib, shape.pods)
