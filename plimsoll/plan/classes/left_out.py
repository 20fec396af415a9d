"""Which waiting pods are planned for: of no namespace more classes than its number, and none of one that may have
nothing."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import nsmallest
from operator import is_
from typing import Final

from plimsoll.model.cluster import Pod
from plimsoll.model.meta import ANYWHERE
from plimsoll.plan.classes.demand_class import DemandClass
from plimsoll.plan.classes.members import ClassMembers, NamespaceClasses
from plimsoll.plan.classes.refusal import Refusal, RefusalReason

LEFT_OUT: Final = DemandClass(ANYWHERE, scheduler="left-out")
"""The class of all pods that are left out."""
_TOLD: Final = 10
_ADVICE: Final = (
    "change access of the Environment or the ResourceQuota (an autoscaler provides nodes for its pods with whole GPUs "
    "nevertheless, unless plimsoll:capacityGate has wholeGpus)"
)


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Waiting pods of one namespace that nothing is planned for, whatever the cluster has."""

    why: Refusal
    pods: Mapping[str, Pod]
    """By UID."""
    of_gangs: Sequence[Pod] = ()
    """Those that may belong to a gang of which others are planned for."""

    @cached_property
    def told(self) -> Mapping[str, Pod]:
        """The pods that get an event, by UID: so few that a flood of pods is none of events."""
        return {uid: self.pods[uid] for uid in nsmallest(_TOLD, self.pods)}


@dataclass(frozen=True)
class _Choice:
    namespace: NamespaceClasses
    most: int
    why: str
    classes: Mapping[DemandClass, ClassMembers]
    left_out: LeftOut | None


class PlannedClasses:
    """Keeps results from one plan to the next: a namespace that did not change costs nothing."""

    def __init__(self) -> None:
        self._chosen: dict[str, _Choice] = {}
        """By namespace."""
        self._merged: dict[DemandClass, tuple[Sequence[ClassMembers], ClassMembers]] = {}
        """The members of each class, with those of each namespace."""

    def of(
        self, namespaces: Iterable[NamespaceClasses], most: Callable[[str], int], shut: Callable[[str], str]
    ) -> tuple[Mapping[DemandClass, ClassMembers], tuple[LeftOut, ...]]:
        """The classes to plan for, highest priority first, then by name; and who is left out, by namespace.

        `most` are the classes that a namespace may have. `shut` says why a namespace may have nothing now; empty if
        it may have something.
        """
        chosen = {}
        for each in sorted(namespaces, key=lambda each: each.name):
            why, limit, known = shut(each.name), most(each.name), self._chosen.get(each.name)
            if known is None or known.namespace is not each or (known.most, known.why) != (limit, why):
                known = _Choice(each, limit, why, *(_shut(each, why) if why else _within(each, limit)))
            chosen[each.name] = known
        self._chosen = chosen
        parts: dict[DemandClass, list[ClassMembers]] = {}
        for choice in chosen.values():
            for demand_class, members in choice.classes.items():
                parts.setdefault(demand_class, []).append(members)
        self._merged = {
            demand_class: (several, self._members(demand_class, several)) for demand_class, several in parts.items()
        }
        merged = ((demand_class, members) for demand_class, (_, members) in self._merged.items())
        planned = dict(sorted(merged, key=lambda item: (-item[1].priority, item[0].name)))
        return planned, tuple(each.left_out for each in chosen.values() if each.left_out is not None)

    def _members(self, demand_class: DemandClass, parts: Sequence[ClassMembers]) -> ClassMembers:
        before = self._merged.get(demand_class)
        if before is not None and len(before[0]) == len(parts) and all(map(is_, before[0], parts)):
            return before[1]
        return ClassMembers.together(parts)


def _shut(namespace: NamespaceClasses, why: str) -> tuple[Mapping[DemandClass, ClassMembers], LeftOut | None]:
    refusal = Refusal(RefusalReason.NOT_ALLOWED, why, _ADVICE, ((repr(namespace.name), "of the pods"),))
    return {}, LeftOut(refusal, namespace.pods)


def _within(namespace: NamespaceClasses, most: int) -> tuple[Mapping[DemandClass, ClassMembers], LeftOut | None]:
    """Left out are the classes with the youngest pods, those of low priority first."""
    classes = namespace.classes
    if len(classes) <= most:
        return classes, None
    kept = dict(nsmallest(most, classes.items(), key=lambda item: item[1].rank))
    why = Refusal(
        RefusalReason.LIMIT,
        f"pods of namespace {namespace.name!r} that differ in node selector, affinity, tolerations, queue or "
        f"scheduler are of more than {most} classes",
        "let them differ less, or raise demand.classesPerNamespace of the Environment or what the namespace may have",
        ((repr(namespace.name), "of the pods"),),
    )
    pods = dict(namespace.pods)
    for members in kept.values():
        for uid in members.pods:
            del pods[uid]
    of_gangs = [
        pod
        for demand_class, members in classes.items()
        if members.of_gangs and demand_class not in kept
        for pod in members.of_gangs
    ]
    return kept, LeftOut(why, pods, of_gangs)
