"""Metrics for Prometheus: Plans, operations, capacity requests. docs/reference/metrics.md lists them."""

from collections import Counter as Tally
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from typing import Final

from prometheus_client import Counter, Gauge, Histogram

from plimsoll.cluster.ledger import GpuAccount
from plimsoll.labels import NODEPOOL, WORKSPACE
from plimsoll.model import REQUEST_KINDS, DemandRef, ObjectKey, Plan, SignalReason, Snapshot
from plimsoll.model.api import ClaimStage, DemandPhase, GPUDemandStatus
from plimsoll.model.cluster import Pod
from plimsoll.model.karpenter import NodeClaim
from plimsoll.packing import GPU_MILLI
from plimsoll.plan.owned import parse_time, request_objects, signalled
from plimsoll.report.capacity_metrics import CapacityMetrics
from plimsoll.report.labelled import LabelledRegistry
from plimsoll.report.watch_metrics import WatchMetrics

STATE_ERRORS: Final = ("BackendUnreachableError", "ClusterUnreachableError", "LockedError", "StateFolderFullError")
"""Error classes of rounds in which nothing could be applied. There may be others."""
_NODES: Final = (10, 30, 60, 90, 120, 180, 240, 300, 450, 600, 900, 1800)
"""Seconds until a node is ready."""
_WORK: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
"""Seconds of planning and applying."""


class Metrics:
    """Counters since the start of the process; gauges of the last round while the Lease is held.

    For one thread, in addition to scrapes.
    """

    def __init__(self) -> None:
        self.registry = LabelledRegistry()
        self._triggers_created = Counter(
            "plimsoll_triggers_created", "Trigger pods, CapacityBuffers and ProvisioningRequests created",
            ["kind"], registry=self.registry,
        )  # fmt: skip
        self._triggers_active = Gauge(
            "plimsoll_triggers_active", "Objects of these kinds that still request capacity", ["kind"],
            registry=self.registry,
        )  # fmt: skip
        self._oldest_trigger = Gauge(
            "plimsoll_triggers_oldest_pending_seconds", "Age of the oldest trigger pod whose capacity is not ready",
            registry=self.registry,
        )  # fmt: skip
        self._scaling = Histogram(
            "plimsoll_scaling_duration_seconds", "From the creation of a trigger pod until the GPUs of its node "
            "are allocatable",
            buckets=_NODES, registry=self.registry,
        )  # fmt: skip
        self._provision = Histogram(
            "plimsoll_nodeclaim_provision_duration_seconds", "From the creation of a NodeClaim until it is Ready",
            ["node_pool"], buckets=_NODES, registry=self.registry,
        )  # fmt: skip
        self._claims_finished = Counter(
            "plimsoll_nodeclaims_finished", "NodeClaims that became Ready, failed, or were withdrawn before",
            ["result"], registry=self.registry,
        )  # fmt: skip
        self._success = Gauge(
            "plimsoll_scaling_success_rate", "Share of Ready NodeClaims among those Ready or failed; 1 before "
            "the first",
            registry=self.registry,
        )  # fmt: skip
        self._plan_seconds = Histogram(
            "plimsoll_plan_seconds", "Validating and planning one round", buckets=_WORK, registry=self.registry
        )
        self._apply_seconds = Histogram(
            "plimsoll_apply_seconds", "Applying a Plan to one stack, from the start until all operations are confirmed",
            buckets=_WORK, registry=self.registry,
        )  # fmt: skip
        self._operations = Counter(
            "plimsoll_operations", "Operations of Plans", ["operation", "result"], registry=self.registry
        )
        self._verdicts = Gauge("plimsoll_verdicts", "Workspaces by their verdict", ["reason"], registry=self.registry)
        self._demands = Gauge("plimsoll_demands", "GPUDemands by their phase", ["phase"], registry=self.registry)
        self._demand_pods = Gauge("plimsoll_demand_pods", "Pods of all GPUDemands", registry=self.registry)
        self._demand_gpus = Gauge("plimsoll_demand_gpus", "New GPUs that all GPUDemands need", registry=self.registry)
        self._demand_least = Gauge(
            "plimsoll_demand_least_gpus", "Lower bound of the new GPUs that all GPUDemands need", registry=self.registry
        )
        self._gate_removals = Counter(
            "plimsoll_capacity_gates_lifted", "Capacity gates removed from pods", registry=self.registry
        )
        self._lease_held = Gauge(
            "plimsoll_lease_held", "1 while this process holds the Lease of its cluster, else 0", registry=self.registry
        )
        self._rounds_failed = Counter(
            "plimsoll_rounds_failed", "Rounds that failed as a whole and were tried again", ["error"],
            registry=self.registry,
        )  # fmt: skip
        self._capacity = CapacityMetrics()
        self.registry.register(self._capacity)
        self._watches = WatchMetrics()
        self.registry.register(self._watches)
        self._last_plan = Gauge("plimsoll_last_plan_timestamp_seconds", "Time of the last Plan", registry=self.registry)
        self._unfinished: dict[str, NodeClaim] | None = None
        """NodeClaims that are not Ready yet, by UID; None before the first snapshot, which counts nothing."""
        self._seen: tuple[object, ...] = ()
        """NodeClaims and their Events of the last snapshot."""
        self._counted: set[str] = set()
        """UIDs of NodeClaims that are already counted."""
        self._provisioned: set[str] = set()
        """Label values of `_provision`."""
        self._pending_triggers: dict[str, Pod] | None = None
        self._deleted: set[str] = set()
        """UIDs of NodeClaims that Plans deleted."""
        self._finished: Tally[str] = Tally()
        self._success.set(1)
        self._begin()

    def _begin(self) -> None:
        """Creates every series at the start: Prometheus sees no increase in one that begins with its first event."""
        for kind in REQUEST_KINDS:
            self._triggers_created.labels(kind)
        for result in ("ready", "failed", "withdrawn"):
            self._claims_finished.labels(result)
        for operation in ("create", "update", "delete"):
            for result in ("done", "failed"):
                self._operations.labels(operation, result)

        for phase in DemandPhase:
            self._demands.labels(phase.value)
        for error in STATE_ERRORS:
            self._rounds_failed.labels(error)

    def of(self, **labels: str) -> None:
        """Labels that every series carries from now on: `environment`, `cluster`."""
        self.registry.labels = {**self.registry.labels, **labels}

    def holds_lease(self, held: bool) -> None:
        self._lease_held.set(held)
        if not held:
            self._forget()

    def watches(self, ages: Callable[[], Mapping[str, float]]) -> None:
        """`ages` returns the seconds since each watched kind was last heard of."""
        self._watches.of(ages)

    def round_failed(self, error: str) -> None:
        """`error` is the class of the error, such as BackendUnreachableError."""
        self._rounds_failed.labels(error).inc()

    def seen(self, snapshot: Snapshot, now: datetime, accounts: Collection[GpuAccount] = ()) -> None:
        """Counts the changes since the last snapshot; `accounts` are those of its nodes with GPUs."""
        self._capacity.seen(snapshot, accounts)
        self._count_claims(snapshot, now)
        for pool in self._provisioned - {"", *(each.name for each in snapshot.node_pools)}:
            self._provision.remove(pool)
            self._provisioned.remove(pool)
        self._count_triggers(snapshot, now)

    def planned(self, plan: Plan, seconds: float, now: datetime) -> None:
        """Records a Plan and its duration in seconds."""
        self._capacity.planned(plan)
        self._plan_seconds.observe(seconds)
        self._last_plan.set(now.timestamp())
        self._show(plan)
        self._count_failed(report.status for report in plan.demands if report.status is not None)

    def _show(self, plan: Plan) -> None:
        """Sets the gauges that show one Plan."""
        statuses = [report.status for report in plan.demands if report.status is not None]
        self._demand_pods.set(sum(status.pod_count for status in statuses))
        self._demand_gpus.set(-(-sum(status.gpu_milli for status in statuses) // GPU_MILLI))
        self._demand_least.set(plan.demand_least_gpus)
        phases = Tally(status.phase for status in statuses)
        for phase in DemandPhase:
            self._demands.labels(phase.value).set(phases[phase])
        self._verdicts.clear()
        for reason, number in Tally(verdict.reason.value for verdict in plan.verdicts).items():
            self._verdicts.labels(reason).set(number)

    def _forget(self) -> None:
        """Resets the gauges to their values at the start, because another process now reports on the cluster.

        What changes until the next snapshot is not counted either.
        """
        self._capacity.forget()
        self._unfinished = self._pending_triggers = None
        self._finished.clear()
        self._success.set(1)
        self._triggers_active.clear()
        self._oldest_trigger.set(0)
        self._last_plan.set(0)
        self._show(Plan())

    def applied(
        self,
        plan: Plan,
        *,
        created: Iterable[ObjectKey] = (),
        updated: Iterable[ObjectKey] = (),
        deleted: Iterable[ObjectKey] = (),
        failed: Iterable[ObjectKey] = (),
        gates_removed: int = 0,
        seconds: Iterable[float] = (),
    ) -> None:
        """Records the results of a Plan; `seconds` are the durations of its stacks."""
        self._gate_removals.inc(gates_removed)
        made = set(created)
        for operation, keys in (("create", made), ("update", set(updated)), ("delete", set(deleted))):
            self._operations.labels(operation, "done").inc(len(keys))
        for creation in plan.creations:
            if creation.key in made and isinstance(creation.owner, DemandRef) and creation.key.kind in REQUEST_KINDS:
                self._triggers_created.labels(creation.key.kind).inc()
        operation_of = {each.key: "create" for each in plan.creations}
        operation_of |= {each.key: "update" for each in plan.updates} | {each.key: "delete" for each in plan.deletions}
        for key in failed:
            if key in operation_of:
                self._operations.labels(operation_of[key], "failed").inc()
        self._deleted |= {each.uid for each in plan.deletions if each.key.kind == "NodeClaim"}
        for taken in seconds:
            self._apply_seconds.observe(taken)

    def _count_claims(self, snapshot: Snapshot, now: datetime) -> None:
        """Counts each NodeClaim once: by its result, or by the Event of one that was deleted before it was observed."""
        seen = (snapshot.node_claims, snapshot.claim_events)
        if self._unfinished is not None and seen == self._seen:
            return
        self._seen = seen
        existing = {claim.uid: claim for claim in snapshot.node_claims}
        ready = {uid for uid, claim in existing.items() if claim.ready}
        sold_out = {event.claim_uid for event in snapshot.claim_events if event.claim_uid}
        unfinished = {uid: claim for uid, claim in existing.items() if uid not in ready and not claim.deleting}
        before, self._unfinished = self._unfinished, unfinished
        if before is None:
            self._counted = ready | sold_out
            return
        for uid in ready - self._counted:
            claim = existing[uid]
            # Each Workspace may have a NodePool of its own, with a name of its own: one series for all of these.
            pool = "" if WORKSPACE in claim.labels else claim.labels.get(NODEPOOL, "")
            self._provision.labels(pool).observe(_seconds_until_ready(claim))
            self._provisioned.add(pool)
            self._finish("ready", uid)
        for uid in sold_out - self._counted:
            self._finish("failed", uid)
        deadline = snapshot.environment.spec.node_claims.launch_deadline_seconds
        for uid in before.keys() - unfinished.keys() - self._counted:
            early = uid in self._deleted and _age(before[uid].creation_timestamp, now) < deadline
            self._finish("withdrawn" if early else "failed", uid)
        self._counted &= existing.keys() | sold_out
        self._deleted &= existing.keys()

    def _count_failed(self, statuses: Iterable[GPUDemandStatus]) -> None:
        """Counts NodeClaims that a GPUDemand reports as failed: an autoscaler may never delete them."""
        names = {claim.name for status in statuses for claim in status.node_claims if claim.stage is ClaimStage.FAILED}
        if names:
            for uid, claim in (self._unfinished or {}).items():
                if claim.name in names and uid not in self._counted:
                    self._finish("failed", uid)

    def _finish(self, result: str, uid: str) -> None:
        self._counted.add(uid)
        self._claims_finished.labels(result).inc()
        self._finished[result] += 1
        tried = self._finished["ready"] + self._finished["failed"]
        if tried:
            self._success.set(self._finished["ready"] / tried)

    def _count_triggers(self, snapshot: Snapshot, now: datetime) -> None:
        objs = [obj for obj in request_objects(snapshot) if not obj.deleting]
        active = Tally(type(obj).__name__ for obj in objs)
        for kind in REQUEST_KINDS:
            self._triggers_active.labels(kind).set(active[kind])
        requesting = (obj for obj in objs if signalled(obj) != SignalReason.WITHDRAWN)
        pods = {obj.uid: obj for obj in requesting if isinstance(obj, Pod)}
        pending = {uid: pod for uid, pod in pods.items() if signalled(pod) != SignalReason.CAPACITY_READY}
        self._oldest_trigger.set(max((_age(pod.creation_timestamp, now) for pod in pending.values()), default=0.0))
        before, self._pending_triggers = self._pending_triggers, pending
        for uid in () if before is None else before.keys() & (pods.keys() - pending.keys()):
            self._scaling.observe(_age(pods[uid].creation_timestamp, now))


def _age(created: str, now: datetime) -> float:
    """Seconds; 0 if the creation time is not known."""
    since = parse_time(created)
    return 0.0 if since is None else max(0.0, (now - since).total_seconds())


def _seconds_until_ready(claim: NodeClaim) -> float:
    condition = claim.condition("Ready")
    until = parse_time(condition.last_transition_time) if condition is not None else None
    return 0.0 if until is None else _age(claim.creation_timestamp, until)
