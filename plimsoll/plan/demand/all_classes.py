"""Packs all classes, which share the free resources and the rest of the limits."""

from collections.abc import Collection, Sequence

from plimsoll.labels import NODEPOOL
from plimsoll.model.cluster import Node
from plimsoll.packing.nodes import FreeNode
from plimsoll.plan.classes import DemandClass, KnownNeeds
from plimsoll.plan.demand.divided_supply import DividedSupply
from plimsoll.plan.demand.last_packings import ClassPackings
from plimsoll.plan.demand.offer import DemandOffer
from plimsoll.plan.demand.packer import PackedClass, PromisedNode
from plimsoll.plan.demand.planned import PlannedClass
from plimsoll.plan.pools import PoolLimits


class SharedPacking:
    """What a class has of existing nodes since the last round stays its own, so a change in one class is none for the
    others. Its places are given up where another class has pods without a place, or fewer GPUs are asked for so.

    `classes` are those with pods to pack, the most urgent first: they choose first.
    """

    def __init__(
        self,
        classes: Sequence[PlannedClass],
        offer: DemandOffer,
        packings: ClassPackings,
        known: KnownNeeds,
        before: DividedSupply,
    ) -> None:
        """`before` is how the last round left the supply."""
        self._classes = classes
        self._offer = offer
        self._packings = packings
        self._known = known
        self._begin_keeps = False
        self._begin = self.divided = before.renewed(offer.supply, [each.of for each in classes])
        """What `packed` of the classes leaves."""
        self._promises = {each.of: self._promised(each) for each in classes}

    @property
    def worth_another(self) -> bool:
        """Whether it is not known of every class who was to go where, and in another order less may be asked for.

        So it may where something was asked for before, or where a class lacks GPUs that one with more choice took.
        """
        if all(self._last(each) for each in self._classes):
            return False
        return any(self._promises.values()) or self._contested

    @property
    def _contested(self) -> bool:
        """Whether a class asks for more, or has pods without a place, that could use a node that was given to another
        with more to choose from."""
        served = {each.of: self._offer.supply.served(each.of.placement) for each in self._classes}
        lacking = [served[each.of] for each in self._classes if each.packed.new or each.packed.unplaced]
        return any(
            node.node in usable
            for usable in lacking
            for each in self._classes
            if len(served[each.of]) > len(usable)
            for node in each.packed.on_nodes
        )

    @property
    def asked(self) -> int:
        """GPUs of nodes that are to be asked for."""
        return sum(len(node.gpus) for each in self._classes for node in each.packed.new)

    def pack(self) -> None:
        """Sets `packed` of every class."""
        self._pack(self._classes)
        grown = {each.of for each in self._classes if self._grown(each)}
        if grown and self._begin_keeps:
            before, cost, divided = [each.packed for each in self._classes], self._cost(), self.divided
            self._pack(self._classes, first=grown)
            if self._cost() >= cost:
                self.divided = divided
                for each, packed in zip(self._classes, before, strict=True):
                    each.packed = packed

    def pack_onto_promised(self) -> None:
        """The same where it is not known who was to go where: what others had of existing nodes may be taken now.

        So each class goes first onto the nodes that came or come for it, and of those that are as urgent, the ones
        with the least choice go first.
        """

        def order(each: PlannedClass) -> tuple[int, int]:
            return -each.members.priority, len(self._offer.supply.served(each.of.placement))

        self._pack(sorted(self._classes, key=order), onto_promised=True)

    def _grown(self, each: PlannedClass) -> bool:
        last = self._last(each)
        return last is not None and each.packed.packing.gpus > last.packing.gpus

    def _cost(self) -> tuple[int, int, int]:
        """Pods without a place, GPUs to be asked for, GPUs in all."""
        lost = sum(len(each.packed.unplaced) for each in self._classes)
        return lost, self.asked, sum(each.packed.packing.gpus for each in self._classes)

    def _pack(
        self, classes: Sequence[PlannedClass], first: Collection[DemandClass] = (), onto_promised: bool = False
    ) -> None:
        """Each class by itself; those that go `first` may take places of the classes behind them."""
        limits, divided = self._offer.limits.copy(), self._begin.copy()
        for each in classes:
            each.needed = self._known.without(each.of, each.needs, each.refused.keys())
            last = self._last(each)
            if last is None:
                divided.keep_nothing(each.of)
            else:
                divided.keep(each.of, last, each.needed)
        self._begin_keeps = any(divided.has(each.of) for each in classes)
        for number, each in enumerate(classes):
            each.packed = self._packed(each, divided, limits, onto_promised)
            if each.packed.unplaced or each.of in first:
                later = [other.of for other in classes[number + 1 :] if divided.has(other.of)]
                divided = self._take_over(each, later, divided, limits) if later else divided
            divided.keep(each.of, each.packed, each.needed)
            shapes = {shape.name: shape for shape in each.shapes}
            for node in each.packed.new:
                limits.give(shapes[node.shape or ""], -1)
        self.divided = divided

    def _take_over(
        self, each: PlannedClass, later: Sequence[DemandClass], divided: DividedSupply, limits: PoolLimits
    ) -> DividedSupply:
        """Packs a class as if the later ones had no places yet; they keep what that leaves them."""
        alone = divided.copy()
        for other in later:
            alone.release(other)
        packed = self._packed(each, alone, limits, onto_promised=False)
        if _worth(packed) >= _worth(each.packed):
            return divided
        each.packed = packed
        alone.keep(each.of, packed, each.needed)
        for other in later:
            alone.again(other, divided)
        return alone

    def _packed(
        self, each: PlannedClass, divided: DividedSupply, limits: PoolLimits, onto_promised: bool
    ) -> PackedClass:
        given = divided.given(each.of, each.needed, each.shapes, self._promises[each.of])
        return self._packings.pack(
            each.of, given, limits, len(self._classes), recalled=each.recalled, onto_promised=onto_promised
        )

    def _last(self, each: PlannedClass) -> PackedClass | None:
        """What the last round came to, or that of an engine before this one."""
        return self._packings.last(each.of) or each.recalled

    def _promised(self, each: PlannedClass) -> tuple[PromisedNode, ...]:
        """On their way, or come and not used up."""
        came = (self._come(free, node) for free, node in self._offer.supply.came_for(each.of.name))
        return (*self._offer.promised.get(each.of.name, ()), *came)

    def _come(self, free: FreeNode, node: Node) -> PromisedNode:
        pool, name = node.labels.get(NODEPOOL, ""), node.instance_type
        shape = next((each for each in self._offer.shapes if each.name == f"{pool}/{name}"), None)
        return PromisedNode(free, pool, (name,), shape, came=True)


def _worth(packed: PackedClass) -> tuple[int, int]:
    """The fewer the better: pods without a place, GPUs of new nodes."""
    return len(packed.unplaced), packed.packing.gpus
