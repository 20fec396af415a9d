"""Which pods are refused because the nodes that can be requested for them have many more GPUs than they need."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from plimsoll.packing.nodes import FilledNode, PodNeed
from plimsoll.plan.classes import Refusal, class_needs
from plimsoll.plan.demand.joint import Part, need_key
from plimsoll.plan.demand.refusals import surplus
from plimsoll.plan.demand.rungs import DemandProblem
from plimsoll.plan.demand.usable import could_take, kinds_of, rank

_MOST_TRIED: Final = 200
"""Maximum number of pods of which it is tried how many fit the types that are left: a try takes two packings."""


def beyond_surplus(problem: DemandProblem, parts: Iterable[Part]) -> dict[str, Refusal]:
    """The pods to refuse, by UID: their new nodes have more than `surplusGpus` GPUs beyond those of the nodes that the
    pods would get if no instance type was skipped."""
    blocked = [offer.shape.gpus for offer in problem.usable.blocked.values()]
    offers = problem.usable.offers
    found: dict[str, Refusal] = {}
    for part in parts:
        nodes = part.packing.new_nodes
        large = [node for node in nodes if offers[node.shape or ""].shape.gpus > min(blocked, default=math.inf)]
        if large:
            found |= _OfPart(problem, part, _wanted(problem, part, large)).refused(large)
    return found


def _wanted(problem: DemandProblem, part: Part, nodes: Iterable[FilledNode]) -> dict[str, PodNeed]:
    """The needs of the pods on these new nodes, for the types that they would prefer most if none was skipped."""
    now = {need.name: need for need in part.needs}
    known: dict[tuple[object, ...], PodNeed] = {}
    wanted: dict[str, PodNeed] = {}
    for node in nodes:
        for uid in node.pods:
            key = node.shape, *_request(problem, uid)
            if key not in known:
                known[key] = _preferred(problem, now[uid], node.shape or "")
            wanted[uid] = replace(known[key], name=uid)
    return wanted


def _preferred(problem: DemandProblem, need: PodNeed, shape: str) -> PodNeed:
    """The need of a pod on a new node of the shape, for the types that it would prefer most if none was skipped."""
    rungs, usable = problem.class_of[need.name], problem.usable
    demand_class, share = rungs.demand_class, rungs.members.shares[need.name]
    offers = {**usable.possible, shape: usable.offers[shape]}
    kinds = kinds_of(offers.values(), demand_class)
    milli = class_needs({need.name: share}, kinds, problem.inputs.settings).needs[need.name].milli
    need = replace(need, milli={**milli, **need.milli})
    ranks = {name: rank(offer, demand_class) for name, offer in offers.items() if could_take(offer, need)}
    # Limits exclude the types that it prefers to its own and that are not skipped.
    first = min(level for name, level in ranks.items() if level >= ranks[shape] or name in usable.blocked)
    preferred = {offers[name].kind.name for name, level in ranks.items() if level == first}
    return replace(need, milli={kind: need.milli[kind] for kind in preferred})


def _request(problem: DemandProblem, uid: str) -> tuple[object, ...]:
    """Equal for pods of one class that request the same."""
    rungs = problem.class_of[uid]
    return rungs.demand_class, need_key(rungs.needs[uid])


@dataclass(frozen=True)
class _OfPart:
    problem: DemandProblem
    part: Part
    wanted: Mapping[str, PodNeed]
    """Of the pods on large nodes."""

    def refused(self, large: Iterable[FilledNode]) -> dict[str, Refusal]:
        usable, most = self.problem.usable, self.problem.inputs.settings.surplus_gpus
        why: dict[str, Refusal] = {}
        by_node: list[str] = []
        for node in large:
            gpus = usable.offers[node.shape or ""].shape.gpus
            smaller = [offer for offer in usable.blocked.values() if offer.shape.gpus < gpus]
            serves = any(could_take(offer, self.wanted[uid]) for offer in smaller for uid in node.pods)
            if serves and gpus - (enough := self._fewest(node.pods)) > most:
                why |= dict.fromkeys(node.pods, surplus(gpus, enough))
                by_node += self._beyond(node.pods)
        if not why:
            return {}
        # Without a few of its pods, one node of several may take the pods of another.
        beyond = min(self._beyond(tuple(why)), by_node, key=len)
        return dict(self._last_in_order({uid: why[uid] for uid in beyond}))

    def _fewest(self, uids: Sequence[str]) -> float:
        """GPUs of the nodes that these pods would get if no type was skipped."""
        possible = [offer.packed for offer in self.problem.usable.possible.values()]
        return self.problem.packers.packing.fewest_gpus([self.wanted[uid] for uid in uids], possible)

    def _admitted(self, uids: Sequence[str]) -> bool:
        """Whether the surplus of the nodes that these pods can get is allowed."""
        usable, settings, names = self.problem.usable, self.problem.inputs.settings, set(uids)
        now = [need for need in self.part.needs if need.name in names]
        fewest = self.problem.packers.packing.fewest_gpus(now, usable.shapes)
        return fewest - self._fewest(uids) <= settings.surplus_gpus

    def _beyond(self, pods: Sequence[str]) -> Sequence[str]:
        """Which of these pods to refuse, so that the others may do with the types that are left."""
        alone = [uid for uid in pods if not self._admitted((uid,))]
        if 0 < len(alone) < len(pods) or len(pods) > _MOST_TRIED:
            return alone or pods
        in_order = sorted(pods, key=self.problem.order)
        fitting = (kept for kept in range(len(pods) - 1, 0, -1) if self._admitted(in_order[:kept]))
        return in_order[next(fitting, 0) :]

    def _last_in_order(self, why: Mapping[str, Refusal]) -> list[tuple[str, Refusal]]:
        """As many pods with these reasons: of all on the nodes that request the same, the last in order."""
        reasons: defaultdict[tuple[object, ...], list[Refusal]] = defaultdict(list)
        for uid, refusal in why.items():
            reasons[_request(self.problem, uid)].append(refusal)
        pods = (uid for node in self.part.packing.nodes for uid in node.pods)
        last = sorted(pods, key=self.problem.order, reverse=True)
        return [(uid, left.pop()) for uid in last if (left := reasons.get(_request(self.problem, uid)))]
