"""Restricts a climb to what can start, to the limits, and to the surplus that is allowed."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final

from plimsoll.packing.nodes import PodNeed
from plimsoll.plan.classes import Refusal, RefusalReason
from plimsoll.plan.demand.climb import Climb, Standing, beyond_limits, climb
from plimsoll.plan.demand.joint import binds
from plimsoll.plan.demand.surplus import beyond_surplus
from plimsoll.plan.demand.usable import could_take


def restrict(standing: Standing) -> Climb:
    """The climb of the pods that are left when no restriction takes any. Those without a place have left then."""
    while True:
        climbed = climb(standing)
        after = next((after for step in _RESTRICTIONS if (after := step(climbed)) is not None), None)
        if after is None:
            return replace(climbed, standing=_without_unplaced(climbed, climbed.unplaced))
        standing = after


def _with_gangs_in_grace(climbed: Climb) -> Standing | None:
    """Gives a grace period to all pods of each gang that can start only with pods that are still in theirs."""
    standing = climbed.standing
    if not standing.in_grace:
        return None
    without_grace = {gang.name for gang in standing.lacking(climbed.unplaced)}
    gangs = [gang for gang in standing.lacking(climbed.unplaced | climbed.waiting) if gang.name not in without_grace]
    pods = {uid for gang in gangs for uid in gang.pods} - standing.in_grace
    return replace(standing, in_grace=standing.in_grace | pods) if pods else None


def _without_hopeless(climbed: Climb) -> Standing | None:
    """Without the pods that would have no place even if no other pod waited, and the gangs that need them."""
    hopeless = _hopeless(climbed.standing, climbed.unplaced)
    if not hopeless:
        return None
    standing = _without_unplaced(climbed, hopeless)
    return standing.without_gangs(standing.lacking())


def _hopeless(standing: Standing, uids: Iterable[str]) -> set[str]:
    needs = [standing.problem.need(uid) for uid in uids]
    return {need.name for need in needs} - standing.problem.usable.with_room(needs)


def _within_surplus(climbed: Climb) -> Standing | None:
    """Without the pods whose new nodes have too many GPUs. A type that they prefer less may be small enough."""
    standing = climbed.standing
    beyond = beyond_surplus(standing.problem, climbed.parts) if standing.problem.usable.blocked else {}
    return (standing.higher(beyond) or standing.without(beyond)) if beyond else None


def _within_limits(climbed: Climb) -> Standing | None:
    """Without the pods for which limits leave no room, on whatever nodes pods prefer, once limits bind."""
    standing = climbed.standing
    if standing.chosen or not (climbed.exceeded or _is_contested(climbed)):
        return None
    asking = list(standing.asking())
    hopeless = _hopeless(standing, (need.name for need in asking if need.name not in standing.in_grace))
    standing = standing.without({uid: _why(standing, uid, len(asking), limited=True) for uid in hopeless})
    standing = standing.without_gangs(standing.lacking())
    asking = list(standing.asking())
    return replace(standing.without(_refusals_by_limits(standing, asking)), chosen=True)


def _is_contested(climbed: Climb) -> bool:
    """Whether limits leave pods without a place, or a pod that comes after one has its place."""
    unplaced, problem = climbed.unplaced, climbed.standing.problem
    usable = problem.usable
    if not unplaced:
        return False
    if any(binds(limit, climbed.parts) for limit in usable.limits):
        return True
    needs = [problem.need(uid) for uid in unplaced]
    if any(map(usable.has_new_node, needs)):
        return True
    able = [problem.order(uid)[:2] for uid in usable.with_room(needs)]
    return any(need.name not in unplaced and problem.order(need.name)[:2] > min(able) for need in climbed.needs if able)


def _refusals_by_limits(standing: Standing, asking: list[PodNeed]) -> Mapping[str, Refusal]:
    out = beyond_limits(standing, asking)
    whys = {uid: _why_limited(standing, uid, len(asking)) for uid in sorted(out)}
    broken = [gang for gang in standing.lacking(out) if not out.isdisjoint(gang.pods)]
    gang_of = {uid: gang for gang in broken for uid in gang.pods}
    refused: dict[str, Refusal] = {}
    for uid, limited in whys.items():
        gang = gang_of.get(uid)
        # A pod of a gang may have room, but no other pod that has to start with it.
        others = (whys[other] for other in gang.pods if other in out) if gang is not None else ()
        why = limited or next(filter(None, others), None) or standing.problem.why_no_node(uid)
        problem = "starts as a whole, and its pods find no room together"
        refused[uid] = why if gang is None else why.of_gang(gang.name, problem)
    return refused


def _without_broken_gangs(climbed: Climb) -> Standing | None:
    """Without gangs that can no longer start. Not all at once: others may have the room of one of them."""
    broken = climbed.standing.lacking(climbed.unplaced)
    if not broken:
        return None
    broken = broken[len(broken) // 2 :]
    members = {uid for gang in broken for uid in gang.pods}
    return _without_unplaced(climbed, climbed.unplaced & members).without_gangs(broken)


_RESTRICTIONS: Final[tuple[Callable[[Climb], Standing | None], ...]] = (
    _with_gangs_in_grace, _without_hopeless, _within_surplus, _within_limits, _without_broken_gangs,
)  # fmt: skip
"""In this order. Each says what is left, or None if it takes nothing."""


def _without_unplaced(climbed: Climb, uids: Iterable[str]) -> Standing:
    standing, pods = climbed.standing, len(climbed.needs)
    return standing.without({uid: _why(standing, uid, pods, limited=standing.chosen) for uid in uids})


def _why(standing: Standing, uid: str, pods: int, *, limited: bool) -> Refusal:
    """Why the pod has no place among this number of pods."""
    why = _why_limited(standing, uid, pods) if limited else None
    return why or standing.problem.why_no_node(uid)


def _why_limited(standing: Standing, uid: str, pods: int) -> Refusal | None:
    """Why limits leave no room for the pod among this number of pods; None if it could have a new node."""
    problem = standing.problem
    need, limits = problem.need(uid), problem.usable.pool_limits
    able = [offer.shape for offer in problem.usable.offers.values() if could_take(offer, need)]
    binding = (limits.excess(shape) or limits.tightest(shape, pods) for shape in able)
    found = next(filter(None, binding), None)
    if found is not None:
        return Refusal(RefusalReason.LIMIT, str(found))
    return None if able else problem.why_no_node(uid)
