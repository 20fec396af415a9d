"""The Reporter: statuses of Workspaces and of the Environment, and events."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final, NamedTuple

import structlog

from plimsoll.connection import Connection, ConnectionFailedError, RequestError
from plimsoll.model.environment import Environment
from plimsoll.model.plan import ObjectKey, Plan
from plimsoll.model.snapshot import Snapshot
from plimsoll.model.workspace import WorkspaceRef, WorkspaceStatus
from plimsoll.plan.conditions import differs, environment_status, refused_status, status_of
from plimsoll.plan.holdings import Holdings
from plimsoll.report.events import all_events
from plimsoll.report.recorder import Recorder
from plimsoll.report.statuses import TIMEOUT, StatusWrite, StatusWriter, path_of

WORKSPACE: Final = "Workspace"

log = structlog.get_logger(__name__)

Key = tuple[str, str]
"""(namespace, name)"""


class _Known(NamedTuple):
    """The newest status of a Workspace, and the resource version of the Workspace with it."""

    version: str
    status: WorkspaceStatus


class _Written(NamedTuple):
    """What was written, and the version of the Workspace that the snapshot held then."""

    seen: str
    known: _Known


class Reporter:
    """Says what became of each Workspace. What cannot be written is logged, and tried again at the next report."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._recorder = Recorder(connection)
        self._writer = StatusWriter(connection)
        self._written: dict[str, _Written] = {}
        """By UID: until the watch shows a write, it stands in for what the snapshot holds."""

    def report(
        self, snapshot: Snapshot, plan: Plan, now: datetime, failures: Mapping[ObjectKey, object] | None = None
    ) -> None:
        """Writes the statuses that differ from the snapshot's, and an event for each change.

        The plan's operations count as done but for those that `failures` names, with what went wrong. Returns when
        the statuses are written; events follow.
        """
        known = self._known(snapshot)
        # Before the statuses are written: the events tell the difference to what they were.
        before = {key: each.status for key, each in known.items()}
        self._recorder.record(all_events(plan, before, failures or {}), now)
        holdings = Holdings(snapshot, plan.verdicts)
        seen = {workspace.uid: workspace.resource_version for workspace in snapshot.workspaces}
        writes = [*_environment(snapshot.environment, holdings), *_workspaces(snapshot, plan, holdings, now, known)]
        for write, version in zip(writes, self._writer.write(writes), strict=True):
            if version and write.kind == WORKSPACE:
                status = WorkspaceStatus.model_validate(write.status)
                self._written[write.uid] = _Written(seen.get(write.uid, ""), _Known(version, status))

    def close(self) -> None:
        """Returns when the events are written."""
        self._writer.close()
        self._recorder.close()

    def _known(self, snapshot: Snapshot) -> Mapping[Key, _Known]:
        alive = {each.uid for each in snapshot.workspaces} | {each.ref.uid for each in snapshot.invalid_workspaces}
        self._written = {uid: written for uid, written in self._written.items() if uid in alive}
        statuses: dict[Key, _Known] = {}
        for workspace in snapshot.workspaces:
            written = self._written.get(workspace.uid)
            if written is not None and written.seen == workspace.resource_version:
                statuses[workspace.key] = written.known
            else:
                statuses[workspace.key] = _Known(workspace.resource_version, workspace.status)
        for invalid in snapshot.invalid_workspaces:
            written = self._written.get(invalid.ref.uid)
            if written is None:
                # The snapshot does not hold what cannot be read, and there is little of it.
                found = self._read(invalid.ref)
                if found is None:
                    continue
                written = self._written[invalid.ref.uid] = _Written("", found)
            statuses[(invalid.ref.namespace, invalid.ref.name)] = written.known
        return statuses

    def _read(self, ref: WorkspaceRef) -> _Known | None:
        """The status of a Workspace whose other fields do not fit; None where it cannot be had."""
        try:
            raw = self._connection.request("GET", path_of(WORKSPACE, ref.namespace, ref.name), timeout=TIMEOUT)
        except (ConnectionFailedError, RequestError) as error:
            log.warning("status is not known", workspace=str(ref), error=error.message)
            return None
        version = str((raw.get("metadata") or {}).get("resourceVersion") or "")
        try:
            return _Known(version, WorkspaceStatus.model_validate(raw.get("status") or {}))
        except ValueError:
            return _Known(version, WorkspaceStatus())


def _workspaces(
    snapshot: Snapshot, plan: Plan, holdings: Holdings, now: datetime, known: Mapping[Key, _Known]
) -> Iterator[StatusWrite]:
    workspaces = {workspace.key: workspace for workspace in snapshot.workspaces}
    for verdict in plan.verdicts:
        ref = verdict.workspace
        before = known.get((ref.namespace, ref.name))
        if before is None:
            continue
        workspace = workspaces.get((ref.namespace, ref.name))
        if workspace is None:
            status = refused_status(verdict, None, now, before.status)
        else:
            status = status_of(workspace, verdict, holdings, now, before.status)
        if differs(before.status, status):
            yield StatusWrite(WORKSPACE, ref.namespace, ref.name, ref.uid, before.version, status)


def _environment(environment: Environment, holdings: Holdings) -> Iterator[StatusWrite]:
    """Nothing where the defaults stand in for an Environment: those have no UID."""
    status = environment_status(holdings)
    held = {"nodeClaims": environment.status.node_claims, "workloads": environment.status.workloads}
    if environment.uid and status != held:
        yield StatusWrite("Environment", "", environment.name, environment.uid, environment.resource_version, status)
