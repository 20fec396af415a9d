"""Gangs: pods that start together or not at all, by KAI's PodGroups, else by labels of their workloads."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import chain
from typing import Any, Final, TypeVar

from plimsoll.labels import LWS_SIZE
from plimsoll.model.cluster import Pod
from plimsoll.model.kai import MOST_DEPTH, POD_GROUP_NAME, SUB_GROUP_NAME, PodGroup, SubGroup, TopologyConstraint
from plimsoll.plan.classes.refusal import Refusal

LWS_NAME: Final = "leaderworkerset.sigs.k8s.io/name"
LWS_GROUP: Final = "leaderworkerset.sigs.k8s.io/group-index"
JOBSET_NAME: Final = "jobset.sigs.k8s.io/jobset-name"
JOBSET_ATTEMPT: Final = "jobset.sigs.k8s.io/restart-attempt"
GROUP_LABELS: Final = ("scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io")
"""Labels of the coscheduling plugin: the current one and its predecessor."""

GangKey = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Gang:
    """The pods of one gang, or of one of its subgroups."""

    name: str
    """Name for messages."""
    least: int | None
    """Number of pods that start together; None: all of them. Where there are `parts`, the number of these."""
    pods: tuple[str, ...]
    """UIDs of the pods that wait for GPU shares, sorted."""
    others: int
    """Number of other known pods: running ones, and those that request whole GPUs."""
    lost: tuple[Refusal, ...] = ()
    """Why further pods get no place, one refusal for each."""
    parts: tuple["Gang", ...] = ()
    """Subgroups, of which each starts from its own minimum."""

    def lacking(self, placed: Callable[[str], bool]) -> int:
        """How many more of its pods need a place before any can start.

        Members that request no GPU are not observed, so the number is at most that of the known pods.
        """
        if self.parts:
            return sum(each.lacking(placed) for each in self._first_parts(placed))
        known = len(self.pods) + self.others + len(self.lost)
        needed = known if self.least is None else min(self.least, known)
        return max(0, needed - self.others - sum(map(placed, self.pods)))

    @property
    def reasons(self) -> tuple[Refusal, ...]:
        """`lost` of it and of its parts, without duplicates."""
        return tuple(dict.fromkeys(chain(self.lost, *(each.reasons for each in self.parts))))

    def first_to_start(self, able: Collection[str], order: Callable[[str], Any]) -> list[str]:
        """UIDs of the fewest of the `able` pods that can start together, the first in that order. Fewer than these if
        they do not suffice."""
        if self.parts:
            parts = self._first_parts(_without_place, able)
            return [uid for each in parts for uid in each.first_to_start(able, order)]
        return sorted((uid for uid in self.pods if uid in able), key=order)[: self.lacking(_without_place)]

    def in_steps(
        self, able: Collection[str], order: Callable[[str], Any], after: str = "", started: Collection[str] = ()
    ) -> Iterator["Step"]:
        """The `able` pods that have not started: the minimum, then each subgroup from its own minimum and all others
        one by one, in that order."""
        first: list[str] = []
        if self.lacking(started.__contains__):
            first = [uid for uid in self.first_to_start(able, order) if uid not in started]
        if first:
            yield first, after
            after, started = first[0], {*started, *first}
        others = set(able).intersection(self.pods).difference(started, *(each.pods for each in self.parts))
        alone = (([uid], after) for uid in sorted(others, key=order))
        parts = (each.in_steps(able, order, after, started) for each in self.parts)
        yield from _merged((alone, *parts), order)

    def _first_parts(self, placed: Callable[[str], bool], able: Collection[str] | None = None) -> Sequence["Gang"]:
        """The parts that have to start: those that can with the `able` pods, and lack the fewest."""

        def rank(part: Gang) -> tuple[bool, int, str]:
            return able is not None and part.lacking(able.__contains__) > 0, part.lacking(placed), part.name

        parts = sorted(self.parts, key=rank)
        return parts if self.least is None else parts[: self.least]


Step = tuple[list[str], str]
"""UIDs of pods that start together, and of the pod without which they cannot start; empty if there is none."""


def _without_place(_: str) -> bool:
    return False


def in_order(able: Collection[str], gangs: Iterable[Gang], order: Callable[[str], Any]) -> Iterator[Step]:
    """The pods in `able` in this order: the minimum of each gang at its first pod, the others in their own place."""
    gang_of = {uid: gang for gang in gangs for uid in gang.pods}
    alone = (([uid], "") for uid in sorted(able, key=order) if uid not in gang_of)
    whole = {gang_of[uid].name: gang_of[uid] for uid in able if uid in gang_of}.values()
    yield from _merged((alone, *(gang.in_steps(able, order) for gang in whole)), order)


def _merged(steps: Iterable[Iterable[Step]], order: Callable[[str], Any]) -> Iterator[Step]:
    return merge(*steps, key=lambda step: min(map(order, step[0])))


def gang_key(pod: Pod, groups: Mapping[tuple[str, str], PodGroup]) -> GangKey | None:
    """The key that the pods of one gang share; None for a pod that starts alone."""
    group = pod.annotations.get(POD_GROUP_NAME)
    if group:
        known = groups.get((pod.namespace, group))
        alone = known is not None and known.min_member <= 1 and not known.sub_groups
        return None if alone else ("PodGroup", pod.namespace, group)
    labels = pod.labels
    if LWS_NAME in labels:
        return ("LeaderWorkerSet", pod.namespace, labels[LWS_NAME], labels.get(LWS_GROUP, ""))
    if JOBSET_NAME in labels:
        return ("JobSet", pod.namespace, labels[JOBSET_NAME], labels.get(JOBSET_ATTEMPT, ""))
    named = next((labels[key] for key in GROUP_LABELS if key in labels), None)
    return ("PodGroup", pod.namespace, named) if named else None


def gang_levels(pod: Pod, group: PodGroup | None) -> Mapping[tuple[str, ...], TopologyConstraint]:
    """The levels of topologies of which all pods of the gang are in one domain, by the names of subgroups; none: the
    whole gang. A subgroup holds those that are parts of it. As in KAI, a level without a Topology says nothing."""
    if group is None:
        return {}
    levels: dict[tuple[str, ...], TopologyConstraint] = {(): group.topology} if _is_required(group.topology) else {}
    for name in group.wholes_of(pod.labels.get(SUB_GROUP_NAME, "")):
        if _is_required(level := group.parts[name].topology):
            levels[group.held[name]] = level
    return levels


def _is_required(level: TopologyConstraint) -> bool:
    return bool(level.required and level.topology)


def gangs(
    waiting: Mapping[str, Pod],
    others: Iterable[Pod],
    groups: Mapping[tuple[str, str], PodGroup],
    lost: Iterable[tuple[Pod, Refusal]] = (),
) -> tuple[Gang, ...]:
    """The gangs of the waiting pods (by UID), sorted by name.

    `others` are further pods that have a place or will get one; `lost` are pods that get none, with the reasons. A
    subgroup comes before the gang that it is a part of.
    """
    members: dict[GangKey, dict[str, Pod]] = defaultdict(dict)
    for uid, pod in waiting.items():
        key = gang_key(pod, groups)
        if key is not None:
            members[key][uid] = pod
    if not members:
        return ()
    placed = _by_gang(((pod, pod.uid) for pod in others), members, groups)
    missing = _by_gang(lost, members, groups)
    found = (_gangs(key, pods, placed, missing, groups) for key, pods in sorted(members.items()))
    return tuple(chain.from_iterable(found))


T = TypeVar("T")
_ByGang = Mapping[GangKey, Mapping[str, list[T]]]
"""By gang and subgroup."""


def _by_gang(
    pods: Iterable[tuple[Pod, T]], keys: Collection[GangKey], groups: Mapping[tuple[str, str], PodGroup]
) -> _ByGang[T]:
    """What is given with the pods."""
    found = defaultdict[GangKey, dict[str, list[T]]](dict)
    namespaces = {key[1] for key in keys}
    for pod, value in pods:
        if pod.namespace in namespaces and (key := gang_key(pod, groups)) in keys and key is not None:
            found[key].setdefault(pod.labels.get(SUB_GROUP_NAME, ""), []).append(value)
    return found


def _gangs(
    key: GangKey,
    pods: Mapping[str, Pod],
    placed: _ByGang[str],
    lost: _ByGang[Refusal],
    groups: Mapping[tuple[str, str], PodGroup],
) -> list[Gang]:
    """The gang, after its subgroups where it has some."""
    group = groups.get((key[1], key[2])) if key[0] == "PodGroup" else None
    others, missing = placed.get(key, {}), lost.get(key, {})
    if group is None or not group.sub_groups:
        least = _least(next(iter(pods.values())), key, groups)
        number, why = sum(map(len, others.values())), _sorted(chain.from_iterable(missing.values()))
        return [Gang(_named(key), least, tuple(sorted(pods)), number, why)]
    tree = _Tree(key, group, pods, others, missing)
    whole = Gang(_named(key), group.min_sub_group, tuple(sorted(pods)), 0, parts=tree.below(""))
    return [*tree.found, whole]


class _Tree:
    """The subgroups of a PodGroup; `placed` and `lost` are its other pods, by subgroup."""

    def __init__(
        self,
        key: GangKey,
        group: PodGroup,
        pods: Mapping[str, Pod],
        placed: Mapping[str, list[str]],
        lost: Mapping[str, list[Refusal]],
    ) -> None:
        self._key, self._placed, self._lost = key, placed, lost
        self._below = defaultdict[str, list[SubGroup]](list)
        for each in group.sub_groups:
            self._below[each.parent].append(each)
        self._pods = defaultdict[str, list[str]](list)
        for uid, pod in pods.items():
            self._pods[pod.labels.get(SUB_GROUP_NAME, "")].append(uid)
        self._seen: set[str] = set()
        self.found: list[Gang] = []

    def below(self, parent: str, depth: int = 0) -> tuple[Gang, ...]:
        """The subgroups with this parent, without those that are their own ancestors or nested too deeply."""
        self._seen.add(parent)
        own = self._below[parent] if depth < MOST_DEPTH else ()
        return tuple(self._gang(each, depth + 1) for each in own if each.name not in self._seen)

    def _gang(self, group: SubGroup, depth: int) -> Gang:
        name = f"{_named(self._key)}, subgroup {group.name}"
        parts = self.below(group.name, depth)
        if parts:
            pods = tuple(sorted(uid for part in parts for uid in part.pods))
            found = Gang(name, group.min_sub_group, pods, 0, parts=parts)
        else:
            own = self._pods[group.name]
            missing, others = _sorted(self._lost.get(group.name, ())), len(self._placed.get(group.name, ()))
            found = Gang(name, group.min_member or 0, tuple(sorted(own)), others, missing)
        self.found.append(found)
        return found


def _sorted(refusals: Iterable[Refusal]) -> tuple[Refusal, ...]:
    return tuple(sorted(refusals, key=str))


def _least(pod: Pod, key: GangKey, groups: Mapping[tuple[str, str], PodGroup]) -> int | None:
    if key[0] == "PodGroup" and (group := groups.get((key[1], key[2]))) is not None:
        return group.min_member
    size = pod.annotations.get(LWS_SIZE, "") if key[0] == "LeaderWorkerSet" else ""
    return int(size) if size.isascii() and size.isdigit() and len(size) < 6 else None


def _named(key: GangKey) -> str:
    kind, namespace, name, *rest = key
    return f"{kind} {namespace}/{name}" + (f" ({', '.join(rest)})" if any(rest) else "")
