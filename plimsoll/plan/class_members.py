"""Which pods each class of a snapshot has."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from plimsoll.model.pod import Pod
from plimsoll.model.pod_group import POD_GROUP_NAME, PodGroup
from plimsoll.model.snapshot import Snapshot
from plimsoll.plan.demand_class import DemandClass
from plimsoll.plan.demand_pods import demand_pods, uid_of
from plimsoll.plan.queue_load import queue_of
from plimsoll.plan.shares import PodShare

PodGroups = Mapping[tuple[str, str], PodGroup]
"""By (namespace, name)."""


@dataclass
class ClassMembers:
    """Pods of a class by UID."""

    shares: dict[str, PodShare] = field(default_factory=dict)
    whole: dict[str, PodShare] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)
    """Why their requests cannot be read, and what to change."""

    @property
    def priority(self) -> int:
        """Of the most urgent."""
        return max((each.pod.priority for each in (*self.shares.values(), *self.whole.values())), default=0)


def classify(snapshot: Snapshot) -> dict[DemandClass, ClassMembers]:
    """The classes, the most urgent first, then by name; members by UID."""
    environment = snapshot.environment.spec
    waiting = demand_pods(snapshot.pods, environment.demand, environment.gpu_resource)
    groups = pod_groups(snapshot)
    classes: defaultdict[DemandClass, ClassMembers] = defaultdict(ClassMembers)

    def members(pod: Pod) -> ClassMembers:
        queue = _queue(pod, groups, environment.queue_scheduler)
        return classes[DemandClass(pod.placement, queue, pod.scheduler_name)]

    for each in sorted(waiting.shares, key=_by_uid):
        members(each.pod).shares[uid_of(each.pod)] = each
    for each in sorted(waiting.whole, key=_by_uid):
        members(each.pod).whole[uid_of(each.pod)] = each
    for refusal in waiting.refused:
        members(refusal.pod).unreadable[uid_of(refusal.pod)] = f"{refusal.message}: {refusal.hint}"
    return dict(sorted(classes.items(), key=lambda item: (-item[1].priority, item[0].name)))


def pod_groups(snapshot: Snapshot) -> PodGroups:
    return {group.key: group for group in snapshot.pod_groups}


def _queue(pod: Pod, groups: PodGroups, queue_scheduler: str) -> str:
    """That of its PodGroup, which KAI does not change any more, else the one that KAI will find."""
    group = groups.get((pod.namespace, pod.annotations.get(POD_GROUP_NAME, "")))
    return group.queue if group is not None and group.queue else queue_of(pod, queue_scheduler)


def _by_uid(each: PodShare) -> str:
    return uid_of(each.pod)
