"""Records of applied deltas, for the Environment's status."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Literal

from plimsoll.model import Change, Deletion, ObjectKey, Plan
from plimsoll.model.api import MAX_CHANGES, MAX_NAMES, MAX_RECORDS, DeltaChange, DeltaRecord, WorkspaceRef
from plimsoll.plan.owned import format_time

_LONGEST: Final = 200
"""Characters of a reason: the status is read on every list of Environments."""

Operation = Literal["create", "update", "delete"]


class DeltaHistory:
    """The newest records, newest first; a restarted controller continues those of the cluster."""

    def __init__(self) -> None:
        self._records: tuple[DeltaRecord, ...] | None = None

    def with_delta(
        self,
        known: tuple[DeltaRecord, ...],
        plan: Plan,
        failures: Mapping[ObjectKey, object],
        stacks: Mapping[str, float],
        now: datetime,
    ) -> tuple[DeltaRecord, ...]:
        """The records with that of a Plan that was applied; `known` are those of the cluster, `stacks` the seconds of
        each update. Without updates, nothing is added."""
        if self._records is None:
            self._records = known
        if stacks and not plan.empty:
            self._records = (delta_record(plan, failures, stacks, now), *self._records)[:MAX_RECORDS]
        return self._records


def recorded(records: tuple[DeltaRecord, ...]) -> dict[str, Any]:
    """The field of the status; none without records."""
    return {"deltas": [record.model_dump(mode="json", exclude_defaults=True) for record in records]} if records else {}


def delta_record(
    plan: Plan, failures: Mapping[ObjectKey, object], stacks: Mapping[str, float], now: datetime
) -> DeltaRecord:
    operations: list[tuple[Operation, Change | Deletion]] = [
        *(("create", creation) for creation in plan.creations),
        *(("update", update) for update in plan.updates),
        *(("delete", deletion) for deletion in plan.deletions),
    ]
    groups: dict[tuple[Operation, str, str, str, str], list[str]] = {}
    for operation, change in operations:
        owner = f"Workspace {change.owner}" if isinstance(change.owner, WorkspaceRef) else str(change.owner)
        failure = str(failures[change.key])[:_LONGEST] if change.key in failures else ""
        groups.setdefault((operation, change.key.kind, owner, change.reason[:_LONGEST], failure), []).append(
            change.key.name
        )
    changes = [
        DeltaChange(
            operation=operation,
            kind=kind,
            owner=owner,
            count=len(names),
            names=tuple(names[:MAX_NAMES]),
            reason=reason,
            failure=failure,
        )
        for (operation, kind, owner, reason, failure), names in groups.items()
    ]
    return DeltaRecord(
        time=format_time(now),
        seconds=round(max(stacks.values()), 3),
        stacks=tuple(sorted(stacks)),
        changes=tuple(changes[:MAX_CHANGES]),
        more=sum(change.count for change in changes[MAX_CHANGES:]),
    )
