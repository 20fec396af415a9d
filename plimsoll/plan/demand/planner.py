"""Plans the demand of a snapshot: packs the unschedulable pods of all classes onto free GPUs, requested nodes and new
nodes."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from plimsoll.cluster.ledger import GpuLedger, empty_ledger
from plimsoll.cluster.nodes import index_of
from plimsoll.cluster.pods import PodChanges, pod_changes
from plimsoll.cluster.pools import DaemonOverhead, PoolLimits, PoolShapes, Room
from plimsoll.cluster.queues import QueuedPods, QueueGate
from plimsoll.model import Snapshot
from plimsoll.plan.classes import Classes, ClassMembers, DemandClass, KnownNeeds, waits
from plimsoll.plan.demand.demand import DemandPlan, RequestedNode
from plimsoll.plan.demand.hosts import Hosts
from plimsoll.plan.demand.joint import JointPacking
from plimsoll.plan.demand.round import DemandRound
from plimsoll.plan.demand.supply import Supply
from plimsoll.plan.demand.usable import DemandInputs

SECONDS: Final = 2.0
"""Limit of the search for one packing, counted as work."""


class DemandPlanner:
    """Plans demand in round after round and reads only what changed. A plan depends on its arguments only.

    Not thread-safe. `seconds` limits the search for a packing, counted as work, so that a plan is the same on every
    machine.
    """

    def __init__(self, seconds: float = SECONDS) -> None:
        self._packing = JointPacking(seconds)
        self._whole = JointPacking(seconds)
        self._needs = KnownNeeds()
        self._hosts = Hosts(())
        self._snapshot: Snapshot | None = None
        self._counted = False
        """Whether ledger, loads and shapes are those of the last snapshot. They are not updated while no pod waits."""
        self._classes = Classes()
        self._ledger = GpuLedger()
        self._queued = QueuedPods()
        self._daemons = DaemonOverhead()
        self._supply = Supply()
        self._shapes: PoolShapes | None = None

    def plan(
        self,
        snapshot: Snapshot,
        requested: Sequence[RequestedNode] = (),
        blocked_types: Collection[tuple[str, str]] = (),
        failed_claims: Collection[str] = (),
        registered: Collection[tuple[str, str]] = (),
        *,
        room: Room | None = None,
        now: datetime | None = None,
    ) -> DemandPlan:
        """The demand of a snapshot. The result does not depend on the order of the arguments' elements.

        `blocked_types` are (instance type, NodePool) pairs that are skipped for now. `failed_claims` are names of
        NodeClaims that are no longer expected. `registered` are (node, scheduler) pairs: nodes that were requested for
        pods of that scheduler. `room` is what the Environment's limits leave besides all existing
        capacity that was not requested for demand. `now`, with a time zone, decides whose grace period is over; with
        None, all are.

        With the planned nodes as `requested`, the same pods need no new nodes.
        """
        last, changes, classes = self._read(snapshot)
        self._needs.keep(classes.keys())
        if not classes:
            self._counted = False
            return DemandPlan()
        shapes = self._count(snapshot, last, changes)
        supply = self._supply.of(snapshot, self._ledger, (*shapes.shapes, *shapes.unready), failed_claims)
        idle = [each for each in registered if each[0] in supply and not supply[each[0]].free.scheduler]
        own = {name: replace(host := supply[name], free=replace(host.free, scheduler=of)) for name, of in idle}
        if self._hosts.pods != {(of.placement, of.scheduler) for of in classes}:
            self._hosts = Hosts(classes)
        self._hosts.see(index_of(snapshot.nodes), requested)
        inputs = DemandInputs(
            snapshot=snapshot,
            classes=classes,
            groups=self._classes.groups,
            supply={**supply, **own} if own else supply,
            shapes=shapes.shapes,
            unready=shapes.unready,
            blocked=frozenset(blocked_types),
            requested=tuple(sorted(requested, key=lambda each: each.name)),
            limits=PoolLimits(snapshot.node_pools, snapshot.environment.spec.gpu_resource, room),
            gate=QueueGate(snapshot.queues, self._queued.loads) if snapshot.queues else None,
            group_of=self._classes.group_of,
            now=now,
            warnings=shapes.warnings,
        )
        found = self._round(inputs)
        while found.refused:
            # Requests that will be withdrawn no longer count against the limits, and pods without a place not in their
            # queues, so that others may have both.
            kept = tuple(each for each in inputs.requested if each.claimed or each.name in found.needed)
            if len(kept) == len(inputs.requested) and not found.without_place:
                break
            inputs = replace(
                inputs,
                requested=kept,
                without_place=inputs.without_place | found.without_place,
                limits=PoolLimits(snapshot.node_pools, snapshot.environment.spec.gpu_resource, room),
                gate=QueueGate(snapshot.queues, self._queued.loads) if snapshot.queues else None,
            )
            other = self._round(inputs)
            if other.refused >= found.refused:
                break
            found = other
        return found

    def _round(self, inputs: DemandInputs) -> DemandPlan:
        return DemandRound(inputs, self._hosts, self._packing, self._whole, self._needs).plan()

    def _read(
        self, snapshot: Snapshot
    ) -> tuple[Snapshot | None, PodChanges | None, Mapping[DemandClass, ClassMembers]]:
        """The last snapshot and the changed pods, both None if everything must be read again; and the classes of
        waiting pods."""
        last, self._snapshot = self._snapshot, None  # nothing is known where this fails
        if last is not None and last.environment.spec.gpu_resource != snapshot.environment.spec.gpu_resource:
            last = None
        changes = None if last is None else pod_changes(last.pods, snapshot.pods)
        classes = self._classes.update(snapshot, changes)
        self._snapshot = snapshot
        return last, changes, classes

    def _count(self, snapshot: Snapshot, last: Snapshot | None, changes: PodChanges | None) -> PoolShapes:
        """Updates the ledger, the loads of queues and the shapes of new nodes with the changes since the last
        snapshot."""
        counted, self._counted = self._counted, False
        settings = snapshot.environment.spec.demand
        if last is None or not counted or last.environment.spec.demand != settings:
            last, changes = None, None
            # A waiting pod is demand and uses no GPU yet; all other pods count in the ledger.
            self._ledger = empty_ledger(snapshot.environment.spec, lambda pod: waits(pod, settings))
        if changes is None or last is None or last.nodes is not snapshot.nodes:
            self._ledger.update(snapshot.nodes, snapshot.pods)
        else:
            self._ledger.apply_changes(changes)
        if snapshot.queues:
            self._queued.update(snapshot, changes if last is not None and last.queues else None)
        if last is None or last.daemon_sets is not snapshot.daemon_sets:
            self._daemons = DaemonOverhead(snapshot.daemon_sets)
        self._ledger.set_other_loads(snapshot.host_loads, self._daemons)
        same = last is not None and all(
            getattr(last, name) is getattr(snapshot, name) for name in ("nodes", "node_pools", "daemon_sets")
        )
        if self._shapes is None or not same:
            self._shapes = PoolShapes(snapshot)
        self._counted = True
        return self._shapes
