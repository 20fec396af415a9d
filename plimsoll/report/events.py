"""Kubernetes Events (events.k8s.io/v1) about Workspaces, GPUDemands and the Environment, as values."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from itertools import chain
from typing import Any, Final, Literal, NamedTuple

from plimsoll.labels import API_VERSION, GROUP
from plimsoll.model import DemandRef, ObjectKey, Owner, Plan, PodRef, Reason, Verdict, Withheld
from plimsoll.model.api import (
    ConditionType,
    DemandPhase,
    DemandReport,
    Environment,
    GPUDemandStatus,
    PodNote,
    PodState,
    WorkspaceRef,
    WorkspaceStatus,
)
from plimsoll.model.meta import condition_of
from plimsoll.plan.owned import Failed
from plimsoll.report.conditions import ConditionReason
from plimsoll.text import counted, shortlist

NOTE_LENGTH: Final = 1024
"""Maximum bytes that the apiserver accepts."""
CONTROLLER: Final = f"{GROUP}/loop"
CROWD: Final = 40
"""From this number on, events of one round with the same reason become one event."""
UNMET: Final = (DemandPhase.REFUSED, DemandPhase.EXPIRED, DemandPhase.FAILED, DemandPhase.QUOTA_BLOCKED)
PHASE_NOTES: Final = {
    DemandPhase.PENDING: "no capacity is requested yet",
    DemandPhase.QUOTA_BLOCKED: "the queue would not admit the pods",
    DemandPhase.SCHEDULED: "capacity is requested",
    DemandPhase.REFUSED: "the autoscaler refuses the requested capacity",
    DemandPhase.LAUNCHING: "the nodes are being launched",
    DemandPhase.REGISTERING: "the nodes are about to join the cluster",
    DemandPhase.INITIALIZING: "the nodes have joined the cluster, without allocatable GPUs",
    DemandPhase.NODE_READY: "the GPUs are allocatable",
    DemandPhase.COMPLETED: "no pod is pending",
    DemandPhase.EXPIRED: "the requested capacity did not become ready before the deadline",
    DemandPhase.FAILED: "the request for capacity failed",
}
_CHANGING: Final = re.compile(r"\b[0-9a-fA-F-]{8,}\b|\d+")
"""What differs in the text of an error that is the same: request IDs, times, resource versions."""
_REFUSALS: Final = frozenset(reason.value for reason in Reason if reason is not Reason.ACCEPTED)


class EventReason(StrEnum):
    """The closed list of event reasons; those of provisioning are the reasons of the condition NodeClaimsReady."""

    ACCEPTED = "Accepted"
    REFUSED = "Refused"
    NODE_CLAIM_LATE = Failed.LATE.value
    NODE_CLAIM_LOST = Failed.LOST.value
    INSUFFICIENT_CAPACITY = Failed.INSUFFICIENT_CAPACITY.value
    SPOT_INTERRUPTED = ConditionReason.SPOT_INTERRUPTED.value
    CAPACITY_CREATED = "CapacityCreated"
    CAPACITY_UPDATED = "CapacityUpdated"
    CAPACITY_DELETED = "CapacityDeleted"
    CAPACITY_CREATE_FAILED = "CapacityCreateFailed"
    CAPACITY_UPDATE_FAILED = "CapacityUpdateFailed"
    CAPACITY_DELETE_FAILED = "CapacityDeleteFailed"
    DEMAND_PENDING = "DemandPending"
    DEMAND_QUOTA_BLOCKED = "DemandQuotaBlocked"
    DEMAND_SCHEDULED = "DemandScheduled"
    DEMAND_REFUSED = "DemandRefused"
    DEMAND_LAUNCHING = "DemandLaunching"
    DEMAND_REGISTERING = "DemandRegistering"
    DEMAND_INITIALIZING = "DemandInitializing"
    DEMAND_NODE_READY = "DemandNodeReady"
    DEMAND_COMPLETED = "DemandCompleted"
    DEMAND_EXPIRED = "DemandExpired"
    DEMAND_FAILED = "DemandFailed"
    POLICY_VIOLATION = "PolicyViolation"
    POD_REQUESTED = PodState.REQUESTED.value
    POD_REFUSED = PodState.REFUSED.value
    POD_KEPT_OUT = PodState.KEPT_OUT.value
    POD_NOT_REQUESTED = PodState.NOT_REQUESTED.value
    POD_FITS_NOTHING = PodState.FITS_NOTHING.value


class Event(NamedTuple):
    """Something that happened to a Workspace, to a GPUDemand, or in the Environment."""

    regarding: Owner | PodRef
    type: Literal["Normal", "Warning"]
    reason: str
    action: str
    note: str
    series: str = ""
    """What the events of one series have in common; empty: the note."""

    @property
    def name(self) -> str:
        """The same name for the same event, so that a repetition increments the count of one object."""
        parts = (self.regarding.uid, self.type, self.reason, self.series or self.note)
        digest = hashlib.sha256("\0".join(parts).encode())
        return f"{self.regarding.name[:230].rstrip('.-')}.{digest.hexdigest()[:16]}"

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
                "apiVersion": "v1" if isinstance(self.regarding, PodRef) else API_VERSION,
                "kind": "Workspace" if isinstance(self.regarding, WorkspaceRef) else self.regarding.kind,
                "namespace": self.regarding.namespace,
                "name": self.regarding.name,
                "uid": self.regarding.uid,
            },
            "reportingController": CONTROLLER,
            "reportingInstance": instance[:128],
        }


def micro_time(now: datetime) -> str:
    """metav1.MicroTime."""
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def verdict_event(verdict: Verdict, previous: WorkspaceStatus) -> Event | None:
    """The event for a verdict that differs from the previous status; None if it does not."""
    before = condition_of(previous.conditions, ConditionType.RESOURCE_READY)
    refused_for = before.reason if before is not None and before.reason in _REFUSALS else None
    if verdict.accepted:
        if before is not None and refused_for is None:
            return None
        return Event(verdict.workspace, "Normal", EventReason.ACCEPTED, "Validate", verdict.message)
    if refused_for == verdict.reason.value:
        return None
    note = f"{verdict.reason.value}: {verdict.message}"
    return Event(verdict.workspace, "Warning", EventReason.REFUSED, "Validate", note)


def provisioning_event(ref: WorkspaceRef, previous: WorkspaceStatus, status: WorkspaceStatus) -> Event | None:
    """The event for a NodeClaim that is late or lost, with the provider's message and the time of the next attempt.

    None if the previous status already reported it.
    """
    before, after = previous.provisioning, status.provisioning
    known = (before.failures, before.claim, before.reason)
    if not after.failures or known == (after.failures, after.claim, after.reason):
        return None
    claims = condition_of(status.conditions, ConditionType.NODE_CLAIMS_READY)
    note = claims.message if claims is not None and claims.reason == after.reason else after.message
    return Event(ref, "Warning", after.reason, "Provision", note)


def interruption_event(ref: WorkspaceRef, previous: WorkspaceStatus, status: WorkspaceStatus) -> Event | None:
    """The event for spot nodes that are interrupted; None if there are none, or the previous status reported it."""
    before, after = (condition_of(each.conditions, ConditionType.NODE_CLAIMS_READY) for each in (previous, status))
    if after is None or after.reason != ConditionReason.SPOT_INTERRUPTED:
        return None
    if before is not None and before.reason == after.reason:
        return None
    return Event(ref, "Warning", EventReason.SPOT_INTERRUPTED, "Provision", after.message)


def capacity_events(plan: Plan, failures: Mapping[ObjectKey, object]) -> Iterator[Event]:
    """One event for each owner, kind and reason of the applied operations, and one for each failed operation."""
    done: dict[tuple[Owner, str, str, str], list[str]] = {}
    for action, operations in (("Create", plan.creations), ("Update", plan.updates), ("Delete", plan.deletions)):
        for operation in operations:
            key = operation.key
            if key in failures:
                note = f"failed to {action.lower()} {key}, retrying: {failures[key]}"
                reason = EventReason(f"Capacity{action}Failed")
                series = f"{key}: {_CHANGING.sub('', str(failures[key]))}"
                yield Event(operation.owner, "Warning", reason, action, note, series)
            else:
                done.setdefault((operation.owner, action, key.kind, operation.reason), []).append(key.name)
    for (owner, action, kind, why), names in done.items():
        note = f"{action.lower()}d {counted(len(names), kind)} ({why}): {shortlist(names)}"
        yield Event(owner, "Normal", EventReason(f"Capacity{action}d"), action, note)


def demand_events(reports: Iterable[DemandReport], statuses: Mapping[str, GPUDemandStatus]) -> Iterator[Event]:
    """One event for each GPUDemand whose phase changed; `statuses` are the previous statuses, by name."""
    for report in reports:
        before = statuses.get(report.name)
        if report.status is None or (before is not None and before.phase is report.status.phase):
            continue
        phase = report.status.phase
        note = "; ".join(report.status.reasons) or PHASE_NOTES[phase]
        note = f"{counted(report.status.pod_count, 'pod')}, {counted(report.status.gpus, 'new GPU')}: {note}"
        kind: Literal["Normal", "Warning"] = "Warning" if phase in UNMET else "Normal"
        yield Event(DemandRef(name=report.name), kind, EventReason(f"Demand{phase}"), "Provision", note)


class PodEvents:
    """Events on waiting pods: one for each pod and state, until the pod waits no more. Not thread-safe."""

    def __init__(self) -> None:
        self._said: dict[str, PodState] = {}
        """By UID."""
        self._notes: tuple[tuple[PodNote, ...], ...] = ()
        """Those of the last round."""

    def of(self, reports: Iterable[DemandReport]) -> Iterator[Event]:
        """The events of a round. Each pod of it is remembered, every other one forgotten."""
        notes = tuple(report.notes for report in reports)
        if notes == self._notes:
            return
        self._notes = notes
        before, self._said = self._said, {}
        for note in chain.from_iterable(notes):
            self._said[note.uid] = note.state
            if before.get(note.uid) is not note.state:
                regarding = PodRef(namespace=note.namespace, name=note.name, uid=note.uid)
                kind: Literal["Normal", "Warning"] = "Normal" if note.state is PodState.REQUESTED else "Warning"
                yield Event(regarding, kind, EventReason(note.state.value), "Provision", note.note)


def withheld_event(withheld: Withheld) -> Event:
    """The event for an object that breaks a policy rule, with the rule and the remedy."""
    return Event(withheld.owner, "Warning", EventReason.POLICY_VIOLATION, "Apply", str(withheld))


def combined(events: Iterable[Event], environment: Environment) -> Iterator[Event]:
    """The events; many Normal events with the same reason become one event about the Environment.

    Warnings are never combined: each says what to change. Without an Environment object nothing is combined.
    """
    fine: dict[tuple[str, str], list[Event]] = {}
    for event in events:
        if event.type == "Warning" or not environment.uid:
            yield event
        else:
            fine.setdefault((event.reason, event.action), []).append(event)
    for (reason, action), alike in fine.items():
        if len(alike) < CROWD:
            yield from alike
        else:
            names = sorted({str(event.regarding) for event in alike})
            note = f"for {len(names)} objects: {shortlist(names)}; for example {alike[0].note}"
            regarding = DemandRef(kind="Environment", name=environment.name, uid=environment.uid)
            yield Event(regarding, "Normal", reason, action, note)
