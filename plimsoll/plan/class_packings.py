"""Packings of classes, made again only where what they depend on has changed."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from plimsoll.plan.class_packing import ClassPacker, PackedClass, PromisedNode
from plimsoll.plan.demand_class import DemandClass
from plimsoll.plan.effort import Clock, Effort
from plimsoll.plan.node_need import FreeNode, PodNeed
from plimsoll.plan.pool_limits import PoolLimits
from plimsoll.plan.pool_shape import PoolShape

SECONDS: Final = 2.0
"""For the packing of one class."""
_ALL_SECONDS: Final = 10.0
"""For the packing of all."""


@dataclass(frozen=True, slots=True)
class Given:
    """What the packing of a class depends on, limits aside."""

    needs: tuple[PodNeed, ...]
    shapes: tuple[PoolShape, ...]
    free: tuple[FreeNode, ...]
    promised: tuple[PromisedNode, ...]


class ClassPackings:
    """The last packing of each class with what it was made of. Not safe to share between threads."""

    def __init__(self, seconds: float = SECONDS, clock: Clock | None = None) -> None:
        self._seconds = seconds
        self._clock = clock
        self._known: dict[DemandClass, tuple[Given, float, tuple[object, ...], PackedClass]] = {}

    def pack(self, of: DemandClass, given: Given, limits: PoolLimits, classes: int) -> PackedClass:
        """The packing of one of so many classes; takes from the limits what its new nodes need."""
        seconds = min(self._seconds, _ALL_SECONDS / classes)
        state = limits.state()
        known = self._known.get(of)
        if known is not None and known[:3] == (given, seconds, state):
            by_name = {shape.name: shape for shape in given.shapes}
            for node in known[3].new:
                limits.give(by_name[node.shape or ""], -1)
            return known[3]
        packer = ClassPacker(given.shapes, given.free, given.promised, limits, Effort(seconds, self._clock))
        packed = packer.pack(given.needs)
        self._known[of] = (given, seconds, state, packed)
        return packed

    def keep(self, classes: Collection[DemandClass]) -> None:
        """Forgets all other classes."""
        self._known = {of: known for of, known in self._known.items() if of in classes}
