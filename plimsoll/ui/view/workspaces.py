"""Rows of Workspaces: the current verdict, nodes, and progress."""

from collections.abc import Iterable
from dataclasses import dataclass

from plimsoll.model import Snapshot, Verdict
from plimsoll.model.api import ConditionType, Workspace
from plimsoll.model.meta import condition_of
from plimsoll.ui.view.filter import Filter


@dataclass(frozen=True, slots=True)
class WorkspaceRow:
    namespace: str
    name: str
    accepted: bool
    reason: str
    message: str
    """The verdict's message; for a refusal with what to change."""
    deleting: bool
    instance_type: str
    queue: str
    replicas: int | None
    nodes: tuple[str, ...]
    target: int | None
    """Nodes that it needs; None if not known."""
    conditions: tuple[tuple[str, str, str], ...]
    """(type, status, reason) of each condition, those of `ConditionType` in order; status `-` without one."""
    pending: tuple[str, ...]
    """Steps that its NodeClaims wait for."""


def workspace_rows(snapshot: Snapshot, verdicts: Iterable[Verdict], wanted: Filter) -> tuple[WorkspaceRow, ...]:
    """By namespace and name; Workspaces that cannot be read too."""
    by_key = {each.key: each for each in snapshot.workspaces}
    rows = (_row(verdict, by_key.get((verdict.workspace.namespace, verdict.workspace.name))) for verdict in verdicts)
    return tuple(
        row
        for row in rows
        if wanted.matches(namespaces=(row.namespace,), queues=(row.queue,), types=(row.instance_type,))
        and wanted.matches_text(f"{row.namespace}/{row.name}", row.reason, row.instance_type, row.queue)
    )


def _row(verdict: Verdict, workspace: Workspace | None) -> WorkspaceRow:
    status = workspace.status if workspace is not None else None
    conditions = status.conditions if status is not None else ()
    found = ((kind.value, condition_of(conditions, kind)) for kind in ConditionType)
    return WorkspaceRow(
        namespace=verdict.workspace.namespace,
        name=verdict.workspace.name,
        accepted=verdict.accepted,
        reason=verdict.reason.value,
        message=verdict.message,
        deleting=workspace.deleting if workspace is not None else False,
        instance_type=(workspace.type_in_use or "") if workspace is not None else "",
        queue=(workspace.spec.queue or "") if workspace is not None else "",
        replicas=workspace.replicas if workspace is not None else None,
        nodes=status.worker_nodes if status is not None else (),
        target=verdict.target_node_count,
        conditions=tuple(
            (kind.removesuffix("Ready"), each.status if each is not None else "-", each.reason if each else "")
            for kind, each in found
        ),
        pending=tuple(
            f"{each.name} waits for {each.step}" + (f": {each.message}" if each.message else "")
            for each in (status.provisioning.pending if status is not None else ())
        ),
    )
