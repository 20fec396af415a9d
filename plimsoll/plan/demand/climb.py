"""Packs pods onto the nodes of their rungs. Those without a place go one rung up, until none moves."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from plimsoll.packing.nodes import PodNeed, Rules, Unit, left_out_in_order
from plimsoll.plan.classes import Gang, Refusal, RefusalReason, in_order
from plimsoll.plan.demand.joint import Part, filled, need_key, within
from plimsoll.plan.demand.rungs import DemandProblem

FEW_PODS: Final = 200
"""If limits bind, best fit alone decides which of more pods have room: an exact test takes several packings."""


@dataclass(frozen=True)
class Standing:
    """How far the pods of a problem have climbed, and which have left. Each step makes a new one."""

    problem: DemandProblem
    gangs: tuple[Gang, ...]
    refused: Mapping[str, Refusal]
    """Pods that have left, by UID."""
    in_grace: frozenset[str]
    """Pods that stay on their first rung until their grace period has passed, and gangs that need some of these."""
    rung: Mapping[str, int] = field(default_factory=dict)
    """Of the pods that have climbed beyond the rung where they start, by UID."""
    kept_out: Mapping[str, Refusal] = field(default_factory=dict)
    """Pods that request whole GPUs and that their queue does not admit, by UID."""
    counted: frozenset[str] = frozenset()
    """UIDs of the pods that count in a queue that does not admit all."""
    chosen: bool = False
    """Whether limits bind, and the pods that have room within them were chosen in order."""

    def may_have_place(self, uid: str) -> bool:
        return uid not in self.refused and self.problem.is_known(uid)

    def asking(self) -> Iterator[PodNeed]:
        """The pods that have not left, with their needs for the kinds of all rungs."""
        for rungs in self.problem.classes:
            yield from (need for uid, need in rungs.needs.items() if uid not in self.refused)

    def needs(self) -> Iterator[PodNeed]:
        """The pods that have not left and could use nodes of their rung, with their needs there."""
        for rungs in self.problem.classes:
            start, last, on_all = rungs.start, rungs.last, rungs.needs
            for uid, need in on_all.items():
                if uid in self.refused:
                    continue
                if uid in self.in_grace:
                    need_there = rungs.needs_on(0).get(uid)
                    if need_there is not None:
                        yield need_there
                elif (rung := self.rung.get(uid, start)) == last:
                    yield need
                else:
                    yield rungs.needs_on(rungs.rung_from(uid, rung))[uid]

    def higher(self, uids: Iterable[str]) -> "Standing | None":
        """With these pods one rung higher; None if each is on its last one."""
        rung = dict(self.rung)
        for uid in uids:
            rungs = self.problem.class_of[uid]
            here = rungs.rung_from(uid, rung.get(uid, rungs.start))
            if here < rungs.last and uid not in self.in_grace:
                rung[uid] = here + 1
        return replace(self, rung=rung) if rung != self.rung else None

    def without(self, refused: Mapping[str, Refusal]) -> "Standing":
        """After these pods have left, too. The first refusal of a pod stays."""
        return replace(self, refused={**refused, **self.refused})

    def lacking(self, without: Collection[str] = ()) -> list[Gang]:
        """The gangs of which some pods have not left, and that cannot start without the others nor these."""
        return [
            gang
            for gang in self.gangs
            if not self.refused.keys() >= set(gang.pods)
            and gang.lacking(lambda uid: uid not in without and self.may_have_place(uid))
        ]

    def without_gangs(self, broken: Iterable[Gang]) -> "Standing":
        """After these gangs have left, which cannot start."""
        standing = self
        for gang in broken:
            problem = f"starts as a whole, and {gang.lacking(standing.may_have_place)} more of its pods need a place"
            causes = [standing.refused[uid] for uid in gang.pods if uid in standing.refused]
            # Not the refusal of a pod that has left because of others of the same gang.
            causes.sort(key=lambda refusal: refusal.is_of(gang.name))
            alone = Refusal(RefusalReason.GANG, f"{gang.name} {problem}", objects=((gang.name, "a gang"),))
            cause = next(iter((*causes, *gang.reasons)), alone)
            standing = standing.without(dict.fromkeys(gang.pods, cause.of_gang(gang.name, problem)))
        return standing


@dataclass(frozen=True)
class Climb:
    """Where pods are placed when none can go higher."""

    standing: Standing
    needs: Sequence[PodNeed]
    """The pods that may have new nodes, with their needs on their rungs."""
    parts: Sequence[Part]
    """Where these are."""
    parts_in_grace: Sequence[Part]
    """Where those in their grace period are that no other pod needs to start."""
    unplaced: frozenset[str]
    """UIDs of the pods without a place, apart from those in their grace period."""
    waiting: frozenset[str]
    """UIDs of the pods in their grace period that have no place."""
    exceeded: bool
    """Whether the new nodes exceed a limit."""


def climb(standing: Standing) -> Climb:
    """The pods on the lowest rungs where they have places, whatever limits allow, unless pods were chosen within
    these."""
    while True:
        last = standing.in_grace.difference(*(_first(gang, standing) for gang in standing.gangs))
        needs = [need for need in standing.needs() if need.name not in last]
        higher = _higher_within_limits(standing, needs)
        if higher is None:
            later = [need for need in standing.needs() if need.name in last] if last else []
            found = _packed(standing, needs, later)
            higher = standing.higher(found.unplaced)
            if higher is None:
                return found
        standing = higher


def _first(gang: Gang, standing: Standing) -> list[str]:
    """The pods from which a gang starts, those in their grace period last; none if it consists of these alone."""
    in_grace = standing.in_grace
    if not in_grace or in_grace.issuperset(gang.pods):
        return []
    able = list(filter(standing.may_have_place, gang.pods))
    return gang.first_to_start(able, lambda uid: (uid in in_grace, standing.problem.order(uid)))


def _higher_within_limits(standing: Standing, needs: Sequence[PodNeed]) -> Standing | None:
    """With the pods one rung up for which limits leave no room on theirs, lowest priority and newest first; if these
    cannot, all. None if all have room, or if it is not known."""
    if not (standing.chosen and standing.problem.usable.limits) or len(needs) > FEW_PODS or _all_fit(standing, needs):
        return None
    return standing.higher(beyond_limits(standing, needs)) or standing.higher(need.name for need in needs)


def beyond_limits(standing: Standing, needs: Sequence[PodNeed]) -> set[str]:
    """UIDs of the pods for which limits leave no room, lowest priority and newest first."""
    usable = standing.problem.usable
    able = [need for need in needs if need.name not in standing.in_grace]
    by_name = {need.name: need for need in able}
    steps = in_order(by_name, standing.gangs, standing.problem.order)
    units = [Unit([by_name[uid] for uid in pods], after) for pods, after in steps]
    rules = standing.problem.rules
    if rules is not None:  # who must be near others has room once these have
        units.sort(key=lambda unit: any(rules.follows(need.name) for need in unit.pods))
    if len(able) <= FEW_PODS:
        return _Choice(units, lambda some: _all_fit(standing, some), rules).out
    return left_out_in_order(units, usable.shapes, usable.free, usable.limits)


def _all_fit(standing: Standing, needs: Sequence[PodNeed]) -> bool:
    return standing.problem.packers.packing.all_fit(_everything(standing, needs))


def _everything(standing: Standing, needs: Sequence[PodNeed]) -> Part:
    usable = standing.problem.usable
    return Part(needs, usable.free, usable.shapes, usable.limits, standing.problem.rules)


def _packed(standing: Standing, needs: Sequence[PodNeed], later: Sequence[PodNeed]) -> Climb:
    usable, packers, rules = standing.problem.usable, standing.problem.packers, standing.problem.rules
    parts = _with_fewer_nodes(standing, packers.packing.pack(needs, usable.free, usable.shapes, rules))
    exceeded = not all(within(limit, parts) for limit in usable.limits)
    if exceeded and (standing.chosen or len(needs) > FEW_PODS or _all_fit(standing, needs)):
        parts = _with_fewer_nodes(standing, [packers.packing.pack_within(_everything(standing, needs))])
        exceeded = False
    parts_in_grace: Sequence[Part] = ()
    if later:  # they get what is left, or new nodes would be requested in place of those that they use
        parts_in_grace = packers.others.pack(later, usable.left_by(filled(parts), needs).free, rules=rules)
    without_place = {uid for part in (*parts, *parts_in_grace) for uid in part.packing.unplaced}
    without_place |= standing.in_grace.difference(need.name for need in (*needs, *later))
    return Climb(
        standing=standing,
        needs=needs,
        parts=parts,
        parts_in_grace=parts_in_grace,
        unplaced=frozenset(without_place - standing.in_grace),
        waiting=frozenset(without_place & standing.in_grace),
        exceeded=exceeded,
    )


def _with_fewer_nodes(standing: Standing, parts: Sequence[Part]) -> Sequence[Part]:
    """The parts, in which pods use nodes that they prefer less if that saves GPUs."""
    if not any(part.packing.gpus for part in parts):
        return parts
    problem = standing.problem
    unplaced = {uid for part in parts for uid in part.packing.unplaced}
    needs = [need for part in parts for need in part.needs if need.name not in unplaced]
    able = [need if need.name in standing.in_grace else problem.need(need.name) for need in needs]
    return problem.packers.packing.without_redundant_nodes(parts, _everything(standing, able))


class _Choice:
    """Chooses units in order. `out` has the UIDs of the pods for which there is no room in addition to those before
    them. A pod that does not fit leaves the room to later pods that need less."""

    def __init__(
        self, units: Sequence[Unit], fits: Callable[[Sequence[PodNeed]], bool], rules: Rules | None = None
    ) -> None:
        """`fits` says whether all of the given pods fit; `rules` are those about other pods."""
        self._fits = fits
        self._rules = rules
        self._kept: list[PodNeed] = []
        self.out: set[str] = set()
        self._too_much: set[tuple[object, ...]] = set()
        """Needs of pods that did not fit. They do not fit later either, because the room only shrinks."""
        self._choose(units)

    def _choose(self, units: Sequence[Unit]) -> None:
        """Adds all units if they fit together, else the first half and then the second half."""
        units = [unit for unit in units if not self._never_fits(unit)]
        wanted = [need for unit in units for need in unit.pods]
        if not wanted:
            return
        if self._fits([*self._kept, *wanted]):
            self._kept += wanted
        elif len(units) == 1:
            self.out.update(need.name for need in wanted)
            self._too_much.update(self._key(need) for need in wanted if len(wanted) == 1)
        else:
            middle = len(units) // 2
            self._choose(units[:middle])
            self._choose(units[middle:])

    def _never_fits(self, unit: Unit) -> bool:
        too_much = len(unit.pods) == 1 and self._key(unit.pods[0]) in self._too_much
        if too_much or unit.after in self.out:
            self.out.update(need.name for need in unit.pods)
            return True
        return False

    def _key(self, need: PodNeed) -> tuple[object, ...]:
        """Equal for pods that fit in the same places."""
        return need_key(need) if self._rules is None else (*need_key(need), *self._rules.alike(need.name))
