"""The Reporter: statuses of Workspaces by server-side apply, and events."""

import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any, Final, NamedTuple

import structlog

from plimsoll.connection import APPLY_PATCH, Connection, ConnectionFailedError, RequestError
from plimsoll.model.labels import API_VERSION, FIELD_MANAGER
from plimsoll.model.plan import ObjectKey, Plan
from plimsoll.model.snapshot import Snapshot
from plimsoll.model.verdict import Verdict
from plimsoll.model.workspace import Workspace, WorkspaceRef, WorkspaceStatus
from plimsoll.plan.conditions import differs, refused_status, status_of
from plimsoll.plan.holdings import Holdings
from plimsoll.report.events import all_events
from plimsoll.report.recorder import Recorder

WRITERS: Final = 8
TIMEOUT: Final = 10.0

log = structlog.get_logger(__name__)


class _Written(NamedTuple):
    """A status that was written, and the version of the Workspace that was known then."""

    seen: str
    status: WorkspaceStatus


class _Write(NamedTuple):
    workspace: WorkspaceRef
    seen: str
    status: dict[str, Any]


class Reporter:
    """Says what became of each Workspace. What cannot be written is logged, and tried again at the next report."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._recorder = Recorder(connection)
        self._writers = ThreadPoolExecutor(max_workers=WRITERS, thread_name_prefix="status")
        self._written: dict[str, _Written] = {}
        """By UID: until the watch shows a write, it stands in for what the snapshot holds."""
        self._unreachable = threading.Event()

    def report(
        self, snapshot: Snapshot, plan: Plan, now: datetime, failures: Mapping[ObjectKey, object] | None = None
    ) -> None:
        """Writes the statuses that differ from the snapshot's, and an event for each change.

        The plan's operations count as done but for those that `failures` names, with what went wrong. Returns when
        the statuses are written; events follow.
        """
        previous = self._previous(snapshot)
        # Before the statuses: the events tell the difference to what they were.
        self._recorder.record(all_events(plan, previous, failures or {}), now)
        self._unreachable.clear()
        writes = list(self._differing(snapshot, plan, now, previous))
        for write, status in zip(writes, self._writers.map(self._apply, writes), strict=True):
            if status is not None:
                self._written[write.workspace.uid] = _Written(write.seen, status)

    def close(self) -> None:
        """Returns when the events are written."""
        self._writers.shutdown(wait=True)
        self._recorder.close()

    def _previous(self, snapshot: Snapshot) -> dict[tuple[str, str], WorkspaceStatus]:
        """The newest known status of each Workspace, by namespace and name."""
        alive = {each.uid for each in snapshot.workspaces} | {each.ref.uid for each in snapshot.invalid_workspaces}
        self._written = {uid: written for uid, written in self._written.items() if uid in alive}
        statuses: dict[tuple[str, str], WorkspaceStatus] = {}
        for workspace in snapshot.workspaces:
            written = self._written.get(workspace.uid)
            if written is not None and written.seen == workspace.resource_version:
                statuses[workspace.key] = written.status
            else:
                statuses[workspace.key] = workspace.status
        for invalid in snapshot.invalid_workspaces:
            written = self._written.get(invalid.ref.uid)
            if written is None:
                # The snapshot does not hold what cannot be read, and there is little of it.
                found = self._get(invalid.ref)
                if found is None:
                    continue
                written = self._written[invalid.ref.uid] = _Written("", found)
            statuses[(invalid.ref.namespace, invalid.ref.name)] = written.status
        return statuses

    def _differing(
        self,
        snapshot: Snapshot,
        plan: Plan,
        now: datetime,
        previous: Mapping[tuple[str, str], WorkspaceStatus],
    ) -> Iterator[_Write]:
        workspaces = {workspace.key: workspace for workspace in snapshot.workspaces}
        holdings = Holdings(snapshot, plan.verdicts)
        for verdict in plan.verdicts:
            key = (verdict.workspace.namespace, verdict.workspace.name)
            if key not in previous:
                continue
            workspace = workspaces.get(key)
            status = _status(workspace, verdict, holdings, now, previous[key])
            if differs(previous[key], status):
                seen = workspace.resource_version if workspace is not None else ""
                yield _Write(verdict.workspace, seen, status)

    def _apply(self, write: _Write) -> WorkspaceStatus | None:
        """What the cluster holds now; None where it was not written."""
        if self._unreachable.is_set():
            return None
        ref = write.workspace
        body = {
            "apiVersion": API_VERSION,
            "kind": "Workspace",
            # The UID makes the apiserver refuse where another Workspace took the name.
            "metadata": {"namespace": ref.namespace, "name": ref.name, "uid": ref.uid},
            "status": write.status,
        }
        query = {"fieldManager": FIELD_MANAGER, "force": "true"}
        try:
            self._connection.request(
                "PATCH", f"{_path(ref)}/status", body, query=query, content_type=APPLY_PATCH, timeout=TIMEOUT
            )
        except ConnectionFailedError as error:
            if not self._unreachable.is_set():
                log.warning("statuses are not written", error=error.message)
            self._unreachable.set()
            return None
        except RequestError as error:
            if error.code not in (404, 409):  # gone meanwhile, or another one of that name
                log.warning("status is not written", workspace=str(ref), error=error.message)
            return None
        return WorkspaceStatus.model_validate(write.status)

    def _get(self, ref: WorkspaceRef) -> WorkspaceStatus | None:
        """The status of a Workspace whose other fields do not fit; None where it cannot be had."""
        try:
            raw = self._connection.request("GET", _path(ref), timeout=TIMEOUT)
            return WorkspaceStatus.model_validate(raw.get("status") or {})
        except (ConnectionFailedError, RequestError) as error:
            log.warning("status is not known", workspace=str(ref), error=error.message)
            return None
        except ValueError:
            return WorkspaceStatus()


def _status(
    workspace: Workspace | None, verdict: Verdict, holdings: Holdings, now: datetime, previous: WorkspaceStatus
) -> dict[str, Any]:
    if workspace is None:
        return refused_status(verdict, None, now, previous)
    return status_of(workspace, verdict, holdings, now, previous)


def _path(ref: WorkspaceRef) -> str:
    return f"/apis/{API_VERSION}/namespaces/{ref.namespace}/workspaces/{ref.name}"
