"""Packing all classes, which share what is free, and the room under limits."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from plimsoll.model.labels import NODEPOOL
from plimsoll.model.node import Node
from plimsoll.plan.class_packing import Given, PackedClass, PromisedNode
from plimsoll.plan.class_packings import ClassPackings
from plimsoll.plan.demand_class import DemandClass
from plimsoll.plan.demand_offer import DemandOffer
from plimsoll.plan.demand_supply import DemandSupply
from plimsoll.plan.node_need import FilledNode, FreeNode, PodNeed
from plimsoll.plan.planned_class import PlannedClass
from plimsoll.plan.pool_limits import PoolLimits


class SharedPacking:
    """What a class has of existing nodes since the last round stays its own, so a change in one class is none for the
    others. Its places are given up where another class has pods without a place, or fewer GPUs are asked for so.

    `classes` are those with pods to pack, the most urgent first: they choose first.
    """

    def __init__(self, classes: Sequence[PlannedClass], offer: DemandOffer, packings: ClassPackings) -> None:
        self._classes = classes
        self._offer = offer
        self._packings = packings

    @property
    def forgotten(self) -> bool:
        """Whether something was asked for before, and it is not known of every class who was to go where."""
        asked = any(self._promised(each) for each in self._classes)
        return asked and not all(self._packings.last(each.of) for each in self._classes)

    @property
    def asked(self) -> int:
        """GPUs of nodes that are to be asked for."""
        return sum(len(node.gpus) for each in self._classes for node in each.packed.new)

    def pack(self) -> None:
        """Sets `packed` of every class."""
        self._pack(self._classes)
        grown = {each.of for each in self._classes if self._grown(each)}
        if grown and any(each.kept for each in self._classes):
            before, cost = [each.packed for each in self._classes], self._cost()
            self._pack(self._classes, first=grown)
            if self._cost() >= cost:
                for each, packed in zip(self._classes, before, strict=True):
                    each.packed = packed

    def pack_onto_promised(self) -> None:
        """The same where it is not known who was to go where: what others had of existing nodes may be taken now.

        So each class goes first onto the nodes that came or come for it, and those with the least choice go first.
        """
        choice = {each.of: len(self._offer.supply.serving(each.of.placement)) for each in self._classes}
        self._pack(sorted(self._classes, key=lambda each: choice[each.of]), onto_promised=True)

    def _grown(self, each: PlannedClass) -> bool:
        last = self._packings.last(each.of)
        return last is not None and each.packed.packing.gpus > last.packing.gpus

    def _cost(self) -> tuple[int, int, int]:
        """Pods without a place, GPUs to be asked for, GPUs in all."""
        lost = sum(len(each.packed.unplaced) for each in self._classes)
        return lost, self.asked, sum(each.packed.packing.gpus for each in self._classes)

    def _pack(
        self, classes: Sequence[PlannedClass], first: Collection[DemandClass] = (), onto_promised: bool = False
    ) -> None:
        """Each class by itself; those that go `first` may take places of the classes behind them."""
        limits, left = self._offer.limits.copy(), self._offer.supply.copy()
        for each in classes:
            each.needed = {uid: need for uid, need in each.needs.items() if uid not in each.refused}
            last = self._packings.last(each.of)
            each.kept = left.reserve(left.uses(_still(last, each.needed), each.needed)) if last is not None else ()
        for number, each in enumerate(classes):
            left.give_back(each.kept)
            each.packed = self._packed(each, left, limits, onto_promised)
            later = [other for other in classes[number + 1 :] if other.kept]
            if later and (each.packed.unplaced or each.of in first):
                self._take_over(each, later, left, limits)
            else:
                left.take(left.uses(each.packed.on_nodes, each.needed))
            shapes = {shape.name: shape for shape in each.shapes}
            for node in each.packed.new:
                limits.give(shapes[node.shape or ""], -1)

    def _take_over(
        self, each: PlannedClass, later: Sequence[PlannedClass], left: DemandSupply, limits: PoolLimits
    ) -> None:
        """Packs a class as if the later ones had no places yet; they keep what that leaves them."""
        for other in later:
            left.give_back(other.kept)
        alone = self._packed(each, left, limits, onto_promised=False)
        if _worth(alone) < _worth(each.packed):
            each.packed = alone
        left.take(left.uses(each.packed.on_nodes, each.needed))
        for other in later:
            other.kept = left.reserve(other.kept)

    def _packed(self, each: PlannedClass, left: DemandSupply, limits: PoolLimits, onto_promised: bool) -> PackedClass:
        given = Given(
            needs=tuple(each.needed.values()),
            shapes=each.shapes,
            free=tuple(left.serving(each.of.placement)),
            promised=self._promised(each),
        )
        return self._packings.pack(each.of, given, limits, len(self._classes), onto_promised=onto_promised)

    def _promised(self, each: PlannedClass) -> tuple[PromisedNode, ...]:
        """On their way, or come and not used up."""
        came = (self._come(free, node) for free, node in self._offer.supply.came_for(each.of.name))
        return (*self._offer.promised.get(each.of.name, ()), *came)

    def _come(self, free: FreeNode, node: Node) -> PromisedNode:
        pool, name = node.labels.get(NODEPOOL, ""), node.instance_type
        shape = next((each for each in self._offer.shapes if each.name == f"{pool}/{name}"), None)
        return PromisedNode(free, pool, (name,), shape, came=True)


def _still(last: PackedClass, needs: Mapping[str, PodNeed]) -> Iterator[FilledNode]:
    """Where pods of the last round that are still there lie on existing nodes."""
    for node in last.on_nodes:
        held = tuple(tuple(name for name in names if name in needs) for names in node.gpus)
        if any(held):
            yield replace(node, gpus=held)


def _worth(packed: PackedClass) -> tuple[int, int]:
    """The fewer the better: pods without a place, GPUs of new nodes."""
    return len(packed.unplaced), packed.packing.gpus
