"""Which pods are refused because the nodes that can be requested for them have many more GPUs than they need."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from plimsoll.model.api import DemandSettings
from plimsoll.packing.nodes import FilledNode, PodNeed
from plimsoll.plan.classes import class_needs
from plimsoll.plan.demand.class_plan import ClassPlan
from plimsoll.plan.demand.hosts import ShapeOffer
from plimsoll.plan.demand.joint import JointPacking, Part
from plimsoll.plan.demand.priorities import Order, need_key
from plimsoll.plan.demand.reasons import SURPLUS
from plimsoll.plan.demand.usable import Usable, kinds_of

_MOST_TRIED: Final = 200
"""Maximum number of pods of which it is tried how many fit the types that are left: a try takes two packings."""


@dataclass(frozen=True)
class Surplus:
    """GPUs of new nodes beyond those of the nodes that the pods would need if no instance type was blocked."""

    settings: DemandSettings
    usable: Usable
    class_of: Mapping[str, ClassPlan]
    packing: JointPacking
    order: Order

    def refused(self, parts: Iterable[Part]) -> dict[str, str]:
        """Why pods are refused, by UID: their new nodes have more surplus than `surplusGpus`."""
        return {uid: why for part in parts for uid, why in self._of_part(part)}

    def _of_part(self, part: Part) -> list[tuple[str, str]]:
        everything = {**self.usable.offers, **self.usable.blocked}
        why: dict[str, str] = {}
        by_node: list[str] = []
        for node in part.packing.new_nodes:
            gpus = self.usable.offers[node.shape or ""].shape.gpus
            enough = self._fewest_gpus(node.pods, everything)
            if gpus - enough > self.settings.surplus_gpus:
                why |= dict.fromkeys(node.pods, SURPLUS.format(gpus=gpus, enough=enough))
                by_node += self._beyond(node.pods, everything)
        if not why:
            return []
        # Without a few of its pods, one node of several may take the pods of another.
        beyond = min(self._beyond(tuple(why), everything), by_node, key=len)
        return self._last_in_order({uid: why[uid] for uid in beyond}, part.packing.nodes)

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

    def _beyond(self, pods: Sequence[str], everything: Mapping[str, ShapeOffer]) -> Sequence[str]:
        """Which of the pods on new nodes with too many GPUs to refuse, so that the others may do with the types that
        are left."""

        def admitted(uids: Sequence[str]) -> bool:
            surplus = self._fewest_gpus(uids, self.usable.offers) - self._fewest_gpus(uids, everything)
            return surplus <= self.settings.surplus_gpus  # False if no type takes all of them

        alone = [uid for uid in pods if not admitted((uid,))]
        if 0 < len(alone) < len(pods) or len(pods) > _MOST_TRIED:
            return alone or pods
        in_order = sorted(pods, key=self.order)
        return next((in_order[kept:] for kept in range(len(pods) - 1, 0, -1) if admitted(in_order[:kept])), pods)

    def _fewest_gpus(self, uids: Sequence[str], offers: Mapping[str, ShapeOffer]) -> float:
        """GPUs of the new nodes that these pods need, of those offers. Infinite if some fit none of these."""
        needs: list[PodNeed] = []
        for each in {id(of): of for of in map(self.class_of.__getitem__, uids)}.values():
            kinds = kinds_of(offers.values(), each.demand_class)
            pods = {uid: each.members.shares[uid] for uid in uids if uid in each.members.shares}
            needs += class_needs(pods, kinds, self.settings).needs.values()
        if len(needs) < len(uids):
            return math.inf
        return self.packing.fewest_gpus(needs, [offer.packed for offer in offers.values()])
