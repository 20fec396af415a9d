"""Plans the demand of a snapshot in five steps: read, admit, climb, restrict, report.

Unschedulable pods climb a ladder: first to free GPUs and requested nodes, then to the new nodes that they prefer most,
then to others.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from plimsoll.cluster.nodes import index_of
from plimsoll.cluster.pools import PoolProfiles, Room, strategies_of
from plimsoll.model import Snapshot
from plimsoll.model.api import barred_from
from plimsoll.model.cluster import Pod
from plimsoll.packing import GPU_MILLI
from plimsoll.plan.classes import LEFT_OUT, KnownNeeds, LeftOut, NamespaceLimits, PlannedClasses, Refusal
from plimsoll.plan.demand.admitted import admit
from plimsoll.plan.demand.cluster_state import ClusterStates
from plimsoll.plan.demand.demand import Demand, DemandPlan, RequestedNode
from plimsoll.plan.demand.hosts import Hosts
from plimsoll.plan.demand.inputs import DemandInputs
from plimsoll.plan.demand.joint import JointPacking
from plimsoll.plan.demand.neighbours import choosing_domains
from plimsoll.plan.demand.report import report
from plimsoll.plan.demand.restrict import restrict
from plimsoll.plan.demand.rungs import Packers, read
from plimsoll.plan.demand.supply import Supply
from plimsoll.plan.demand.usable import usable_of

FEW_CLASSES: Final = 4
CLASSES_PER_GPU: Final = 2
"""Classes of a namespace whose GPUs are limited: some, as not all of them need have a place, and more for each GPU that
it may have. Each of them costs all others time, also where its pods are replaced before each round: see
`bench/interference.py`."""
SECONDS: Final = 2.0
"""Limit of the search for one packing, counted as work."""


class DemandPlanner:
    """Plans demand in round after round and reads only what changed. A plan depends on its arguments only.

    Not thread-safe. `seconds` limits the search for a packing, counted as work, so that a plan is the same on every
    machine.
    """

    def __init__(self, seconds: float = SECONDS, states: ClusterStates | None = None) -> None:
        """`states` may be used by others, too."""
        self._states = states or ClusterStates()
        self._packers = Packers(KnownNeeds(), JointPacking(seconds), JointPacking(seconds))
        self._hosts = Hosts(())
        self._supply = Supply()
        self._planned_classes = PlannedClasses()
        self._left_out: tuple[Sequence[LeftOut], Demand] | None = None
        """The demand of those who are left out."""
        self._shapes: tuple[tuple[object, ...], PoolProfiles] | None = None
        """With what they were read from."""

    def plan(
        self,
        snapshot: Snapshot,
        requested: Sequence[RequestedNode] = (),
        blocked_types: Collection[tuple[str, str]] = (),
        failed_claims: Collection[str] = (),
        registered: Collection[tuple[str, str]] = (),
        *,
        room: Room | None = None,
        namespaces: NamespaceLimits | None = None,
        now: datetime | None = None,
    ) -> DemandPlan:
        """The demand of a snapshot. The result does not depend on the order of the arguments' elements.

        `blocked_types` are (instance type, NodePool) pairs that are skipped for now. `failed_claims` are names of
        NodeClaims that are no longer expected. `registered` are (node, scheduler) pairs: nodes that were requested for
        pods of that scheduler. `room` is what the Environment's limits leave besides all existing
        capacity that was not requested for demand, and `namespaces` what each namespace may have besides what it uses;
        None: as much as it asks for. `now`, with a time zone, decides whose grace period is over; with
        None, all are.

        With the planned nodes as `requested`, the same pods need no new nodes.
        """
        cluster = self._states.of(snapshot)
        self._packers.needs.begin(snapshot.environment.spec.demand)
        spec = snapshot.environment.spec

        def shut(namespace: str) -> str:
            exhausted = namespaces.exhausted(namespace) if namespaces is not None else ""
            return barred_from(spec, namespace) or exhausted

        def most(namespace: str) -> int:
            left = namespaces.left(namespace) if namespaces is not None else None
            bound = spec.demand.classes_per_namespace
            return bound if left is None else min(bound, FEW_CLASSES + CLASSES_PER_GPU * int(left // GPU_MILLI))

        classes, left_out = self._planned_classes.of(cluster.waiting.values(), most, shut)
        rest = self._rest(left_out)
        if not classes:
            return DemandPlan(demands=rest)
        shapes = self._shapes_of(snapshot)
        supply = self._supply.of(snapshot, cluster.accounts, (*shapes.shapes, *shapes.unready), failed_claims)
        for_pods = {
            name: (replace(supply[name][0], scheduler=scheduler), supply[name][1])
            for name, scheduler in registered
            if name in supply and not supply[name][0].scheduler
        }
        strategies = strategies_of(snapshot)
        if (
            self._hosts.pods != {(each.placement, each.scheduler) for each in classes}
            or self._hosts.strategies != strategies
        ):
            self._hosts = Hosts(classes, strategies)
        inputs = DemandInputs(
            cluster=cluster,
            classes=classes,
            left_out=left_out,
            supply={**supply, **for_pods} if for_pods else supply,
            shapes=shapes.shapes,
            unready=shapes.unready,
            divided=shapes.divided,
            blocked=frozenset(blocked_types),
            requested=tuple(sorted(requested, key=lambda each: each.name)),
            room=room,
            namespaces=namespaces,
            now=now,
            warnings=shapes.warnings,
        )
        self._hosts.see(index_of(snapshot.nodes), requested, choosing_domains(inputs))
        found = _plan_demand(inputs, self._hosts, self._packers)
        return (
            replace(found, demands=tuple(sorted((*found.demands, *rest), key=lambda each: each.name)))
            if rest
            else found
        )

    def _rest(self, left_out: Sequence[LeftOut]) -> tuple[Demand, ...]:
        """One demand of all pods that are left out, each with the reason; the same one while they are the same."""
        if not left_out:
            return ()
        if self._left_out is None or self._left_out[0] != left_out:
            refused: dict[str, Refusal] = {}
            told: dict[str, Pod] = {}
            for each in left_out:
                refused |= dict.fromkeys(each.pods, each.why)
                told |= each.told
            self._left_out = left_out, Demand(LEFT_OUT, {}, refused=refused, refused_with_event=told)
        return (self._left_out[1],)

    def _shapes_of(self, snapshot: Snapshot) -> PoolProfiles:
        read_from = (
            snapshot.nodes,
            snapshot.node_pools,
            snapshot.node_profiles,
            snapshot.daemon_sets,
            snapshot.environment.spec,
        )
        if self._shapes is None or self._shapes[0] != read_from:
            self._shapes = read_from, PoolProfiles(snapshot)
        return self._shapes[1]


def _plan_demand(inputs: DemandInputs, hosts: Hosts, packers: Packers) -> DemandPlan:
    """The plan that leaves the fewest pods without capacity: requests that it withdraws count no longer against the
    limits, and pods without a place not in their queues, so that others may have both."""
    found, less = _in_steps(inputs, hosts, packers)
    while found.refused and less != inputs:
        other, even_less = _in_steps(less, hosts, packers)
        if other.refused >= found.refused:
            break
        found, inputs, less = other, less, even_less
    return found


def _in_steps(inputs: DemandInputs, hosts: Hosts, packers: Packers) -> tuple[DemandPlan, DemandInputs]:
    """The plan, and the inputs without what it leaves unused."""
    climbed = restrict(admit(read(inputs, usable_of(inputs, hosts), packers)))
    plan, standing = report(climbed), climbed.standing
    # Others may have the claims of those without a place, too.
    counted = standing.counted | standing.problem.holders
    without_place = {uid: standing.refused[uid] for uid in sorted(counted & standing.refused.keys())}
    kept = tuple(node for node in inputs.requested if node.claimed or node.name in plan.needed)
    return plan, replace(inputs, requested=kept, without_place={**inputs.without_place, **without_place})
