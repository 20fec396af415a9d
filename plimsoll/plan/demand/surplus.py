"""Which pods are refused because the nodes that can be requested for them have many more GPUs than they need."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from plimsoll.model.api import DemandSettings
from plimsoll.packing.nodes import FilledNode, PodNeed
from plimsoll.plan.classes import class_needs
from plimsoll.plan.demand.class_plan import ClassPlan
from plimsoll.plan.demand.joint import JointPacking, Part
from plimsoll.plan.demand.priorities import Order, need_key
from plimsoll.plan.demand.reasons import SURPLUS
from plimsoll.plan.demand.usable import Usable, could_take, kinds_of, rank

_MOST_TRIED: Final = 200
"""Maximum number of pods of which it is tried how many fit the types that are left: a try takes two packings."""


@dataclass(frozen=True)
class Surplus:
    """GPUs of new nodes beyond those of the nodes that the pods would get if no instance type was skipped."""

    settings: DemandSettings
    usable: Usable
    class_of: Mapping[str, ClassPlan]
    packing: JointPacking
    order: Order
    known: dict[tuple[object, ...], PodNeed] = field(default_factory=dict)
    """Results of `_wanted`, by what they depend on."""

    def refused(self, parts: Iterable[Part]) -> dict[str, str]:
        """Why pods are refused, by UID: their new nodes have more surplus than `surplusGpus`."""
        return {uid: why for part in parts for uid, why in self._of_part(part)}

    def _of_part(self, part: Part) -> list[tuple[str, str]]:
        usable, most = self.usable, self.settings.surplus_gpus
        smallest = min((offer.shape.gpus for offer in usable.blocked.values()), default=math.inf)
        large = [node for node in part.packing.new_nodes if usable.offers[node.shape or ""].shape.gpus > smallest]
        now = {need.name: need for need in part.needs}
        wanted = {uid: self._wanted(now[uid], node.shape or "") for node in large for uid in node.pods}
        possible = [offer.packed for offer in usable.possible.values()]

        def fewest(uids: Sequence[str]) -> float:
            return self.packing.fewest_gpus([wanted[uid] for uid in uids], possible)

        def admitted(uids: Sequence[str]) -> bool:
            return self.packing.fewest_gpus([now[uid] for uid in uids], usable.shapes) - fewest(uids) <= most

        why: dict[str, str] = {}
        by_node: list[str] = []
        for node in large:
            gpus = usable.offers[node.shape or ""].shape.gpus
            smaller = [offer for offer in usable.blocked.values() if offer.shape.gpus < gpus]
            serves = any(could_take(offer, wanted[uid]) for offer in smaller for uid in node.pods)
            if serves and gpus - (enough := fewest(node.pods)) > most:
                why |= dict.fromkeys(node.pods, SURPLUS.format(gpus=gpus, enough=enough))
                by_node += self._beyond(node.pods, admitted)
        if not why:
            return []
        # Without a few of its pods, one node of several may take the pods of another.
        beyond = min(self._beyond(tuple(why), admitted), by_node, key=len)
        return self._last_in_order({uid: why[uid] for uid in beyond}, part.packing.nodes)

    def _wanted(self, need: PodNeed, shape: str) -> PodNeed:
        """The need of a pod on such a new node, for the types that it would prefer most if none was skipped."""
        each, usable = self.class_of[need.name], self.usable
        key = shape, *self._request(need.name)
        if key not in self.known:
            placement, share = each.demand_class.placement, each.members.shares[need.name]
            offers = {**usable.possible, shape: usable.offers[shape]}
            found = class_needs({need.name: share}, kinds_of(offers.values(), each.demand_class), self.settings).needs
            need = replace(need, milli={**found[need.name].milli, **need.milli})
            ranks = {name: rank(offer, placement) for name, offer in offers.items() if could_take(offer, need)}
            # Limits exclude the types that it prefers to its own and that are not skipped.
            first = min(of for name, of in ranks.items() if of >= ranks[shape] or name in usable.blocked)
            kinds = {offers[name].kind.name for name, of in ranks.items() if of == first}
            self.known[key] = replace(need, milli={kind: need.milli[kind] for kind in kinds})
        return replace(self.known[key], name=need.name)

    def _last_in_order(self, why: Mapping[str, str], nodes: Iterable[FilledNode]) -> list[tuple[str, str]]:
        """As many pods with these reasons: of all on the nodes that request the same, the last in order."""
        reasons: defaultdict[tuple[object, ...], list[str]] = defaultdict(list)
        for uid, reason in why.items():
            reasons[self._request(uid)].append(reason)
        last = sorted((uid for node in nodes for uid in node.pods), key=self.order, reverse=True)
        return [(uid, of_request.pop()) for uid in last if (of_request := reasons.get(self._request(uid)))]

    def _request(self, uid: str) -> tuple[object, ...]:
        """Equal for pods of one class that request the same."""
        each = self.class_of[uid]
        return id(each), need_key(each.needs[uid])

    def _beyond(self, pods: Sequence[str], admitted: Callable[[Sequence[str]], bool]) -> Sequence[str]:
        """Which of these pods to refuse, so that the others may do with the types that are left."""
        alone = [uid for uid in pods if not admitted((uid,))]
        if 0 < len(alone) < len(pods) or len(pods) > _MOST_TRIED:
            return alone or pods
        in_order = sorted(pods, key=self.order)
        return next((in_order[kept:] for kept in range(len(pods) - 1, 0, -1) if admitted(in_order[:kept])), pods)
