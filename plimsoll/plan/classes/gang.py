"""Gangs: pods that start together or not at all, by KAI's PodGroups, else by labels of their workloads."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from plimsoll.model.cluster import Pod
from plimsoll.model.kai import POD_GROUP_NAME, PodGroup

LWS_NAME: Final = "leaderworkerset.sigs.k8s.io/name"
LWS_GROUP: Final = "leaderworkerset.sigs.k8s.io/group-index"
LWS_SIZE: Final = "leaderworkerset.sigs.k8s.io/size"
"""Annotation: number of pods in a group, including the leader."""
JOBSET_NAME: Final = "jobset.sigs.k8s.io/jobset-name"
JOBSET_ATTEMPT: Final = "jobset.sigs.k8s.io/restart-attempt"
GROUP_LABELS: Final = ("scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io")
"""Labels of the coscheduling plugin: the current one and its predecessor."""

GangKey = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Gang:
    """The pods of one gang."""

    name: str
    """Name for messages."""
    least: int | None
    """Number of pods that start together; None: all of them."""
    pods: tuple[str, ...]
    """UIDs of the pods that wait for GPU shares, sorted."""
    others: int
    """Number of other known pods: running ones, and those that request whole GPUs."""
    unreadable: int = 0
    """Number of pods whose request cannot be read; they get no place."""

    def lacking(self, placed: Callable[[str], bool]) -> int:
        """How many more of its pods need a place before any can start.

        Members that request no GPU are not observed, so the number is at most that of the known pods.
        """
        known = len(self.pods) + self.others + self.unreadable
        needed = known if self.least is None else min(self.least, known)
        return max(0, needed - self.others - sum(map(placed, self.pods)))


def gang_key(pod: Pod, groups: Mapping[tuple[str, str], PodGroup]) -> GangKey | None:
    """The key that the pods of one gang share; None for a pod that starts alone."""
    group = pod.annotations.get(POD_GROUP_NAME)
    if group:
        known = groups.get((pod.namespace, group))
        return None if known is not None and known.min_member <= 1 else ("PodGroup", pod.namespace, group)
    labels = pod.labels
    if LWS_NAME in labels:
        return ("LeaderWorkerSet", pod.namespace, labels[LWS_NAME], labels.get(LWS_GROUP, ""))
    if JOBSET_NAME in labels:
        return ("JobSet", pod.namespace, labels[JOBSET_NAME], labels.get(JOBSET_ATTEMPT, ""))
    named = next((labels[key] for key in GROUP_LABELS if key in labels), None)
    return ("PodGroup", pod.namespace, named) if named else None


def gangs(
    waiting: Mapping[str, Pod],
    others: Iterable[Pod],
    groups: Mapping[tuple[str, str], PodGroup],
    unreadable: Iterable[Pod] = (),
) -> tuple[Gang, ...]:
    """The gangs of the waiting pods (by UID), sorted by name.

    `others` are further pods that have a place or will get one; `unreadable` are pods that get none.
    """
    members: dict[GangKey, list[str]] = defaultdict(list)
    sizes: dict[GangKey, int | None] = {}
    for uid, pod in waiting.items():
        key = gang_key(pod, groups)
        if key is not None:
            members[key].append(uid)
            sizes[key] = _least(pod, key, groups)
    if not members:
        return ()
    placed, lost = _counted(others, members, groups), _counted(unreadable, members, groups)
    return tuple(
        Gang(_named(key), sizes[key], tuple(sorted(uids)), placed[key], lost[key])
        for key, uids in sorted(members.items())
    )


def _counted(
    pods: Iterable[Pod], keys: Collection[GangKey], groups: Mapping[tuple[str, str], PodGroup]
) -> Counter[GangKey]:
    """How many of the pods are in each of these gangs."""
    found: Counter[GangKey] = Counter()
    namespaces = {key[1] for key in keys}
    for pod in pods:
        if pod.namespace in namespaces and (key := gang_key(pod, groups)) in keys and key is not None:
            found[key] += 1
    return found


def _least(pod: Pod, key: GangKey, groups: Mapping[tuple[str, str], PodGroup]) -> int | None:
    if key[0] == "PodGroup" and (group := groups.get((key[1], key[2]))) is not None:
        return group.min_member
    size = pod.annotations.get(LWS_SIZE, "") if key[0] == "LeaderWorkerSet" else ""
    return int(size) if size.isascii() and size.isdigit() and len(size) < 6 else None


def _named(key: GangKey) -> str:
    kind, namespace, name, *rest = key
    return f"{kind} {namespace}/{name}" + (f" ({', '.join(rest)})" if any(rest) else "")
