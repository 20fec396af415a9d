"""A class on its way through the planning."""

from dataclasses import dataclass, field

from plimsoll.packing.nodes import NodePacking, PodNeed
from plimsoll.plan.classes import ClassMembers, DemandClass, Kinds
from plimsoll.plan.demand.packer import PackedClass
from plimsoll.plan.pools import PoolShape
from plimsoll.plan.queues import NO_LOAD, QueueLoad


@dataclass
class PlannedClass:
    of: DemandClass
    members: ClassMembers
    shapes: tuple[PoolShape, ...] = ()
    needs: dict[str, PodNeed] = field(default_factory=dict)
    """By UID."""
    load: QueueLoad = NO_LOAD
    """What all of these would take of the queue."""
    refused: dict[str, str] = field(default_factory=dict)
    """UID to why the pod is left out."""
    nameless: dict[str, str] = field(default_factory=dict)
    """The same without names, of those whose reason has some."""
    by_queue: dict[str, str] = field(default_factory=dict)
    """The part of `refused` that the queue does not admit."""
    kinds: Kinds = field(default_factory=dict)
    needed: dict[str, PodNeed] = field(default_factory=dict)
    """The part of `needs` that is not refused."""
    recalled: PackedClass | None = None
    """Its packing as an engine before this one left it."""
    packed: PackedClass = field(default_factory=lambda: PackedClass(NodePacking()))
    warnings: tuple[str, ...] = ()

    def placed(self, uid: str) -> bool:
        return uid not in self.refused and uid not in self.packed.unplaced
