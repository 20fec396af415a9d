"""One round of asking for what demand lacks: what has come, what has failed, what is not needed, what is new."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from plimsoll.model import SignalReason, Snapshot
from plimsoll.model.api import DemandProvisioner as Setting
from plimsoll.model.api import DemandReport, GPUDemandStatus
from plimsoll.model.karpenter import ProvisioningRequest
from plimsoll.plan.demand import Demand, DemandPlanner
from plimsoll.plan.owned import Delta, key_of, parse_time, signalled
from plimsoll.plan.pools import Room
from plimsoll.plan.requests.batches import BatchProvisioner
from plimsoll.plan.requests.capacity_request import CapacityRequest, CapacityRequests, registered_since
from plimsoll.plan.requests.claims import ClaimMonitor, FollowedClaim
from plimsoll.plan.requests.headroom import keep_headroom
from plimsoll.plan.requests.provisioner import DemandProvisioner, Names
from plimsoll.plan.requests.record import FailureRecord, RequestFailure
from plimsoll.plan.requests.report import DemandState, completed, report
from plimsoll.plan.requests.reserved_nodes import reserved_nodes
from plimsoll.plan.requests.triggers import TriggerPodProvisioner


class RequestRound:
    """One round over one snapshot. `delta` is given what it comes to."""

    def __init__(
        self,
        snapshot: Snapshot,
        planner: DemandPlanner,
        delta: Delta,
        now: datetime,
        *,
        room: Room,
        requests: CapacityRequests,
    ) -> None:
        """`room` is what the Environment's limits leave for demand, `asked` the objects that request nodes."""
        self._snapshot = snapshot
        self._settings = snapshot.environment.spec.demand
        self._planner = planner
        self._delta = delta
        self._now = now
        self._room = room
        self._things = requests.things
        self._known = {each.name: each.status for each in snapshot.gpu_demands}
        self._provisioner = self._choose()
        found, makes = requests.found, self._provisioner.makes if self._provisioner is not None else None
        own = [each for each in found if makes is not None and makes(each.thing)]
        self._new_nodes = requests.registered if len(own) == len(found) else registered_since(own, snapshot)
        self._requests = [each.with_registered(self._new_nodes.get(each.name, ())) for each in own]
        self._claims = ClaimMonitor(snapshot, self._requests, now)
        self._failing: dict[str, list[RequestFailure]] = {}
        """What was asked for and will not come, by the name of what asked for it."""
        self._lost: list[FollowedClaim] = []
        self._waiting = [left for each in self._requests if (left := self._judge(each)).outstanding or left.registered]
        self._records = self._failure_records()
        self._moved: set[str] = set()
        """What waits for instance types of which none is asked for now."""
        self.demands: tuple[Demand, ...] = ()
        """What is lacking, once `plan` has been called."""
        self.reserved: frozenset[str] = frozenset()
        """Nodes that are there, and that no pod is let go to yet."""

    def _choose(self) -> DemandProvisioner | None:
        names = Names(self._taken)
        match self._settings.provisioner:
            case Setting.TRIGGER_POD:
                return TriggerPodProvisioner(self._snapshot.environment, names)
            case Setting.CAPACITY_BUFFER | Setting.PROVISIONING_REQUEST:
                return BatchProvisioner(self._snapshot.environment, names)
            case _:
                return None

    def _taken(self) -> set[str]:
        """Names that are no longer free; every pod is looked at, so only where one is needed."""
        pods = (pod.name for pod in self._snapshot.pods if pod.namespace == self._settings.namespace)
        return {*(each.name for each in self._things), *pods}

    def plan(self) -> tuple[DemandReport, ...]:
        """What every GPUDemand is to say."""
        waiting, blocked = self._waiting, self._blocked()
        self._moved = {
            each.name
            for each in waiting
            if each.outstanding
            and all((kind, each.node_request.node_pool) in blocked for kind in each.node_request.instance_types)
        }
        requested_nodes = [requested_node for each in waiting for requested_node in each.requested_nodes]
        registered = {node: each.demand for each in waiting for node in each.registered}
        self.demands = demands = self._planner.demands(
            self._snapshot, requested_nodes, blocked, self._failed_claims(), registered, room=self._room
        )
        self._delta.warnings += sorted({warning for demand in demands for warning in demand.warnings})
        self._reserve(waiting)
        kept = self._keep(waiting, demands)
        states = [
            self._request_nodes(demand, [each for each in kept if each.demand == demand.name]) for demand in demands
        ]
        headroom = keep_headroom(self._snapshot.environment, self._things, self._delta)
        self._withdraw({each.name for each in kept} | headroom)
        self._add_deadlines(kept, states)
        return self._reports(states)

    def _reserve(self, waiting: Sequence[CapacityRequest]) -> None:
        if self._settings.provisioner in (Setting.TRIGGER_POD, Setting.CAPACITY_BUFFER):
            self.reserved, until = reserved_nodes(self._new_nodes, self._snapshot, waiting, self.demands, self._now)
            self._delta.deadlines += [until] if until is not None else []

    def _judge(self, request: CapacityRequest) -> CapacityRequest:
        """Without the nodes that will not come: what goes wrong with one leaves the others awaited."""
        lost = self._claims.lost(request)
        self._lost += lost.claims
        failing = [
            RequestFailure(
                f"NodeClaim {each.name}: {each.message}",
                request.node_request.node_pool,
                each.instance_types,
                request.attempt,
            )
            for each in lost.claims
        ]
        left = request.without(lost.nodes, (each.name for each in lost.claims))
        if left.outstanding and (said := self._expired(left)):
            failing.append(
                RequestFailure(
                    said, request.node_request.node_pool, request.node_request.instance_types, request.attempt
                )
            )
            left = left.without(left.outstanding)
        if failing:
            self._failing[request.name] = failing
        return replace(left, claimed=min(left.outstanding, self._claims.launching(request)))

    def _expired(self, request: CapacityRequest) -> str:
        """Why none of the nodes that are still to come is awaited any more; empty: they are."""
        refused = request.thing.says("Failed") if isinstance(request.thing, ProvisioningRequest) else ""
        if refused:
            return f"ProvisioningRequest {request.name}: {refused}"
        late = self._now > request.deadline(self._settings.deadline_seconds)
        return f"nothing more came within {self._settings.deadline_seconds} s" if late else ""

    def _failure_records(self) -> Mapping[str, FailureRecord]:
        names = {*self._known, *(each.demand for each in self._requests)}
        records = {}
        for name in names:
            own = [each for each in self._requests if each.demand == name]
            failing = [failure for each in own for failure in self._failing.get(each.name, ())]
            record = FailureRecord.of(self._known.get(name, GPUDemandStatus()), self._now).resumed(
                self._settings, self._now
            )
            registered = [each.attempt for each in own if each.name in self._new_nodes]
            records[name] = record.succeeded(registered).failed(failing, self._settings, self._now)
        return records

    def _blocked(self) -> set[tuple[str, str]]:
        """(instance type, NodePool): of every demand, for what does not come for one comes for none."""
        return {(each.instance_type, each.node_pool) for record in self._records.values() for each in record.blocked}

    def _failed_claims(self) -> set[str]:
        return {claim.name for claim in self._lost} | {name for each in self._requests for name in each.lost}

    def _keep(self, waiting: Sequence[CapacityRequest], demands: Sequence[Demand]) -> list[CapacityRequest]:
        """What is still needed: nodes are awaited, or have come and pods are still to be bound to them."""
        wanted = {name for demand in demands for name in demand.on_promises}
        busy = {name for demand in demands for name in demand.on_nodes}
        kept = []
        for each in waiting:
            needed = sum(requested_node.name in wanted for requested_node in each.requested_nodes)
            registered = self._new_nodes.get(each.name, ())
            reserved, new = (
                self.reserved.intersection(registered),
                [node for node in registered if node not in self.reserved],
            )
            if self._provisioner is None:
                continue
            if needed or busy.intersection(each.registered):
                kept.append(each)
                self._provisioner.keep(each.with_reserved(reserved), needed + len(reserved), new, self._delta)
            else:
                self._provisioner.signal_ready(each, new, self._delta)
        return kept

    def _request_nodes(self, demand: Demand, kept: Sequence[CapacityRequest]) -> DemandState:
        record = self._records.get(demand.name, FailureRecord())
        paused = record.paused_until(self._settings, self._now)
        created = 0
        if self._provisioner is not None and demand.nodes and paused is None:
            created = self._provisioner.request_nodes(demand, demand.nodes, record.failures + 1, self._delta)
        own = [each for each in self._requests if each.demand == demand.name]
        failing = tuple(failure for each in own for failure in self._failing.get(each.name, ()))
        claims = [claim for each in own for claim in self._claims.of(each)]
        claims += [claim for claim in self._lost if claim.request in {each.name for each in own}]
        return DemandState(demand, tuple(kept), created, record, paused, failing, tuple(claims))

    def _withdraw(self, kept: Collection[str]) -> None:
        for thing in self._things:
            if thing.name not in kept:
                why = self._deletion_reason(thing.name)
                self._delta.delete(thing, why)
                if signalled(thing) == SignalReason.UNSCHEDULABLE and not thing.deleting:
                    self._delta.signal(key_of(thing), thing.uid, SignalReason.WITHDRAWN, why)

    def _deletion_reason(self, name: str) -> str:
        if name in self._failing:
            return self._failing[name][0].message
        if self._provisioner is None:
            return "the Environment's demand provisioner is another one now"
        if name in self._moved:
            return "what was asked for beside it did not come: its instance types are not asked for now"
        return "no pod waits for it any more"

    def _add_deadlines(self, kept: Sequence[CapacityRequest], states: Sequence[DemandState]) -> None:
        """When a deadline passes, or types may be asked for again."""
        deadlines = self._delta.deadlines
        deadlines += [each.deadline(self._settings.deadline_seconds) for each in kept if each.outstanding]
        deadlines += [look for each in kept if each.outstanding for look in self._claims.deadlines(each)]
        for state in states:
            if state.unmet:
                deadlines += [until for each in state.record.blocked if (until := parse_time(each.until)) is not None]
                deadlines += [state.paused] if state.paused is not None else []

    def _reports(self, states: Sequence[DemandState]) -> tuple[DemandReport, ...]:
        found = {
            each.demand.name: report(each, self._known.get(each.demand.name), self._settings, self._delta, self._now)
            for each in states
        }
        retention = timedelta(seconds=self._settings.retention_seconds)
        for name, status in self._known.items():
            if name not in found:
                ended = completed(status, self._now)
                since = parse_time(ended.since)
                gone = since is None or self._now >= since + retention
                found[name] = DemandReport(name=name, status=None if gone else ended)
        return tuple(found[name] for name in sorted(found))
