"""One round of demand planning: from the classes of waiting pods to the capacity that each class lacks."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from itertools import chain
from typing import Final

from plimsoll.cluster.pods import node_of
from plimsoll.cluster.queues import Amount, QueueLoad, QueueRequest, is_preemptible, priority_of
from plimsoll.model.cluster import Pod
from plimsoll.model.meta import Placement, condition_of
from plimsoll.packing import GPU_MILLI
from plimsoll.packing.nodes import PodNeed, left_out_in_order
from plimsoll.plan.classes import Gang, KnownNeeds, gangs, queue_milli, refused_by_queues
from plimsoll.plan.demand.class_plan import ClassPlan
from plimsoll.plan.demand.demand import DemandPlan
from plimsoll.plan.demand.hosts import Hosts
from plimsoll.plan.demand.joint import JointPacking, Part, binds, filled, within
from plimsoll.plan.demand.priorities import left_out, need_key, order_of, units_in_order
from plimsoll.plan.demand.reasons import BLOCKED, NO_NODE, UNREADABLE, why_unserved
from plimsoll.plan.demand.result import Result
from plimsoll.plan.demand.surplus import Surplus
from plimsoll.plan.demand.usable import DemandInputs, Usable, could_take, kinds_of, rank
from plimsoll.plan.owned import parse_time

_FEW_PODS: Final = 200
"""If limits bind, best fit alone decides which of more pods have room: an exact test takes several packings."""


class DemandRound:
    """Plans the demand of one snapshot; used once."""

    def __init__(
        self, inputs: DemandInputs, hosts: Hosts, packing: JointPacking, whole: JointPacking, known: KnownNeeds
    ) -> None:
        self._inputs = inputs
        self._settings = inputs.snapshot.environment.spec.demand
        self._packing = packing
        self._whole = whole
        self._known = known
        self._classes = [ClassPlan(of, members) for of, members in inputs.classes.items()]
        self._class_of = {uid: each for each in self._classes for uid in each.members.shares}
        self._usable = Usable(inputs, hosts, self._classes)
        self._order = partial(order_of, self._class_of)
        self._surplus = Surplus(self._settings, self._usable, self._class_of, whole, self._order)
        self._deadlines: list[datetime] = []
        self._in_grace: set[str] = set()
        self._admitted: set[str] = set()
        """Pods that count in a queue that does not admit all."""
        self._fitting: dict[frozenset[tuple[object, int]], bool] = {}
        """Whether pods fit within the limits, by how many need the same."""
        self._unserved: dict[Placement, str] = {}
        """Why no node has room for pods of a placement."""

    def plan(self) -> DemandPlan:
        for each in self._classes:
            self._prepare(each)
        for uid, why, redacted in self._inputs.without_place:
            self._class_of[uid].refused[uid], self._class_of[uid].redacted[uid] = why, redacted
        found = self._gangs()
        unstartable = [gang for gang in found if gang.lacking(self._may_have_place)]
        self._leave_out(unstartable)
        self._check_queues(found, {uid for gang in unstartable for uid in gang.pods})
        if any(each.kept_out for each in self._classes):
            found = self._gangs()
            self._leave_out(gang for gang in found if gang.lacking(self._may_have_place))
        self._place_whole()
        parts = self._pack(found)
        for each in self._classes:
            refused = (each.refused.keys() & each.members.shares.keys()) - each.by_queue.keys()
            each.unfit = frozenset(uid for uid in refused if not self._fits_a_type(each, uid))
        result = Result(self._inputs, self._usable, self._classes, self._class_of, self._in_grace)
        return replace(
            result.plan(parts, min(self._deadlines, default=None)), without_place=frozenset(self._without_place())
        )

    def _without_place(self) -> Iterator[tuple[str, str, str]]:
        for uid in sorted(self._admitted):
            each = self._class_of.get(uid)
            if each is not None and (why := each.refused.get(uid)):
                yield uid, why, each.redacted.get(uid, why)

    def _place_whole(self) -> None:
        """Assigns free whole GPUs to the pods that request them and that their queues admit. An autoscaler provides the
        nodes for the others."""
        if not any(each.members.whole for each in self._classes):
            return
        usable = self._usable
        existing = [node for node in usable.free if node.name not in usable.requested and GPU_MILLI in node.devices]
        names = {node.kind for node in existing}
        needs: list[PodNeed] = []
        for each in self._classes:
            kinds = usable.existing_kinds(each.demand_class, names) if each.members.whole else {}
            if kinds:
                of_class = self._known.of(each.demand_class, each.members.whole, kinds, self._settings, -1).needs
                needs += (need for uid, need in of_class.items() if uid not in each.kept_out)
        nodes = filled(self._whole.pack(needs, existing))
        usable.free = usable.left_by(nodes, {need.name: need for need in needs})

    def _prepare(self, each: ClassPlan) -> None:
        usable = self._usable
        each.refused |= each.members.unreadable
        each.redacted |= each.members.redacted
        offers = [offer for offer in usable.offers.values() if offer.kind.serves(each.demand_class)]
        each.levels = [{name: kind.gpus for name, kind in usable.kinds.items() if kind.serves(each.demand_class)}]
        placement = each.demand_class.placement
        for level in sorted({rank(offer, placement) for offer in offers}):
            more = kinds_of((offer for offer in offers if rank(offer, placement) == level), each.demand_class)
            each.levels.append({**each.levels[-1], **more})
        kinds = each.levels[-1]
        if not kinds:
            each.refused |= {uid: self._why_unserved(each, uid) for uid in each.members.shares}
            return
        found = self._known.of(each.demand_class, each.members.shares, kinds, self._settings, len(each.levels))
        each.needs, each.load, each.warnings = found.needs, found.load, found.warnings
        each.refused |= {uid: self._why_unserved(each, uid, why) for uid, why in found.refused.items()}
        self._note_grace(each)

    def _note_grace(self, each: ClassPlan) -> None:
        """Keeps pods on existing and requested nodes until their grace period has passed."""
        grace = self._settings.grace_seconds
        if not grace or self._inputs.now is None:
            return
        for uid, share in each.members.shares.items():
            condition = condition_of(share.pod.conditions, "PodScheduled")
            since = parse_time(condition.last_transition_time) if condition is not None else None
            if since is not None and (until := since + timedelta(seconds=grace)) > self._inputs.now:
                each.level[uid] = 0
                self._in_grace.add(uid)
                self._deadlines.append(until)

    def _why_unserved(self, each: ClassPlan, uid: str, too_large: str = "") -> str:
        """BLOCKED if only nodes of blocked instance types could take the pod; else that it is `too_large`, or why no
        node has room for it."""
        if self._fits_blocked(each, uid):
            return BLOCKED
        placement = each.demand_class.placement
        if not too_large and placement not in self._unserved:
            self._unserved[placement] = why_unserved(placement, self._inputs)
        return too_large or self._unserved[placement]

    def _fits_a_type(self, each: ClassPlan, uid: str) -> bool:
        need = each.needs.get(uid)
        return (need is not None and self._usable.is_offered(need)) or self._fits_blocked(each, uid)

    def _fits_blocked(self, each: ClassPlan, uid: str) -> bool:
        kinds = kinds_of(self._usable.blocked.values(), each.demand_class)
        if not kinds:
            return False
        need = self._known.of(each.demand_class, each.members.shares, kinds, self._settings, -3).needs.get(uid)
        return need is not None and self._usable.is_blocked(need)

    def _gangs(self) -> tuple[Gang, ...]:
        may_be = (each.members.shares for each in self._classes if each.members.may_be_in_gangs)
        waiting = {uid: share.pod for shares in may_be for uid, share in shares.items()}
        if not waiting:
            return ()
        lost = [(pod, UNREADABLE) for each in self._classes for pod in each.members.unreadable_pods]
        whole: list[Pod] = []
        for each in self._classes:
            for uid, why in self._why_whole_lost(each):
                pod = each.members.whole[uid].pod
                if why:
                    lost.append((pod, why))
                else:
                    whole.append(pod)
        pods = self._inputs.snapshot.pods
        running = (pod for pod in pods if node_of(pod) and not pod.finished and not pod.deleting)
        return gangs(waiting, chain(whole, running), self._inputs.groups, lost)

    def _why_whole_lost(self, each: ClassPlan) -> Iterator[tuple[str, str]]:
        """Why pods that request whole GPUs get no node, by UID; empty for those that an autoscaler provides for."""
        if not each.members.whole:
            return
        usable = self._usable
        kinds = usable.existing_kinds(each.demand_class, usable.kinds.keys())
        kinds |= kinds_of(chain(usable.offers.values(), usable.blocked.values()), each.demand_class)
        needs = self._known.of(each.demand_class, each.members.whole, kinds, self._settings, -2).needs
        for uid in each.members.whole:
            need = needs.get(uid)
            able = need is not None and (usable.has_room(need) or usable.is_blocked(need))
            yield uid, each.kept_out.get(uid, "") or ("" if able else NO_NODE)

    def _check_queues(self, found: tuple[Gang, ...], unstartable: Collection[str]) -> None:
        """Refuses the pods that their queue does not admit. Pods are checked one by one only in queues that do not
        admit all. Pods that can have no place count for nothing there."""
        gate = self._inputs.gate
        if gate is None:
            return
        whole = [(uid, each) for each in self._classes for uid in each.members.whole]
        loads = [(each.demand_class.queue, QueueLoad.of(_whole(each, uid), preemptible=False)) for uid, each in whole]
        tight = gate.tight([*((each.demand_class.queue, each.load) for each in self._classes), *loads])
        uids = {uid for each in self._classes if each.demand_class.queue in tight for uid in each.needs}
        uids |= {uid for gang in found if not uids.isdisjoint(gang.pods) for uid in gang.pods}
        uids = {uid for uid in uids if self._may_have_place(uid)}
        placeable = {uid for uid in uids if self._usable.has_room(self._class_of[uid].needs[uid])}
        lacking = (gang for gang in found if not uids.isdisjoint(gang.pods) and gang.lacking(placeable.__contains__))
        placeable -= {uid for gang in lacking for uid in gang.pods}
        requesting = {uid: self._class_of[uid] for uid in placeable if uid not in unstartable}
        requested = {uid: _queue_amount(each, uid) for uid, each in requesting.items()}
        requesting |= {uid: each for uid, each in whole if each.demand_class.queue in tight}
        requested |= {uid: _whole(each, uid) for uid, each in whole if uid in requesting}
        pods = {uid: each.pod(uid) for uid, each in requesting.items()}
        grouped = {uid: (each.pod, self._inputs.group_of(each.pod)) for uid, each in pods.items()}
        standing = {uid: (is_preemptible(*each), priority_of(*each)) for uid, each in grouped.items()}
        requests = {
            uid: QueueRequest(each.demand_class.queue, requested[uid], *standing[uid])
            for uid, each in requesting.items()
        }
        refused = refused_by_queues(gate, pods, requests, found)
        self._admitted = requesting.keys() - refused.keys()
        for uid, why in refused.items():
            each = requesting[uid]
            if uid in each.members.whole:
                each.kept_out[uid] = why
            else:
                each.refused[uid] = each.by_queue[uid] = why

    def _pack(self, found: tuple[Gang, ...]) -> list[Part]:
        """Packs the pods. Repeats it without the pods that find no place, as long as gangs remain that can no longer
        start."""
        limited = False
        while True:
            needs, later = self._current_needs(found)
            few = len(needs) <= _FEW_PODS
            if limited and few and self._usable.limits and not self._all_fit(needs) and self._relax(needs, found):
                continue
            parts = self._without_redundant_nodes(self._packing.pack(needs, self._usable.free, self._usable.shapes))
            exceeded = not all(within(limit, parts) for limit in self._usable.limits)
            if exceeded and (limited or not few or self._all_fit(needs)):
                parts = self._without_redundant_nodes([self._packing.pack_within(self._part(needs))])
                exceeded = False
            in_grace: list[Part] = []
            if later:  # they get what is left, or new nodes would be requested in place of those that they use
                left = self._usable.left_by(filled(parts), {need.name: need for need in needs})
                in_grace = self._whole.pack(later, left)
            without_place = {uid for part in (*parts, *in_grace) for uid in part.packing.unplaced}
            unplaced = without_place - self._in_grace
            if sum(self._class_of[uid].raise_level(uid) for uid in unplaced):
                continue
            without_place |= self._in_grace.difference(need.name for need in (*needs, *later))
            if self._hold_back(found, unplaced, without_place):
                continue
            if beyond := self._surplus.refused(parts) if self._usable.blocked else {}:
                # A type that they prefer less may be small enough.
                if not sum(self._class_of[uid].raise_level(uid) for uid in beyond):
                    for uid, why in beyond.items():
                        self._refuse(uid, why)
                continue
            if not limited and (exceeded or (unplaced and self._is_contested(unplaced, needs, parts))):
                limited = True
                self._refuse_by_limits(found)
                continue
            broken = [
                gang
                for gang in found
                if any(uid not in self._class_of[uid].refused for uid in gang.pods)
                and gang.lacking(partial(self._may_have_place, without=unplaced))
            ]
            # Others may have the room of a gang that cannot start, so they are refused when no such gang is left.
            broken = broken[len(broken) // 2 :]
            for uid in unplaced & {uid for gang in broken for uid in gang.pods} if broken else unplaced:
                why = self._why_limited(uid, len(needs)) if limited else ""
                self._refuse(uid, why or self._why_unserved(self._class_of[uid], uid))
            if not broken:
                return [*parts, *in_grace]
            self._leave_out(broken)

    def _without_redundant_nodes(self, parts: Sequence[Part]) -> Sequence[Part]:
        """The parts, in which pods use nodes that they prefer less if that saves GPUs."""
        if not any(part.packing.gpus for part in parts):
            return parts
        unplaced = {uid for part in parts for uid in part.packing.unplaced}
        needs = [need for part in parts for need in part.needs if need.name not in unplaced]
        able = [each if each.name in self._in_grace else self._class_of[each.name].needs[each.name] for each in needs]
        return self._packing.without_redundant_nodes(parts, able, self._usable.free, self._usable.shapes)

    def _current_needs(self, found: Iterable[Gang]) -> tuple[list[PodNeed], list[PodNeed]]:
        """The needs of the pods that are not refused; apart from the others, those of pods in their grace period that
        no other pod needs to start."""
        last = self._in_grace.difference(*map(self._first, found)) if self._in_grace else set()
        needs: list[PodNeed] = []
        later: list[PodNeed] = []
        for each in self._classes:
            for need in each.current_needs(self._known, self._settings, self._in_grace):
                (later if need.name in last else needs).append(need)
        return needs, later

    def _first(self, gang: Gang) -> list[str]:
        """The pods from which a gang starts, those in their grace period last; none if it consists of these alone."""
        able = [] if self._in_grace.issuperset(gang.pods) else list(filter(self._may_have_place, gang.pods))
        return gang.first_to_start(able, lambda uid: (uid in self._in_grace, self._order(uid)))

    def _hold_back(self, found: Iterable[Gang], unplaced: Collection[str], without_place: Collection[str]) -> bool:
        """Gives a grace period to all pods of each gang that can start only with pods that are still in theirs. Returns
        whether there was one."""
        if not self._in_grace:
            return False
        gangs_in_grace = [
            gang
            for gang in found
            if not self._in_grace.issuperset(gang.pods)
            and not gang.lacking(partial(self._may_have_place, without=unplaced))
            and gang.lacking(partial(self._may_have_place, without=without_place))
        ]
        for uid in {uid for gang in gangs_in_grace for uid in gang.pods}:
            self._class_of[uid].level[uid] = 0
            self._in_grace.add(uid)
        return bool(gangs_in_grace)

    def _is_contested(self, unplaced: Collection[str], needs: Iterable[PodNeed], parts: Iterable[Part]) -> bool:
        """Whether limits leave these pods without a place, or a pod that comes after one has its place."""
        if any(binds(limit, parts) for limit in self._usable.limits):
            return True
        without = {uid: self._class_of[uid].needs[uid] for uid in unplaced}
        if any(map(self._usable.has_new_node, without.values())):
            return True
        able = [self._order(uid)[:2] for uid, need in without.items() if self._usable.has_room(need)]
        return any(need.name not in unplaced and self._order(need.name)[:2] > min(able) for need in needs if able)

    def _relax(self, needs: Iterable[PodNeed], found: Sequence[Gang]) -> bool:
        """Lets the pods for which limits leave no room use nodes that they prefer less, lowest priority and newest
        first; if they use all, the other pods. Returns False if all use all."""
        out = self._beyond_limits(needs, found)
        others = (need.name for need in needs if need.name not in self._in_grace)
        return any(sum(self._class_of[uid].raise_level(uid) for uid in uids) for uids in (out, others))

    def _beyond_limits(self, needs: Iterable[PodNeed], found: Sequence[Gang]) -> set[str]:
        """The pods for which limits leave no room, lowest priority and newest first."""
        able = [need for need in needs if need.name not in self._in_grace]
        units = units_in_order(able, self._order, found)
        if len(able) <= _FEW_PODS:
            return left_out(units, self._all_fit)
        return left_out_in_order(units, self._usable.shapes, self._usable.free, self._usable.limits)

    def _refuse_by_limits(self, found: Sequence[Gang]) -> None:
        """Refuses the pods for which limits leave no room, on whatever nodes pods prefer."""
        needs = [need for each in self._classes for uid, need in each.needs.items() if uid not in each.refused]
        out = self._beyond_limits(needs, found)
        whys = {uid: self._why_limited(uid, len(needs)) for uid in sorted(out)}
        broken = [gang for gang in found if gang.lacking(lambda uid: uid not in out and self._may_have_place(uid))]
        gang_of = {uid: gang for gang in broken for uid in gang.pods}
        for uid, own in whys.items():
            # A pod of a gang may have room, but no other pod that has to start with it.
            lacking = (whys[other] for other in gang_of[uid].pods if other in out) if uid in gang_of else ()
            why = own or next(filter(None, lacking), "") or self._why_unserved(self._class_of[uid], uid)
            if uid in gang_of:
                problem = "starts as a whole, and its pods find no room together"
                self._class_of[uid].redacted[uid] = f"a gang {problem}: {why}"
                why = f"{gang_of[uid].name} {problem}: {why}"
            self._refuse(uid, why)

    def _all_fit(self, needs: Sequence[PodNeed]) -> bool:
        key = frozenset(Counter(map(need_key, needs)).items())
        if key not in self._fitting:
            self._fitting[key] = self._packing.all_fit(self._part(needs))
        return self._fitting[key]

    def _part(self, needs: Sequence[PodNeed]) -> Part:
        return Part(needs, self._usable.free, self._usable.shapes, self._usable.limits)

    def _why_limited(self, uid: str, pods: int) -> str:
        """Why there is no room for the pod among this number of pods; empty if it could have a new node."""
        each = self._class_of[uid]
        able = [offer.shape for offer in self._usable.offers.values() if could_take(offer, each.needs[uid])]
        limits = self._inputs.limits
        binding = (limits.excess(shape) or limits.tightest(shape, pods) for shape in able)
        found = next((str(limit) for limit in binding if limit is not None), "")
        return found if able else self._why_unserved(each, uid)

    def _refuse(self, uid: str, why: str) -> None:
        self._class_of[uid].refused.setdefault(uid, why)

    def _leave_out(self, broken: Iterable[Gang]) -> None:
        for gang in broken:
            lacking = gang.lacking(self._may_have_place)
            problem = f"starts as a whole, and {lacking} more of its pods need a place"
            why = redacted = next(iter(gang.reasons), "")
            refused = {uid: self._class_of[uid] for uid in gang.pods if uid in self._class_of[uid].refused}
            # Not the reason of a pod that is refused because of others of the same gang.
            first = min(refused, key=lambda uid: refused[uid].refused[uid].startswith(gang.name), default=None)
            if first is not None:
                why = refused[first].refused[first]
                redacted = refused[first].redacted.get(first, why)
            if not why.startswith(gang.name):
                why, redacted = f"{gang.name} {problem}: {why}", f"a gang {problem}: {redacted}"
            for uid in gang.pods:
                each = self._class_of[uid]
                if uid not in each.refused:
                    each.refused[uid], each.redacted[uid] = why, redacted

    def _may_have_place(self, uid: str, without: Collection[str] = ()) -> bool:
        return uid not in without and self._class_of[uid].has_place(uid)


def _queue_amount(each: ClassPlan, uid: str) -> Amount:
    """What the pod would take of its queue."""
    pod = each.pod(uid)
    return Amount.of(queue_milli(pod, each.needs[uid]), pod.pod.host)


def _whole(each: ClassPlan, uid: str) -> Amount:
    """What a pod that requests whole GPUs would take of its queue."""
    share = each.members.whole[uid]
    return Amount.of(share.share.devices * GPU_MILLI, share.pod.host)
