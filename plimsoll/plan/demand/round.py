"""One round of demand planning: from classes of pods to the capacity that each lacks."""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from plimsoll.model import Snapshot
from plimsoll.packing import GPU_MILLI
from plimsoll.packing.gpus import Effort
from plimsoll.packing.nodes import pack_nodes_within
from plimsoll.plan.classes import (
    Classes,
    ClassMembers,
    DemandClass,
    Gang,
    KnownNeeds,
    class_needs,
    gangs,
    kinds_of,
    milli_of,
    refused_by_queues,
)
from plimsoll.plan.demand.all_classes import SharedPacking
from plimsoll.plan.demand.demand import Demand
from plimsoll.plan.demand.divided_supply import DividedSupply
from plimsoll.plan.demand.last_packings import ClassPackings
from plimsoll.plan.demand.offer import DemandOffer
from plimsoll.plan.demand.packer import PackedClass
from plimsoll.plan.demand.planned import PlannedClass, planned_nodes
from plimsoll.plan.demand.pod_places import nodes_with_pods
from plimsoll.plan.demand.rationing import LeftOut, Rationed, as_free, ration
from plimsoll.plan.demand.reasons import BLOCKED, is_blocked, why_blocked, why_unserved
from plimsoll.plan.demand.recall import recall
from plimsoll.plan.pods import PodShare, node_of
from plimsoll.plan.queues import Amount, QueueGate, QueueLoad

_Outcome = tuple[dict[str, str], dict[str, str], PackedClass]
"""`refused`, `nameless` and `packed` of a class."""


class DemandRound:
    def __init__(
        self,
        snapshot: Snapshot,
        members: Mapping[DemandClass, ClassMembers],
        offer: DemandOffer,
        packings: ClassPackings,
        *,
        known: KnownNeeds,
        gate: QueueGate,
        members_of: Classes,
        divided: DividedSupply,
    ) -> None:
        self._snapshot = snapshot
        self._offer = offer
        self._packings = packings
        self._known = known
        self._gate = gate
        self._members_of = members_of
        self.divided = divided
        """As the round before left it; once there are demands, as this one does."""
        self._settings = snapshot.environment.spec.demand
        self._classes = [PlannedClass(of, each) for of, each in members.items()]
        """The most urgent first: they choose first of what is free."""
        self._found: tuple[Gang, ...] = ()
        self._kept_out: set[str] = set()
        """UIDs of pods that were refused before anything was packed."""
        self._by_class = {each.of: each for each in self._classes}

    def demands(self) -> tuple[Demand, ...]:
        for each in self._classes:
            self._place_spoken_for(each)
        for each in self._classes:
            self._prepare(each)
        found = self._found = self._gangs()
        hopeless = [gang for gang in found if gang.lacking(self._fits_somewhere)]
        self._leave_out(hopeless)
        self._ask_queues(found, {uid for gang in hopeless for uid in gang.pods})
        self._kept_out = {uid for each in self._classes for uid in each.refused}
        self._pack(found)
        return tuple(sorted((self._demand(each) for each in self._classes), key=lambda demand: demand.name))

    def packed(self) -> Mapping[DemandClass, PackedClass]:
        """What each class came to."""
        return {each.of: each.packed for each in self._classes if each.needs}

    def rationed(self) -> Mapping[str, LeftOut]:
        """The pods that limits keep out, by priority, then age; none where no limit keeps any out."""
        limits = self._offer.limits
        found = (
            (each, uid, why)
            for each in self._classes
            for reasons in (each.refused, each.packed.unplaced)
            for uid, why in reasons.items()
        )
        reasons = {why for each, uid, why in found if uid in each.needs and uid not in self._kept_out}
        if not any(limits.named_in(reason) for reason in reasons):
            return {}
        classes = [self._as_rationed(each) for each in self._classes if each.needs]
        return ration(classes, limits, self._rank, self._found)

    def _as_rationed(self, each: PlannedClass) -> Rationed:
        needs = {uid: need for uid, need in each.needs.items() if uid not in self._kept_out}
        came = [free for free, _ in self._offer.supply.came_for(each.of.name)]
        promised = [node.free for node in self._offer.promised.get(each.of.name, ())]
        given = [as_free(node, needs) for node in each.packed.on_nodes if node.node is not None]
        return Rationed(needs, each.shapes, [*given, *came, *promised])

    def _rank(self, uid: str) -> tuple[int, str, str]:
        pod = self._class_of(uid).members.shares[uid].pod
        return -pod.priority, pod.creation_timestamp, uid

    def _place_spoken_for(self, each: PlannedClass) -> None:
        """Whole GPUs that are free go to those who ask for them; what is not, their autoscaler provides."""
        if not each.members.whole:
            return
        supply = self._offer.supply
        free = [node for node in supply.serving(each.of.placement) if GPU_MILLI in node.gpus]
        kinds = kinds_of((node.kind, supply.gpu_memory(node.name)) for node in free)
        needs = class_needs(each.members.whole, kinds, self._settings).needs
        packing = pack_nodes_within(Effort(0), needs.values(), (), free)
        supply.take(supply.uses(packing.nodes, needs))

    def _prepare(self, each: PlannedClass) -> None:
        placement, supply = each.of.placement, self._offer.supply
        each.refused |= each.members.unreadable
        each.nameless |= each.members.nameless
        each.shapes = tuple(shape for shape in self._offer.shapes if shape.serves(placement))
        came = [free for free, _ in supply.came_for(each.of.name)]
        coming = [node.largest for node in self._offer.promised.get(each.of.name, ()) if node.largest is not None]
        there = [(node.kind, supply.gpu_memory(node.name)) for node in came]
        there += [(shape.kind, shape.gpu_memory_mib) for shape in (*each.shapes, *coming)]
        if there or any(supply.serving(placement)):
            there += supply.kinds(placement)
        kinds = each.kinds = kinds_of(there)
        if each.members.shares and not kinds:
            why = why_unserved(placement, self._offer.shapes, len(self._snapshot.node_pools))
            each.refused |= dict.fromkeys(
                each.members.shares, BLOCKED if is_blocked(each, self._offer.blocked) else why
            )
            return
        given_up = self._offer.left_out
        left_out = {uid: given_up[uid] for uid in each.members.shares if uid in given_up} if given_up else {}
        each.refused |= {uid: left.why for uid, left in left_out.items()}
        each.nameless |= {uid: left.nameless for uid, left in left_out.items()}
        found = self._known.of(each.of, each.members.shares, kinds, self._settings)
        each.needs, each.load = found.needs, found.load
        each.refused |= found.refused | why_blocked(each, found.refused, self._offer.blocked, self._settings)
        each.warnings = found.warnings

    def _gangs(self) -> tuple[Gang, ...]:
        may_be = (each.members.shares for each in self._classes if each.members.may_be_in_gangs)
        waiting = {uid: share.pod for shares in may_be for uid, share in shares.items()}
        unreadable = (pod for each in self._classes for pod in each.members.unreadable_pods)
        spoken = [share.pod for each in self._classes for share in each.members.whole.values()]
        running = (pod for pod in self._snapshot.pods if node_of(pod) and not pod.finished and not pod.deleting)
        return gangs(waiting, chain(spoken, running), self._members_of.groups, unreadable)

    def _ask_queues(self, found: tuple[Gang, ...], hopeless: Container[str]) -> None:
        """Pod by pod only where a queue would not admit all."""
        if not self._snapshot.queues:
            return
        whole = [(uid, each) for each in self._classes for uid in each.members.whole]
        loads = [(each.of.queue, QueueLoad.of(_whole(each, uid), preemptible=False)) for uid, each in whole]
        tight = self._gate.tight([*((each.of.queue, each.load) for each in self._classes), *loads])
        uids = {uid for each in self._classes if each.of.queue in tight for uid in each.needs}
        uids |= {uid for gang in found if not uids.isdisjoint(gang.pods) for uid in gang.pods}
        classes = {uid: each for uid in uids if uid not in hopeless and uid in (each := self._class_of(uid)).needs}
        asked = {uid: Amount.of(milli_of(each.needs[uid]), _pod(each, uid).pod.host) for uid, each in classes.items()}
        classes |= {uid: each for uid, each in whole if each.of.queue in tight}
        asked |= {uid: _whole(each, uid) for uid, each in whole if uid in classes}
        pods = {uid: _pod(each, uid) for uid, each in classes.items()}
        requests = {
            uid: (each.of.queue, asked[uid], self._members_of.preemptible(pods[uid].pod))
            for uid, each in classes.items()
        }
        for uid, why in refused_by_queues(self._gate, pods, requests, found).items():
            each = classes[uid]
            if uid in each.members.whole:
                each.kept_out[uid] = why
            else:
                each.refused[uid] = each.by_queue[uid] = why

    def _pack(self, found: tuple[Gang, ...]) -> None:
        """Again where it is not known who was to go where, and less may be asked for in another way."""
        classes = [each for each in self._classes if each.needs]
        if self._offer.recalled:
            recall(classes, self._offer.recalled, self._offer.supply)
        shared = SharedPacking(classes, self._offer, self._packings, self._known, self.divided)
        left_out = [(dict(each.refused), dict(each.nameless)) for each in self._classes]
        best: tuple[tuple[int, int], list[_Outcome]] | None = None
        for pack in self._ways(classes, shared):
            for each, (refused, nameless) in zip(self._classes, left_out, strict=True):
                each.refused, each.nameless = dict(refused), dict(nameless)
            self._pack_gangs(pack, found)
            cost = self._cost(shared)
            if best is None or cost < best[0]:
                best = cost, [(each.refused, each.nameless, each.packed) for each in self._classes]
                self.divided = shared.divided
            if cost == (0, 0):
                return
        assert best is not None, "there is one way at least"
        for each, kept in zip(self._classes, best[1], strict=True):
            each.refused, each.nameless, each.packed = kept

    def _ways(self, classes: Sequence[PlannedClass], shared: SharedPacking) -> Iterator[Callable[[], None]]:
        """The likeliest first. What was recalled is not trusted: without it no more may be asked for."""
        yield shared.pack
        if shared.worth_another:
            yield shared.pack_onto_promised
        if any(each.recalled for each in classes):
            for each in classes:
                each.recalled = None
            yield from self._ways(classes, shared)

    def _pack_gangs(self, pack: Callable[[], None], found: tuple[Gang, ...]) -> None:
        pack()
        while self._leave_out_broken(found):
            pack()

    def _cost(self, shared: SharedPacking) -> tuple[int, int]:
        """Pods that no place is found for, GPUs to be asked for."""
        lost = sum(len(each.refused.keys() | each.packed.unplaced.keys()) for each in self._classes)
        return lost - len(self._kept_out), shared.asked

    def _leave_out_broken(self, found: tuple[Gang, ...]) -> bool:
        """Leaves out gangs that cannot start, the later half of them, as the others may then find room."""
        broken = [
            gang
            for gang in found
            if any(uid not in self._class_of(uid).refused for uid in gang.pods) and gang.lacking(self._placed)
        ]
        self._leave_out(broken[len(broken) // 2 :])
        return bool(broken)

    def _leave_out(self, broken: Iterable[Gang]) -> None:
        for gang in broken:
            lacking = gang.lacking(self._placed)
            said = f"starts as a whole, and {lacking} more of its pods need a place"
            why = nameless = "a request for GPUs among them cannot be read"
            first = next((uid for uid in gang.pods if self._why(uid)), None)
            if first is not None:
                why, nameless = self._why(first), self._class_of(first).nameless.get(first, self._why(first))
            for uid in gang.pods:
                each = self._class_of(uid)
                if uid not in each.refused:
                    each.refused[uid] = f"{gang.name} {said}: {why}"
                    each.nameless[uid] = f"a gang {said}: {nameless}"

    def _fits_somewhere(self, uid: str) -> bool:
        """Whether some node could take it, if it were empty."""
        return uid in self._class_of(uid).needs

    def _class_of(self, uid: str) -> PlannedClass:
        return self._by_class[self._members_of.class_of(uid)]

    def _placed(self, uid: str) -> bool:
        return self._class_of(uid).placed(uid)

    def _why(self, uid: str) -> str:
        each = self._class_of(uid)
        return each.refused.get(uid) or each.packed.unplaced.get(uid, "")

    def _demand(self, each: PlannedClass) -> Demand:
        packed, shares = each.packed, each.members.shares
        unplaced = packed.unplaced | why_blocked(each, packed.unplaced, self._offer.blocked, self._settings)
        promised, on_nodes = packed.pods_on_promises, packed.pods_on_nodes
        came = {free.name for free, _ in self._offer.supply.came_for(each.of.name)}
        blocked = shares and shares.keys() <= each.by_queue.keys()
        return Demand(
            of=each.of,
            pods=shares,
            nodes=planned_nodes(packed.new, each.shapes, each.needs),
            on_promises={name: uids for name, uids in promised.items() if name not in came},
            on_nodes=on_nodes | {name: uids for name, uids in promised.items() if name in came},
            places=nodes_with_pods(packed, self._offer.promised.get(each.of.name, ())),
            refused=dict(sorted((unplaced | each.refused).items())),
            nameless=each.nameless,
            blocked=next(iter(each.by_queue.values())) if blocked else "",
            spoken_for=each.members.whole,
            kept_out=each.kept_out,
            packing=packed.packing,
            gpu_memory_mib=each.kinds,
            warnings=(*self._offer.warnings, *each.warnings),
        )


def _pod(each: PlannedClass, uid: str) -> PodShare:
    return each.members.shares.get(uid) or each.members.whole[uid]


def _whole(each: PlannedClass, uid: str) -> Amount:
    """What a pod with whole GPUs takes of its queue."""
    share = each.members.whole[uid]
    return Amount.of(share.share.devices * GPU_MILLI, share.pod.host)
