"""The pods of each class of a snapshot."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

from plimsoll.cluster.pods import PodChanges, PodShare, ShareRefusal, value_changes
from plimsoll.cluster.queues import queue_of
from plimsoll.model import Snapshot
from plimsoll.model.api import EnvironmentSpec
from plimsoll.model.cluster import Pod
from plimsoll.model.kai import POD_GROUP_NAME, PodGroup
from plimsoll.plan.classes.demand_class import DemandClass
from plimsoll.plan.classes.gang import gang_key
from plimsoll.plan.classes.pods import demand_pods, uid_of

PodGroups = Mapping[tuple[str, str], PodGroup]
"""By (namespace, name)."""


@dataclass
class ClassMembers:
    """Pods of a class by UID."""

    shares: dict[str, PodShare] = field(default_factory=dict)
    whole: dict[str, PodShare] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)
    """Why a request cannot be read, and what to change, by UID."""
    redacted: dict[str, str] = field(default_factory=dict)
    """The reasons of `unreadable` without names of pods, by UID."""
    unreadable_pods: list[Pod] = field(default_factory=list)

    @cached_property
    def may_be_in_gangs(self) -> bool:
        """Whether any of the pods may belong to a gang."""
        return any(gang_key(each.pod, {}) is not None for each in self.shares.values())

    @cached_property
    def priority(self) -> int:
        """The highest priority of the pods."""
        return max((each.pod.priority for each in (*self.shares.values(), *self.whole.values())), default=0)


class Classes:
    """Keeps the classes from one snapshot to the next; only changed pods are read again."""

    def __init__(self) -> None:
        self._depends: tuple[object, ...] = ()
        self._groups: dict[tuple[str, str], PodGroup] = {}
        self._given_groups: tuple[PodGroup, ...] = ()
        self._class_of: dict[str, DemandClass] = {}
        """By UID."""
        self._members: dict[DemandClass, dict[str, PodShare | ShareRefusal]] = {}
        """By UID."""
        self._sorted: dict[DemandClass, ClassMembers] = {}

    def update(self, snapshot: Snapshot, changes: PodChanges | None) -> Mapping[DemandClass, ClassMembers]:
        """The classes, highest priority first, then by name. `changes` None: reads all pods."""
        environment = snapshot.environment.spec
        overlaid = frozenset[str]().union(*(overlay.resources for overlay in snapshot.node_overlays))
        depends = (environment.demand, environment.gpu_resource, environment.queue_scheduler, overlaid)
        if changes is None or depends != self._depends:
            changes = PodChanges((), snapshot.pods)
            self._members, self._sorted, self._class_of, self._depends = {}, {}, {}, depends
        for pod in changes.gone:
            self._leave(uid_of(pod))
        self._regroup(snapshot.pod_groups, environment)
        waiting = demand_pods(changes.new, environment.demand, environment.gpu_resource, overlaid)
        found: list[PodShare | ShareRefusal] = [*waiting.shares, *waiting.whole, *waiting.refused]
        for each in found:
            self._enter(each, environment)
        self._sorted = {of: self._sorted.get(of) or _sorted(members.values()) for of, members in self._members.items()}
        return dict(sorted(self._sorted.items(), key=lambda item: (-item[1].priority, item[0].name)))

    def class_of(self, uid: str) -> DemandClass:
        """The class of a pod of the last snapshot."""
        return self._class_of[uid]

    def group_of(self, pod: Pod) -> PodGroup | None:
        """The PodGroup of a pod of the last snapshot."""
        return self._groups.get(_group_of(pod))

    @property
    def groups(self) -> PodGroups:
        """The PodGroups of the last snapshot."""
        return MappingProxyType(self._groups)

    def _regroup(self, groups: tuple[PodGroup, ...], environment: EnvironmentSpec) -> None:
        """Stores the PodGroups and updates the pods of those that changed."""
        if groups is self._given_groups:
            return
        gone, new = value_changes(self._given_groups, groups)
        self._given_groups = groups
        for group in gone:
            self._groups.pop(group.key, None)
        self._groups |= {group.key: group for group in new}
        changed = {group.key for group in (*gone, *new)}
        members = [each for several in self._members.values() for each in several.values()]
        for each in members:
            if _group_of(each.pod) in changed:
                self._enter(each, environment)

    def _enter(self, each: PodShare | ShareRefusal, environment: EnvironmentSpec) -> None:
        uid, of = uid_of(each.pod), _class_of(each.pod, self._groups, environment)
        self._leave(uid)
        self._members.setdefault(of, {})[uid] = each
        self._class_of[uid] = of
        self._sorted.pop(of, None)

    def _leave(self, uid: str) -> None:
        of = self._class_of.pop(uid, None)
        if of is None:
            return
        members = self._members[of]
        del members[uid]
        self._sorted.pop(of, None)
        if not members:
            del self._members[of]


def _group_of(pod: Pod) -> tuple[str, str]:
    """Key of the PodGroup that the pod's annotation names."""
    return (pod.namespace, pod.annotations.get(POD_GROUP_NAME, ""))


def _class_of(pod: Pod, groups: PodGroups, environment: EnvironmentSpec) -> DemandClass:
    """The pod's class. Its queue is that of its PodGroup, which KAI never changes, else the one that KAI will use."""
    queue = queue_of(pod, environment.queue_scheduler, groups.get(_group_of(pod)) if groups else None)
    return DemandClass(pod.placement, queue, pod.scheduler_name)


def _sorted(members: Iterable[PodShare | ShareRefusal]) -> ClassMembers:
    found = ClassMembers()
    for each in sorted(members, key=lambda each: uid_of(each.pod)):
        uid = uid_of(each.pod)
        if isinstance(each, ShareRefusal):
            found.unreadable[uid] = f"{each.message}: {each.hint}"
            found.unreadable_pods.append(each.pod)
            problem = each.message.partition(": ")[2]
            found.redacted[uid] = f"Pod with UID {uid}: {problem}: {each.hint}"
        elif each.share.whole:
            found.whole[uid] = each
        else:
            found.shares[uid] = each
    return found
