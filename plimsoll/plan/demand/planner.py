"""Plans the demand of a snapshot: unschedulable pods by class, packed into free resources, requested nodes and new
nodes."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from plimsoll.model import Snapshot
from plimsoll.packing.gpus import Clock
from plimsoll.plan.classes import Classes, ClassMembers, DemandClass, KnownNeeds, waits
from plimsoll.plan.demand.demand import Demand, Promise
from plimsoll.plan.demand.divided_supply import DividedSupply
from plimsoll.plan.demand.last_packings import SECONDS, ClassPackings
from plimsoll.plan.demand.offer import DemandOffer
from plimsoll.plan.demand.packer import PromisedNode
from plimsoll.plan.demand.round import DemandRound
from plimsoll.plan.demand.supply import Supplies
from plimsoll.plan.ledger import GpuLedger
from plimsoll.plan.pods import PodChanges, pod_changes
from plimsoll.plan.pools import DaemonOverhead, PoolLimits, PoolShape, PoolShapes, Room, unready_claims
from plimsoll.plan.queues import QueueGate, QueueLoad, QueueLoads


def demands(
    snapshot: Snapshot,
    promises: Sequence[Promise] = (),
    blocked_types: Collection[tuple[str, str]] = (),
    failed_claims: Collection[str] = (),
    came: Mapping[str, str] | None = None,
    *,
    room: Room | None = None,
) -> tuple[Demand, ...]:
    """The demand of a snapshot, by name. The order of what is given does not matter.

    `blocked_types` are (instance type, NodePool) pairs that are not asked for now, nor waited for; `failed_claims` the
    names of NodeClaims of which nothing is expected any more. `came` are nodes that came for promises, with the name
    of the demand that asked for them: they are for its pods until those are bound. `room` is what the Environment's
    limits leave beside all that is there and not promised. With what was asked for before as
    `promises` and `came`, the same pods give no new nodes.
    """
    return DemandPlanner().demands(snapshot, promises, blocked_types, failed_claims, came, room=room)


class DemandPlanner:
    """Plans demand round after round, and reuses what did not change.

    Where pods are planned depends on the previous plan, which is repaired; whether a plan is valid does not. Not
    thread-safe. `seconds` limits the packing of a class, by the clock if one is given, else by counted work.
    """

    def __init__(self, seconds: float = SECONDS, clock: Clock | None = None) -> None:
        self._packings = ClassPackings(seconds, clock)
        self._needs = KnownNeeds()
        self._snapshot: Snapshot | None = None
        self._counted = False
        """Whether ledger, loads and shapes are those of the last snapshot: nobody needs them while nothing asks."""
        self._classes = Classes()
        self._ledger = GpuLedger()
        self._queue_loads = QueueLoads()
        self._loads: Mapping[str, QueueLoad] = {}
        self._daemons = DaemonOverhead()
        self._supplies = Supplies()
        self._divided = DividedSupply()
        """As the last round left the supply."""
        self._allowed: PoolShapes | None = None
        self._began = False
        """Whether something has been planned: from then on it is known who is to go where."""

    def demands(
        self,
        snapshot: Snapshot,
        promises: Sequence[Promise] = (),
        blocked_types: Collection[tuple[str, str]] = (),
        failed_claims: Collection[str] = (),
        came: Mapping[str, str] | None = None,
        *,
        room: Room | None = None,
    ) -> tuple[Demand, ...]:
        """As the function of that name."""
        last, changes, classes = self._read(snapshot)
        self._packings.begin(classes)
        self._needs.keep(classes.keys())
        if not classes:
            self._counted = False
            return ()
        allowed = self._count(snapshot, last, changes)
        blocked = frozenset(blocked_types)
        shapes = tuple(each for each in allowed.shapes if (each.instance_type, each.node_pool) not in blocked)
        promised = _promised(promises, allowed.shapes, blocked)
        limits = PoolLimits(snapshot.node_pools, snapshot.environment.spec.gpu_resource, room)
        if promised:
            _take_unclaimed(limits, (each for several in promised.values() for each in several), snapshot)
        offer = DemandOffer(
            supply=self._supplies.of(snapshot, self._ledger, allowed.shapes, failed_claims, came or {}),
            shapes=shapes,
            blocked=tuple(each for each in allowed.shapes if (each.instance_type, each.node_pool) in blocked),
            promised=promised,
            limits=limits,
            warnings=allowed.warnings,
            recalled={} if self._began else {each.name: each.status for each in snapshot.gpu_demands},
        )
        return self._plan(snapshot, classes, offer)

    def _plan(
        self, snapshot: Snapshot, classes: Mapping[DemandClass, ClassMembers], offer: DemandOffer
    ) -> tuple[Demand, ...]:
        """Once more where nodes that came are not used by whom they came for, as pods were bound elsewhere, and others
        would ask for new ones."""
        self._supplies.keep({of.placement for of in classes})
        divided, self._divided = self._divided, DividedSupply()  # nothing is known where this fails
        planned, found = self._within_limits(snapshot, classes, offer, divided)
        self._divided = planned.divided
        if any(demand.nodes for demand in found) and (unused := offer.supply.unused(found)):
            opened = replace(offer, supply=offer.supply.opened(unused))
            again, others = self._within_limits(snapshot, classes, opened, DividedSupply())
            if _cost(others) < _cost(found):
                planned, found, self._divided = again, others, DividedSupply()
        self._packings.end(planned.packed())
        self._began = True
        return found

    def _within_limits(
        self,
        snapshot: Snapshot,
        classes: Mapping[DemandClass, ClassMembers],
        offer: DemandOffer,
        divided: DividedSupply,
    ) -> tuple[DemandRound, tuple[Demand, ...]]:
        """Once more where a limit keeps pods out: then by who goes first, and not by how they pack."""
        planned = self._round(snapshot, classes, replace(offer, supply=offer.supply.copy()), divided)
        found = planned.demands()
        left_out = planned.rationed()
        if left_out:
            offer = replace(offer, supply=offer.supply.copy(), left_out=left_out)
            planned = self._round(snapshot, classes, offer, divided)
            found = planned.demands()
        return planned, found

    def _round(
        self,
        snapshot: Snapshot,
        classes: Mapping[DemandClass, ClassMembers],
        offer: DemandOffer,
        divided: DividedSupply,
    ) -> DemandRound:
        gate = QueueGate(snapshot.queues, self._loads)
        known, of = self._needs, self._classes
        return DemandRound(
            snapshot, classes, offer, self._packings, known=known, gate=gate, members_of=of, divided=divided
        )

    def _read(
        self, snapshot: Snapshot
    ) -> tuple[Snapshot | None, PodChanges | None, Mapping[DemandClass, ClassMembers]]:
        """The last snapshot and how pods differ from it, where it can be built upon; the classes that ask."""
        last, self._snapshot = self._snapshot, None  # nothing is known where this fails
        if last is not None and last.environment.spec.gpu_resource != snapshot.environment.spec.gpu_resource:
            last = None
        changes = None if last is None else pod_changes(last.pods, snapshot.pods)
        classes = self._classes.update(snapshot, changes)
        self._snapshot = snapshot
        return last, changes, classes

    def _count(self, snapshot: Snapshot, last: Snapshot | None, changes: PodChanges | None) -> PoolShapes:
        """Ledger, loads and shapes, by what is not the same as in the last snapshot."""
        counted, self._counted = self._counted, False
        settings = snapshot.environment.spec.demand
        if last is None or not counted or last.environment.spec.demand != settings:
            last, changes = None, None
            self._divided = DividedSupply()
            # A pod is demand, or has taken GPUs; never both.
            resource = snapshot.environment.spec.gpu_resource
            self._ledger = GpuLedger(resource, waits=lambda pod: waits(pod, settings), tflops=settings.gpu_tflops)
        if changes is None or last is None or last.nodes is not snapshot.nodes:
            self._ledger.update(snapshot.nodes, snapshot.pods)
        else:
            self._ledger.take(changes)
        queued = last is not None and last.queues
        self._loads = self._queue_loads.update(snapshot, changes if queued else None) if snapshot.queues else {}
        if last is None or last.daemon_sets is not snapshot.daemon_sets:
            self._daemons = DaemonOverhead(snapshot.daemon_sets)
        self._ledger.put_beside(snapshot.host_loads, self._daemons)
        same = last is not None and all(
            getattr(last, name) is getattr(snapshot, name) for name in ("nodes", "node_pools", "daemon_sets")
        )
        if self._allowed is None or not same:
            self._allowed = PoolShapes(snapshot)
        self._counted = True
        return self._allowed


def _cost(found: Iterable[Demand]) -> tuple[int, int]:
    """Pods that nothing is asked for, GPUs that are asked for."""
    asked = [(len(demand.refused), sum(node.gpus for node in demand.nodes)) for demand in found]
    return sum(refused for refused, _ in asked), sum(gpus for _, gpus in asked)


def _promised(
    promises: Iterable[Promise], shapes: Iterable[PoolShape], blocked: Collection[tuple[str, str]]
) -> dict[str, list[PromisedNode]]:
    """By demand, then by name; promises of which every type is blocked are none, unless they are claimed."""
    by_name = {shape.name: shape for shape in shapes}
    found: defaultdict[str, list[PromisedNode]] = defaultdict(list)
    for promise in sorted(promises, key=lambda each: each.name):
        names = (f"{promise.node_pool}/{each}" for each in promise.instance_types)
        come_as = [by_name[name] for name in names if name in by_name]
        free = any((shape.instance_type, shape.node_pool) not in blocked for shape in come_as)
        if come_as and (promise.claimed or free):
            found[promise.demand].append(PromisedNode.of(promise, come_as))
    return dict(found)


def _take_unclaimed(limits: PoolLimits, promised: Iterable[PromisedNode], snapshot: Snapshot) -> None:
    """Promises that have no NodeClaim yet, which Karpenter counts against the limits only once it has made one."""
    coming = unready_claims(snapshot)
    for each in promised:
        if coming[each.node_pool] > 0:
            coming[each.node_pool] -= 1
        elif each.largest is not None:
            limits.give(each.largest, -1)
