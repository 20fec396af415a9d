"""Kubernetes events (events.k8s.io/v1) about Workspaces and demands: what changed, as values."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final, Literal, NamedTuple

from plimsoll.model.condition import condition_of
from plimsoll.model.labels import API_VERSION, GROUP
from plimsoll.model.owner import Owner
from plimsoll.model.plan import ObjectKey, Plan
from plimsoll.model.verdict import Reason, Verdict
from plimsoll.model.workspace import ConditionType, WorkspaceRef, WorkspaceStatus
from plimsoll.plan.shortlist import counted, shortlist

NOTE_LENGTH: Final = 1024
"""Bytes that the apiserver takes."""
CONTROLLER: Final = f"{GROUP}/loop"
_REFUSALS: Final = frozenset(reason.value for reason in Reason if reason is not Reason.ACCEPTED)


class Event(NamedTuple):
    """Something that happened to a Workspace, or to a demand."""

    regarding: Owner
    type: Literal["Normal", "Warning"]
    reason: str
    action: str
    note: str

    @property
    def name(self) -> str:
        """The same for the same event, so that a repetition counts up one object instead of making another."""
        digest = hashlib.sha256("\0".join((self.uid, self.type, self.reason, self.note)).encode())
        return f"{self.regarding.name[:230].rstrip('.-')}.{digest.hexdigest()[:16]}"

    @property
    def uid(self) -> str:
        """Of a Workspace, of which there may have been another one of the name."""
        return self.regarding.uid if isinstance(self.regarding, WorkspaceRef) else ""

    @property
    def namespace(self) -> str:
        """Events of cluster-scoped objects are in `default`."""
        return self.regarding.namespace or "default"

    def manifest(self, now: datetime, instance: str) -> dict[str, Any]:
        """The object to create; `instance` names this process."""
        return {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": self.name, "namespace": self.namespace},
            "eventTime": micro_time(now),
            "type": self.type,
            "reason": self.reason,
            "action": self.action,
            "note": self.note.encode()[:NOTE_LENGTH].decode(errors="ignore"),
            "regarding": {
                "apiVersion": API_VERSION,
                "kind": "Workspace" if isinstance(self.regarding, WorkspaceRef) else self.regarding.kind,
                "namespace": self.regarding.namespace,
                "name": self.regarding.name,
                "uid": self.uid,
            },
            "reportingController": CONTROLLER,
            "reportingInstance": instance[:128],
        }


def micro_time(now: datetime) -> str:
    """metav1.MicroTime."""
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def verdict_event(verdict: Verdict, previous: WorkspaceStatus) -> Event | None:
    """What the verdict changes against the status the Workspace had; None where it says nothing new."""
    before = condition_of(previous.conditions, ConditionType.RESOURCE_READY)
    refused_for = before.reason if before is not None and before.reason in _REFUSALS else None
    if verdict.accepted:
        if before is not None and refused_for is None:
            return None
        return Event(verdict.workspace, "Normal", "Accepted", "Validate", verdict.message)
    if refused_for == verdict.reason.value:
        return None
    return Event(verdict.workspace, "Warning", "Refused", "Validate", f"{verdict.reason.value}: {verdict.message}")


def capacity_events(plan: Plan, failures: Mapping[ObjectKey, object]) -> Iterator[Event]:
    """One event for each Workspace and kind of what was created or deleted, one for each failure."""
    done: dict[tuple[Owner, str, str], list[str]] = {}
    for action, operations in (("Create", plan.creations), ("Update", plan.updates), ("Delete", plan.deletions)):
        for operation in operations:
            key = operation.key
            if key in failures:
                note = f"{action} of {key} failed and is tried again: {failures[key]}"
                yield Event(operation.owner, "Warning", f"Capacity{action}Failed", action, note)
            else:
                done.setdefault((operation.owner, action, key.kind), []).append(key.name)
    for (owner, action, kind), names in done.items():
        note = f"{action.lower()}d {counted(len(names), kind)}: {shortlist(names)}"
        yield Event(owner, "Normal", f"Capacity{action}d", action, note)


def all_events(
    plan: Plan, statuses: Mapping[tuple[str, str], WorkspaceStatus], failures: Mapping[ObjectKey, object]
) -> Iterable[Event]:
    """Events of one round; `statuses` are those from before it, by namespace and name."""
    for verdict in plan.verdicts:
        previous = statuses.get((verdict.workspace.namespace, verdict.workspace.name))
        if previous is not None and (event := verdict_event(verdict, previous)) is not None:
            yield event
    yield from capacity_events(plan, failures)
