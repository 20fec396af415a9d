"""Which pods each class of a snapshot has."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from plimsoll.model.environment import EnvironmentSpec
from plimsoll.model.pod import Pod
from plimsoll.model.pod_group import POD_GROUP_NAME, PodGroup
from plimsoll.model.snapshot import Snapshot
from plimsoll.plan.demand_class import DemandClass
from plimsoll.plan.demand_pods import demand_pods, uid_of
from plimsoll.plan.pod_changes import PodChanges
from plimsoll.plan.queue_load import queue_of
from plimsoll.plan.shares import PodShare, ShareRefusal

PodGroups = Mapping[tuple[str, str], PodGroup]
"""By (namespace, name)."""


@dataclass
class ClassMembers:
    """Pods of a class by UID."""

    shares: dict[str, PodShare] = field(default_factory=dict)
    whole: dict[str, PodShare] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)
    """Why their requests cannot be read, and what to change."""
    nameless: dict[str, str] = field(default_factory=dict)
    """The same without the pods' names."""

    @property
    def priority(self) -> int:
        """Of the most urgent."""
        return max((each.pod.priority for each in (*self.shares.values(), *self.whole.values())), default=0)


class Classes:
    """The classes of one snapshot after the other; only pods that changed are read again."""

    def __init__(self) -> None:
        self._depends: tuple[object, ...] = ()
        self._members: dict[DemandClass, dict[str, PodShare | ShareRefusal]] = {}
        """By UID."""
        self._sorted: dict[DemandClass, ClassMembers] = {}

    def update(self, snapshot: Snapshot, changes: PodChanges | None) -> Mapping[DemandClass, ClassMembers]:
        """The classes, the most urgent first, then by name; members by UID. `changes` None: nothing is known before."""
        environment = snapshot.environment.spec
        depends = (environment.demand, environment.gpu_resource, environment.queue_scheduler, snapshot.pod_groups)
        if changes is None or depends != self._depends:
            changes = PodChanges((), snapshot.pods)
            self._members, self._sorted, self._depends = {}, {}, depends
        groups = pod_groups(snapshot)
        for pod in changes.gone:
            if not pod.node_name:
                self._leave(pod, _class_of(pod, groups, environment))
        waiting = demand_pods(changes.new, environment.demand, environment.gpu_resource)
        found: list[PodShare | ShareRefusal] = [*waiting.shares, *waiting.whole, *waiting.refused]
        for each in found:
            self._enter(each, _class_of(each.pod, groups, environment))
        self._sorted = {of: self._sorted.get(of) or _sorted(members.values()) for of, members in self._members.items()}
        return dict(sorted(self._sorted.items(), key=lambda item: (-item[1].priority, item[0].name)))

    def _enter(self, each: PodShare | ShareRefusal, of: DemandClass) -> None:
        self._members.setdefault(of, {})[uid_of(each.pod)] = each
        self._sorted.pop(of, None)

    def _leave(self, pod: Pod, of: DemandClass) -> None:
        members = self._members.get(of)
        if members is not None and members.pop(uid_of(pod), None) is not None:
            self._sorted.pop(of, None)
            if not members:
                del self._members[of]


def pod_groups(snapshot: Snapshot) -> PodGroups:
    return {group.key: group for group in snapshot.pod_groups}


def _class_of(pod: Pod, groups: PodGroups, environment: EnvironmentSpec) -> DemandClass:
    """Its queue is that of its PodGroup, which KAI does not change any more, else the one that KAI will find."""
    group = groups.get((pod.namespace, pod.annotations.get(POD_GROUP_NAME, ""))) if groups else None
    queue = group.queue if group is not None and group.queue else queue_of(pod, environment.queue_scheduler)
    return DemandClass(pod.placement, queue, pod.scheduler_name)


def _sorted(members: Iterable[PodShare | ShareRefusal]) -> ClassMembers:
    found = ClassMembers()
    for each in sorted(members, key=lambda each: uid_of(each.pod)):
        uid = uid_of(each.pod)
        if isinstance(each, ShareRefusal):
            found.unreadable[uid] = f"{each.message}: {each.hint}"
            said = each.message.partition(": ")[2]
            found.nameless[uid] = f"Pod with UID {uid}: {said}: {each.hint}"
        elif each.share.whole:
            found.whole[uid] = each
        else:
            found.shares[uid] = each
    return found
