"""Progress: the state of the operations of an update, from the engine's event log."""

import time
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, Final

from plimsoll.apply.engine.program import cluster_urn, provider_urn, stack_urn
from plimsoll.apply.errors import ApplyError, Failure, FailureKind, object_failure
from plimsoll.apply.objects import is_being_deleted

EngineEvent = Mapping[str, Any]
"""One line of the engine's event log, see apitype.EngineEvent."""
_HARMLESS: Final = frozenset({"same", "read", "refresh"})
"""Steps of the engine that change no object."""
_SETTING_UP: Final = frozenset({"create", "update"})
"""Steps that are also allowed for resources without an object: the stack, its provider and its cluster."""


class Operation(StrEnum):
    """An operation on one resource, in the engine's terms."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"


class Progress:
    """The progress of one update of a stack. Not thread-safe: the caller holds a lock.

    `expected` are the operations by URN; empty until they are known.
    """

    def __init__(self, stack: str) -> None:
        self.expected: Mapping[str, Operation] = {}
        self.done: dict[str, Mapping[str, Any]] = {}
        """Outputs by URN: each expected operation that succeeded."""
        self.failed: set[str] = set()
        """URNs of the resources whose operation failed, or that a mandatory policy refused."""
        self.undeleted: set[str] = set()
        """URNs of the expected deletions whose object stays."""
        self.first_operation_at: float | None = None
        self.last_operation_at: float | None = None
        self.error: ApplyError | None = None
        """Why the update failed or was ended; None while it runs, and after a success."""
        self._messages: dict[str, list[str]] = {}
        self._violations: dict[str, list[str]] = {}
        """Messages of mandatory policies, by the URN of the resource that violates them."""
        self._setting_up = {stack_urn(stack), provider_urn(stack), cluster_urn(stack)}

    @property
    def confirmed(self) -> bool:
        """Whether every expected operation has succeeded, or is a deletion whose object stays."""
        return self.expected.keys() <= self.done.keys() | self.undeleted

    def process_deletions(self, began: float, undeleted: Iterable[str]) -> None:
        """The cluster has accepted the expected deletions from `began` on, except these URNs. The engine only records
        them, after it has compared every other resource of the stack."""
        deletions = {urn for urn, operation in self.expected.items() if operation is Operation.DELETE}
        if deletions:
            self.undeleted = deletions.intersection(undeleted)
            self.done |= {urn: {} for urn in deletions - self.undeleted}
            self.first_operation_at = self.first_operation_at or began
            self.last_operation_at = time.monotonic()

    def process_event(self, event: EngineEvent) -> str | None:
        """Processes an event. Returns the operation that it starts, in words, if that is not an expected one."""
        if "resourcePreEvent" in event:
            return self._begin(event["resourcePreEvent"]["metadata"])
        if "resOutputsEvent" in event:
            metadata = event["resOutputsEvent"]["metadata"]
            if metadata["urn"] in self.expected:
                self.done[metadata["urn"]] = (metadata.get("new") or {}).get("outputs") or {}
                self.last_operation_at = time.monotonic()
        elif "resOpFailedEvent" in event:
            self.failed.add(event["resOpFailedEvent"]["metadata"]["urn"])
        elif "diagnosticEvent" in event:
            diagnostic = event["diagnosticEvent"]
            if diagnostic.get("severity") == "error" and diagnostic.get("urn"):
                self._messages.setdefault(diagnostic["urn"], []).append(str(diagnostic.get("message", "")))
        elif "policyEvent" in event:
            policy = event["policyEvent"]
            if policy.get("enforcementLevel") == "mandatory" and policy.get("resourceUrn"):
                message = f"policy {policy.get('policyName')} violated: {policy.get('message')}"
                self._violations.setdefault(policy["resourceUrn"], []).append(message)
                self.failed.add(policy["resourceUrn"])
        return None

    def created(self, event: EngineEvent) -> str | None:
        """The URN of the creation that an event confirms, after `process_event`."""
        urn = str(event["resOutputsEvent"]["metadata"]["urn"]) if "resOutputsEvent" in event else ""
        return urn if self.expected.get(urn) is Operation.CREATE and self.failure(urn) is None else None

    def failure(self, urn: str) -> Failure | None:
        """Why the expected operation on a resource failed; None if it did not."""
        if urn in self.done:
            if self.expected[urn] is Operation.CREATE and is_being_deleted(self.done[urn]):
                # It updated an object of that name that is being deleted, which ends with the new fields.
                return Failure(FailureKind.BEING_DELETED, "an object of that name is still being deleted")
            return None
        if urn in self._violations:
            return Failure(FailureKind.POLICY, " ".join(self._violations[urn]))
        message = self.error.message if self.error else ""
        if self._messages.get(urn) or urn in self.failed:
            return object_failure(" ".join(self._messages.get(urn, ())) or message)
        return Failure(FailureKind.NOT_STARTED, message or "the engine did not start this operation")

    def _begin(self, metadata: Mapping[str, Any]) -> str | None:
        urn, operation = metadata["urn"], metadata["op"]
        if operation in _HARMLESS or (urn in self._setting_up and operation in _SETTING_UP):
            return None
        if self.expected.get(urn) != operation:
            return f"{operation} {urn.rpartition('::')[2]}"
        self.first_operation_at = self.first_operation_at or time.monotonic()
        return None
