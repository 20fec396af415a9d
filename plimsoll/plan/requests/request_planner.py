"""RequestPlanner: which requested nodes registered or failed, which requests to withdraw, and which to create."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from heapq import nlargest
from typing import Final

from plimsoll.cluster.pools import Room
from plimsoll.labels import REQUEST, SHARD
from plimsoll.model import ObjectKey, SignalReason, Snapshot
from plimsoll.model.api import DemandProvisioner as Setting
from plimsoll.model.api import DemandReport, GPUDemandStatus
from plimsoll.model.cluster import Pod
from plimsoll.model.karpenter import CapacityBuffer, PodTemplate, ProvisioningRequest
from plimsoll.plan.classes import NamespaceLimits
from plimsoll.plan.demand import Demand, DemandPlan, DemandPlanner
from plimsoll.plan.known import Known
from plimsoll.plan.owned import ClaimProgress, PlanBuilder, RequestObject, key_of, parse_time, signalled
from plimsoll.plan.requests.answers import Answers
from plimsoll.plan.requests.awaited import Awaited, awaited
from plimsoll.plan.requests.batches import BatchProvisioner
from plimsoll.plan.requests.capacity_request import CapacityRequest, CapacityRequests, registered_since
from plimsoll.plan.requests.claims import AssignedClaim, ClaimMonitor
from plimsoll.plan.requests.demand_provisioner import DemandProvisioner, Names
from plimsoll.plan.requests.headroom import keep_headroom
from plimsoll.plan.requests.record import FailureRecord, RequestFailure
from plimsoll.plan.requests.report import DemandState, completed, report
from plimsoll.plan.requests.reserved_nodes import reserved_nodes
from plimsoll.plan.requests.triggers import TriggerPodProvisioner

_KINDS: Final = {
    Setting.TRIGGER_POD: Pod,
    Setting.CAPACITY_BUFFER: CapacityBuffer,
    Setting.PROVISIONING_REQUEST: ProvisioningRequest,
}
"""Kinds of the objects that request nodes."""
MOST_COMPLETED: Final = 100
"""Maximum number of GPUDemands of completed demands: a namespace whose pods are always of new classes fills the cluster
with them otherwise, within `retentionSeconds`."""


class RequestPlanner:
    """Plans the requests of one snapshot; the operations are added to `builder`."""

    def __init__(
        self,
        snapshot: Snapshot,
        planner: DemandPlanner,
        builder: PlanBuilder,
        now: datetime,
        *,
        room: Room,
        namespaces: NamespaceLimits,
        requests: CapacityRequests,
        progress: ClaimProgress,
        known: Known,
    ) -> None:
        """`room` is what the Environment's limits leave for demand, `namespaces` what they leave each namespace,
        `requests` the objects that request nodes; they and `progress` are of the same snapshot."""
        self._snapshot = snapshot
        self._results = known
        self._settings = snapshot.environment.spec.demand
        self._planner = planner
        self._builder = builder
        self._now = now
        self._room = room
        self._namespaces = namespaces
        self._objects = requests.objs
        self._known = {each.name: each.status for each in snapshot.gpu_demands}
        found, kind = requests.found, _KINDS.get(self._settings.provisioner, ())
        requests_of_kind = [request for request in found if isinstance(request.obj, kind)]
        self._new_nodes = (
            requests.registered if len(requests_of_kind) == len(found) else registered_since(requests_of_kind, snapshot)
        )
        self._requests = [each.with_registered(self._new_nodes.get(each.name, ())) for each in requests_of_kind]
        self._claims = ClaimMonitor(snapshot, self._requests, progress, now)
        self._answers = Answers(snapshot)
        self._by_demand: dict[str, list[CapacityRequest]] = {}
        for request in self._requests:
            for name in request.attempts:
                self._by_demand.setdefault(name, []).append(request)
        self._failing: dict[str, list[RequestFailure]] = {}
        """Failures by request name."""
        self._lost: list[AssignedClaim] = []
        evaluated = [self._evaluate(request) for request in self._requests]
        self._waiting = [request for request in evaluated if request.outstanding or request.registered]
        self._failed_claims = {name for request in evaluated for name in request.lost}
        self._records = self._failure_records()
        self._all_types_blocked: set[str] = set()
        """Names of requests all of whose instance types are skipped for now."""
        self.demand = DemandPlan()
        """The demand; set by `plan`."""
        self.reserved: frozenset[str] = frozenset()
        """Registered nodes whose pods stay gated for now; see `reserved_nodes`."""

    def _choose(self, plan: DemandPlan) -> DemandProvisioner | None:
        if self._settings.provisioner is Setting.NONE:
            return None
        # Not a method: a cycle would keep the whole snapshot in memory until the next search for garbage.
        names = Names(partial(_taken, self._snapshot, self._objects))
        if self._settings.provisioner is Setting.TRIGGER_POD:
            return TriggerPodProvisioner(self._snapshot.environment, names, plan)
        templates = {each.name for each in self._objects if isinstance(each, PodTemplate)}
        return BatchProvisioner(self._snapshot.environment, names, plan, templates)

    def plan(self) -> tuple[DemandReport, ...]:
        """The reports for all GPUDemands."""
        waiting, blocked = self._waiting, self._blocked()
        self._all_types_blocked = {
            request.name
            for request in waiting
            if request.outstanding
            and all((kind, request.node_request.node_pool) in blocked for kind in request.node_request.instance_types)
        }
        requested = [node for request in waiting for node in request.requested_nodes]
        registered = [(node, request.node_request.scheduler) for request in waiting for node in request.registered]
        self.demand = plan = self._planner.plan(
            self._snapshot,
            requested,
            blocked,
            self._failed_claims,
            registered,
            room=self._room,
            namespaces=self._namespaces,
            now=self._now,
        )
        provisioner = self._choose(plan)
        self._builder.warnings += sorted({warning for demand in plan.demands for warning in demand.warnings})
        if (until := parse_time(plan.next_deadline)) is not None:
            self._builder.deadlines.append(until)
        self._reserve(waiting)
        kept = self._keep(waiting, provisioner) if provisioner is not None else []
        created = self._request_nodes(provisioner) if provisioner is not None else []
        serving = {node.name: request.name for request in kept for node in request.requested_nodes}
        awaits = {request.name: self._awaited(request) for request in kept if request.outstanding}
        states = [self._state(demand, kept, awaits, serving, created) for demand in plan.demands]
        more = [(node.gpus, 1) for node in plan.nodes]
        more += [(request.node_request.gpus, request.outstanding - request.claimed) for request in kept]
        room = self._room.minus(sum(gpus * nodes for gpus, nodes in more), sum(nodes for _, nodes in more))
        taken = {name for demand in plan.demands for name in demand.on_nodes}
        taken |= {claim.name for request in kept for claim in self._claims.of(request)}
        headroom = keep_headroom(self._snapshot, self._objects, room, taken, self._builder)
        self._withdraw({each.name for each in kept} | headroom)
        self._add_deadlines(kept, states)
        return self._reports(states)

    def _reserve(self, waiting: Sequence[CapacityRequest]) -> None:
        if self._settings.provisioner in (Setting.TRIGGER_POD, Setting.CAPACITY_BUFFER):
            self.reserved, until = reserved_nodes(self._new_nodes, self._snapshot, waiting, self.demand, self._now)
            self._builder.deadlines += [until] if until is not None else []

    def _evaluate(self, request: CapacityRequest) -> CapacityRequest:
        """The request without its failed nodes; the other nodes stay expected."""
        nodes, lost = self._claims.lost(request)
        self._lost += lost
        wanted = request.node_request
        failing = [
            RequestFailure(f"NodeClaim {claim.name}: {claim.message}", wanted.node_pool, claim.instance_types)
            for claim in lost
        ]
        left = request.without(nodes, (claim.name for claim in lost))
        claims = self._claims.launching(request)
        unregistered = [claim.name for claim in claims if not claim.initializing]
        initializing = len(claims) - len(unregistered)
        if left.outstanding > initializing and (why := self._expired(left)):
            failing.append(RequestFailure(why, wanted.node_pool, wanted.instance_types))
            left = left.without(left.outstanding - initializing, unregistered)
        if failing:
            self._failing[request.name] = failing
        return replace(left, claimed=min(left.outstanding, len(claims)))

    def _expired(self, request: CapacityRequest) -> str:
        """Why nodes that have not registered are no longer expected; empty while they are."""
        refused = request.obj.says("Failed") if isinstance(request.obj, ProvisioningRequest) else ""
        if refused:
            return f"ProvisioningRequest {request.name}: {refused}"
        deadline = request.deadline(self._settings.deadline_seconds)
        late = deadline is not None and self._now > deadline
        return f"no further node registered within {self._settings.deadline_seconds} s" if late else ""

    def _failure_records(self) -> Mapping[str, FailureRecord]:
        records = {}
        for name in self._known.keys() | self._by_demand.keys():
            requests = self._by_demand.get(name, ())
            failing = [failure for request in requests for failure in self._failing.get(request.name, ())]
            record = FailureRecord.of(self._known.get(name, GPUDemandStatus()), self._now).resumed(
                self._settings, self._now
            )
            registered = [request.attempts[name] for request in requests if request.name in self._new_nodes]
            failed = [request.attempts[name] for request in requests if request.name in self._failing]
            records[name] = record.succeeded(registered).failed(failing, failed, self._settings, self._now)
        return records

    def _blocked(self) -> set[tuple[str, str]]:
        """(instance type, NodePool) pairs to skip, of all demands: what fails for one demand fails for all."""
        return {(each.instance_type, each.node_pool) for record in self._records.values() for each in record.blocked}

    def _keep(self, waiting: Sequence[CapacityRequest], provisioner: DemandProvisioner) -> list[CapacityRequest]:
        """Requests that are still needed: nodes are outstanding, or registered and not all of their pods are bound."""
        busy = {name for demand in self.demand.demands for name in demand.on_nodes}
        kept = []
        for request in waiting:
            needed = sum(node.name in self.demand.needed for node in request.requested_nodes)
            registered = self._new_nodes.get(request.name, ())
            reserved = self.reserved.intersection(registered)
            new = [node for node in registered if node not in self.reserved]
            if needed or busy.intersection(request.registered):
                kept.append(request)
                provisioner.keep(request.with_reserved(reserved), needed + len(reserved), new, self._builder)
            else:
                provisioner.signal_ready(request, new, self._builder)
        return kept

    def _request_nodes(self, provisioner: DemandProvisioner) -> list[tuple[ObjectKey, tuple[str, ...]]]:
        """Requests the new nodes, but those of which every demand is paused; the objects with their demands."""
        records = {demand.name: self._records.get(demand.name, FailureRecord()) for demand in self.demand.demands}
        able = {name for name, record in records.items() if record.paused_until(self._settings, self._now) is None}
        nodes = [node for node in self.demand.nodes if not able.isdisjoint(node.demands)]
        attempts = {name: record.failures + 1 for name, record in records.items()}
        return provisioner.request_nodes(nodes, attempts, self._builder)

    def _awaited(self, request: CapacityRequest) -> Awaited:
        claims = self._claims.launching(request)
        due = self._claims.deadlines(request)
        end = request.deadline(self._settings.deadline_seconds)
        if end is not None and request.outstanding > sum(each.initializing for each in claims):
            due.append(end)
        its_claims = [each for each in claims if not self._answers.of_another(each.name, request)]
        without = self._claims.without_capacity(request)
        return awaited(request, self._answers.to(request), its_claims, without, due)

    def _state(
        self,
        demand: Demand,
        kept: Sequence[CapacityRequest],
        awaits: Mapping[str, Awaited],
        serving: Mapping[str, str],
        created: Sequence[tuple[ObjectKey, tuple[str, ...]]],
    ) -> DemandState:
        """`awaits` is by the name of the request; `serving` are the names of the `kept` requests, by requested node."""
        record = self._records.get(demand.name, FailureRecord())
        requests = {each.name: each for each in self._by_demand.get(demand.name, ())}
        claims = [claim for request in requests.values() for claim in self._claims.of(request)]
        claims += [claim for claim in self._lost if claim.request in requests]
        serves = requests.keys() | {serving[node] for node in demand.on_requested if node in serving}
        return DemandState(
            demand,
            tuple(request for request in kept if request.name in serves),
            tuple(waiting for name, waiting in awaits.items() if name in serves),
            tuple(key for key, demands in created if demand.name in demands),
            record,
            record.paused_until(self._settings, self._now),
            tuple(failure for name in requests for failure in self._failing.get(name, ())),
            tuple(claims),
        )

    def _withdraw(self, kept: Collection[str]) -> None:
        for obj in self._objects:
            if obj.name not in kept and SHARD in obj.labels:
                why = self._deletion_reason(obj.name)
                self._builder.delete(obj, why)
                if signalled(obj) == SignalReason.UNSCHEDULABLE and not obj.deleting:
                    self._builder.signal(key_of(obj), obj.uid, SignalReason.WITHDRAWN, why)

    def _deletion_reason(self, name: str) -> str:
        if name in self._failing:
            return self._failing[name][0].message
        if self._settings.provisioner is Setting.NONE:
            return "spec.demand.provisioner of the Environment changed"
        if name in self._all_types_blocked:
            return "cancelled: its instance types recently failed to launch and are skipped for now"
        return "no pending pod needs it"

    def _add_deadlines(self, kept: Sequence[CapacityRequest], states: Sequence[DemandState]) -> None:
        """Adds the times at which requests expire, or skipped instance types may be requested again."""
        deadlines = self._builder.deadlines
        ends = (request.deadline(self._settings.deadline_seconds) for request in kept if request.outstanding)
        deadlines += [end for end in ends if end is not None and end >= self._now]
        deadlines += [due for request in kept if request.outstanding for due in self._claims.deadlines(request)]
        for state in states:
            if state.unmet:
                deadlines += [
                    until for blocked in state.record.blocked if (until := parse_time(blocked.until)) is not None
                ]
                deadlines += [state.paused] if state.paused is not None else []

    def _reports(self, states: Sequence[DemandState]) -> tuple[DemandReport, ...]:
        reports = {
            state.demand.name: report(
                state, self._known.get(state.demand.name), self._settings, self._now, known=self._results
            )
            for state in states
        }
        ended = {name: completed(status, self._now) for name, status in self._known.items() if name not in reports}
        kept = self._retained(ended)
        for name, status in ended.items():
            reports[name] = DemandReport(name=name, status=status if name in kept else None)
        return tuple(reports[name] for name in sorted(reports))

    def _retained(self, ended: Mapping[str, GPUDemandStatus]) -> Collection[str]:
        """The completed demands that are kept: those with instance types to skip, then the newest."""
        retention = timedelta(seconds=self._settings.retention_seconds)
        since = {name: time for name, status in ended.items() if (time := parse_time(status.since)) is not None}
        kept = [name for name, time in since.items() if self._now < time + retention]
        return set(
            nlargest(MOST_COMPLETED, kept, key=lambda name: (bool(self._records[name].blocked), since[name], name))
        )


def _taken(snapshot: Snapshot, objs: Iterable[RequestObject]) -> set[str]:
    """Names in use, also those that a node has in its label: a trigger pod of this name would select that node. Reads
    every pod, so it is called only when a name is needed."""
    namespace = snapshot.environment.spec.demand.namespace
    pods = (pod.name for pod in snapshot.pods if pod.namespace == namespace)
    labelled = (each.labels.get(REQUEST, "") for each in (*snapshot.nodes, *snapshot.node_claims))
    return {*(each.name for each in objs), *pods, *labelled}
