"""ClassPlan: the working state of one class of pods during a round of demand planning."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from plimsoll.cluster.pods import GpuKind, PodShare
from plimsoll.cluster.queues import NO_LOAD, QueueLoad
from plimsoll.model.api import DemandSettings
from plimsoll.packing.nodes import PodNeed
from plimsoll.plan.classes import ClassMembers, DemandClass, KnownNeeds


@dataclass
class ClassPlan:
    """Needs, levels and refusals of the pods of one class; they change until all pods have a place or a refusal."""

    demand_class: DemandClass
    members: ClassMembers
    levels: list[Mapping[str, GpuKind]] = field(default_factory=list)
    """Kinds of node by name, one mapping for each level. Level 0 has the existing and requested nodes; each further
    level adds the new nodes that pods prefer next."""
    needs: Mapping[str, PodNeed] = field(default_factory=dict)
    """Needs of the pods by UID, for the kinds of all levels."""
    load: QueueLoad = NO_LOAD
    refused: dict[str, str] = field(default_factory=dict)
    """Why a pod gets no capacity, by UID."""
    redacted: dict[str, str] = field(default_factory=dict)
    """The reasons of `refused` without names of pods, by UID; only for reasons that contain names."""
    by_queue: dict[str, str] = field(default_factory=dict)
    """The part of `refused` that the queue does not admit."""
    unfit: frozenset[str] = frozenset()
    """As in Demand."""
    kept_out: dict[str, str] = field(default_factory=dict)
    """Why the queue does not admit a pod that requests whole GPUs, by UID."""
    level: dict[str, int] = field(default_factory=dict)
    """Level of a pod by UID, if it is not 1, the first level with new nodes."""
    warnings: tuple[str, ...] = ()

    def pod(self, uid: str) -> PodShare:
        return self.members.shares.get(uid) or self.members.whole[uid]

    def level_of(self, uid: str) -> int:
        return self.level.get(uid, min(1, len(self.levels) - 1))

    def raise_level(self, uid: str) -> bool:
        """Lets a pod use the next level of nodes. Returns False if there is none."""
        level = self.level_of(uid)
        if level >= len(self.levels) - 1:
            return False
        self.level[uid] = level + 1
        return True

    def has_place(self, uid: str) -> bool:
        """Whether the pod may still get a place, because it is not refused and its needs are known."""
        return uid in self.needs and uid not in self.refused

    def current_needs(self, known: KnownNeeds, settings: DemandSettings, fixed: Collection[str]) -> Iterator[PodNeed]:
        """The needs of the pods that are not refused, limited to the kinds of their levels. Pods in `fixed` keep their
        level."""
        last = len(self.levels) - 1
        for uid, need in self.needs.items():
            if uid in self.refused:
                continue
            while (level := self.level_of(uid)) < last:
                of_level = known.of(self.demand_class, self.members.shares, self.levels[level], settings, level).needs
                if uid in of_level:
                    yield of_level[uid]
                    break
                if uid in fixed:
                    break
                self.raise_level(uid)
            else:
                yield need
