"""One class while it is planned: the nodes that its pods may use, their needs, and the refused pods with reasons."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from plimsoll.cluster.pods import GpuKind, PodShare
from plimsoll.cluster.queues import NO_LOAD, QueueLoad
from plimsoll.model.api import DemandSettings
from plimsoll.packing.nodes import PodNeed
from plimsoll.plan.classes import ClassMembers, DemandClass, KnownNeeds


@dataclass
class ClassPlan:
    of: DemandClass
    members: ClassMembers
    levels: list[Mapping[str, GpuKind]] = field(default_factory=list)
    """Kinds of node by name, as many more in each level: those that are there, then those of new nodes in the order in
    which pods prefer them."""
    needs: Mapping[str, PodNeed] = field(default_factory=dict)
    """By UID, on the kinds of all levels."""
    load: QueueLoad = NO_LOAD
    refused: dict[str, str] = field(default_factory=dict)
    """UID to why the pod is left out."""
    nameless: dict[str, str] = field(default_factory=dict)
    """The same without names, of those whose reason has some."""
    by_queue: dict[str, str] = field(default_factory=dict)
    """The part of `refused` that the queue does not admit."""
    kept_out: dict[str, str] = field(default_factory=dict)
    """UID to why the queue does not admit a pod with whole GPUs."""
    level: dict[str, int] = field(default_factory=dict)
    """UID to its level, where that is not the first of new nodes."""
    warnings: tuple[str, ...] = ()

    def pod(self, uid: str) -> PodShare:
        return self.members.shares.get(uid) or self.members.whole[uid]

    def level_of(self, uid: str) -> int:
        return self.level.get(uid, min(1, len(self.levels) - 1))

    def raise_level(self, uid: str) -> bool:
        """Lets a pod use nodes that it prefers less; False where there are none."""
        level = self.level_of(uid)
        if level >= len(self.levels) - 1:
            return False
        self.level[uid] = level + 1
        return True

    def has_place(self, uid: str) -> bool:
        """Whether a place may be found for the pod."""
        return uid in self.needs and uid not in self.refused

    def current_needs(self, known: KnownNeeds, settings: DemandSettings, fixed: Collection[str]) -> Iterator[PodNeed]:
        """The needs of the pods that are not left out, on the kinds of their levels; those of `fixed` pods stay."""
        last = len(self.levels) - 1
        for uid, need in self.needs.items():
            if uid in self.refused:
                continue
            while (level := self.level_of(uid)) < last:
                of_level = known.of(self.of, self.members.shares, self.levels[level], settings, level).needs
                if uid in of_level:
                    yield of_level[uid]
                    break
                if uid in fixed:
                    break
                self.raise_level(uid)
            else:
                yield need
