"""The Reporter: statuses of Workspaces and of the Environment, finalizers, and events."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

import structlog

from plimsoll.kube import Connection, ConnectionFailedError, RequestError
from plimsoll.model import ObjectKey, Plan, Snapshot, Verdict, Withheld
from plimsoll.model.api import Environment, WorkspaceRef, WorkspaceStatus
from plimsoll.plan.view import ClusterView
from plimsoll.plan.workspaces import AppliedClaims, WorkspaceNodes
from plimsoll.report.capacity_history import CapacityHistory, history_field
from plimsoll.report.claim_owners import ClaimOwnerWriter
from plimsoll.report.conditions import environment_status, in_use
from plimsoll.report.deltas import DeltaHistory, recorded
from plimsoll.report.demands import KIND as DEMAND
from plimsoll.report.demands import DemandWriter
from plimsoll.report.events import (
    Event,
    EventReason,
    PodEvents,
    capacity_events,
    combined,
    demand_events,
    withheld_event,
)
from plimsoll.report.finalized import finalizing
from plimsoll.report.finalizers import FinalizerWriter
from plimsoll.report.models import ModelWriter
from plimsoll.report.node_profiles import KIND as NODE_PROFILE
from plimsoll.report.node_profiles import ProfileWriter
from plimsoll.report.pod_remedies import PodRemedies
from plimsoll.report.recorder import Recorder
from plimsoll.report.statuses import TIMEOUT, StatusWrite, StatusWriter, path_of
from plimsoll.report.workspace_report import report_on

WORKSPACE: Final = "Workspace"

log = structlog.get_logger(__name__)

Key = tuple[str, str]
"""(namespace, name)"""


class _Known(NamedTuple):
    """The newest status of a Workspace that is known, its resource version, and those that do not show it."""

    version: str
    status: WorkspaceStatus
    past: frozenset[str] = frozenset()


class Reporter:
    """Reports on each Workspace. Failed writes are logged, and repeated with the next report."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._recorder = Recorder(connection)
        self._writer = StatusWriter(connection)
        self._finalizers = FinalizerWriter(connection, self._writer.release)
        self._demands = DemandWriter(connection)
        self._models = ModelWriter(connection)
        self._profiles = ProfileWriter(connection)
        self._claims = ClaimOwnerWriter(connection)
        self._withheld: frozenset[Withheld] = frozenset()
        """Already reported."""
        self._history = DeltaHistory()
        self._capacity = CapacityHistory()
        self._pod_events = PodEvents()
        self._remedies = PodRemedies(self._recorder.record)
        self._unreadable: dict[str, _Known] = {}
        """By UID: Workspaces with invalid fields, of which the snapshot has only the name."""

    def report(
        self,
        observed: Snapshot | ClusterView,
        plan: Plan,
        now: datetime,
        failures: Mapping[ObjectKey, object] | None = None,
        stacks: Mapping[str, float] | None = None,
        *,
        queues_in_use: Collection[str] = (),
    ) -> None:
        """Writes the statuses that differ from the snapshot's, and an event for each change.

        The Plan's operations count as applied, except for those in `failures`, with their errors. `stacks` are the
        seconds of each stack update that applied them; `queues_in_use` are the Queues that may not be deleted. Returns
        at once: background threads write, and are done after `flush`, `close`, or at the end of the process.
        """
        view = ClusterView.of(observed)
        snapshot = view.observed
        known = self._known(snapshot)
        demands = self._demands.newest({demand.name: demand.status for demand in snapshot.gpu_demands})
        if DEMAND not in snapshot.missing_kinds:
            self._demands.write(plan.demands, demands, {each.name: each.uid for each in snapshot.gpu_demands})
        if NODE_PROFILE not in snapshot.missing_kinds:
            self._profiles.write(snapshot, now)
        self._claims.write(snapshot, plan.demands)
        holdings = WorkspaceNodes(view, plan.verdicts, AppliedClaims(plan, failures or {}))
        verdicts = {
            key: verdict
            for verdict in plan.verdicts
            if (key := (verdict.workspace.namespace, verdict.workspace.name)) in known
        }
        previous = {key: known[key].status for key in verdicts}
        reports = report_on(verdicts, previous, view, holdings, now)
        withheld = [obj for obj in plan.withheld if obj not in self._withheld]
        for obj in withheld:
            log.warning(
                "object withheld by policy", object=str(obj.key), rules=[finding.rule for finding in obj.findings]
            )
        self._withheld = frozenset(plan.withheld)
        events = (
            *_verdict_events(plan, (report.judged for report in reports.values())),
            *(event for report in reports.values() for event in report.provisioned),
            *capacity_events(plan, failures or {}),
            *demand_events(plan.demands, demands),
            *map(withheld_event, withheld),
        )
        self._recorder.record(combined(events, snapshot.environment), now)
        self._remedies.record(self._pod_events.of(plan.demands), snapshot, now)
        deltas = self._history.with_delta(snapshot.environment.status.deltas, plan, failures or {}, stacks or {}, now)
        applied = bool(stacks) and not plan.empty
        points = self._capacity.with_point(snapshot.environment.status.history, snapshot, now, applied=applied)
        status = environment_status(holdings, queues_in_use) | recorded(deltas) | history_field(points)
        status |= _observed(snapshot.environment.generation)
        self._writer.write(self._environment(snapshot.environment, status))
        changes = self._finalizers.due(finalizing(view, plan, failures or {}, now))
        news = ((key, status) for key, (status, *_) in reports.items() if status is not None)
        writes = (_write(verdicts[key], known[key], status) for key, status in news)
        self._writer.write(writes, deferred={change.ref.uid for change in changes})
        self._finalizers.write(changes)
        if snapshot.environment.spec.model_hub is not None:
            self._models.write(snapshot.hub_models)

    def flush(self) -> None:
        """Returns when the statuses and finalizers reported so far are written, or have failed."""
        self._finalizers.flush()
        self._writer.flush()
        self._demands.flush()
        self._models.flush()
        self._profiles.flush()
        self._claims.flush()

    def close(self) -> None:
        """Returns when everything is written, including events; nothing may be reported afterwards."""
        self._finalizers.close()
        self._writer.close()
        self._demands.close()
        self._models.close()
        self._profiles.close()
        self._claims.close()
        self._remedies.close()
        self._recorder.close()

    def _known(self, snapshot: Snapshot) -> Mapping[Key, _Known]:
        invalid = {workspace.ref.uid: workspace.ref for workspace in snapshot.invalid_workspaces}
        existing = {workspace.uid for workspace in snapshot.workspaces} | invalid.keys() | {snapshot.environment.uid}
        self._writer.forget_all_but(existing)
        self._unreadable = {uid: known for uid, known in self._unreadable.items() if uid in invalid}
        for uid, ref in invalid.items():
            # It is small, and read only once.
            if uid not in self._unreadable and (spec := self._read(ref)) is not None:
                self._unreadable[uid] = spec
        known = {
            workspace.key: (workspace.uid, _Known(workspace.resource_version, workspace.status))
            for workspace in snapshot.workspaces
        }
        known |= {(invalid[uid].namespace, invalid[uid].name): (uid, read) for uid, read in self._unreadable.items()}
        # A written status that the watch has not delivered yet is newer than the snapshot.
        newer = self._writer.newer({uid: seen.version for uid, seen in known.values()})
        return {key: _written(newer[uid]) if uid in newer else seen for key, (uid, seen) in known.items()}

    def _environment(self, environment: Environment, status: dict[str, Any]) -> Iterator[StatusWrite]:
        """Nothing without an Environment object, whose defaults have no UID."""
        before = environment.status
        known: dict[str, Any] = {
            "nodeClaims": before.node_claims,
            "nodePools": before.node_pools,
            "workloads": before.workloads,
            **in_use(before.queues_in_use),
        }
        known |= recorded(before.deltas) | history_field(before.history) | _observed(before.observed_generation)
        version, past = environment.resource_version, frozenset[str]()
        written = self._writer.newer({environment.uid: version}).get(environment.uid)
        if written is not None:
            known, version, past = written.status, written.version, written.past
        if environment.uid and status != known:
            past |= {version}
            yield StatusWrite("Environment", "", environment.name, environment.uid, version, past, status)

    def _read(self, ref: WorkspaceRef) -> _Known | None:
        """The status of a Workspace with invalid fields; None if it cannot be read."""
        try:
            raw = self._connection.request("GET", path_of(WORKSPACE, ref.namespace, ref.name), timeout=TIMEOUT)
        except (ConnectionFailedError, RequestError) as error:
            log.warning("cannot read status", workspace=str(ref), error=error.message)
            return None
        version = str((raw.get("metadata") or {}).get("resourceVersion") or "")
        try:
            status = WorkspaceStatus.model_validate(raw.get("status") or {})
        except ValueError:
            status = WorkspaceStatus()
        return _Known(version, status)


def _written(write: StatusWrite) -> _Known:
    return _Known(write.version, WorkspaceStatus.model_validate(write.status), write.past)


def _write(verdict: Verdict, before: _Known, status: dict[str, Any]) -> StatusWrite:
    ref, past = verdict.workspace, before.past | {before.version}
    return StatusWrite(WORKSPACE, ref.namespace, ref.name, ref.uid, before.version, past, status)


def _verdict_events(plan: Plan, events: Iterable[Event | None]) -> Iterator[Event]:
    """Without those on accepted Workspaces for which objects are created: the events on these objects say it."""
    provided = {creation.owner for creation in plan.creations}
    for event in events:
        if event is not None and not (event.reason == EventReason.ACCEPTED and event.regarding in provided):
            yield event


def _observed(generation: int | None) -> dict[str, Any]:
    return {} if generation is None else {"observedGeneration": generation}
