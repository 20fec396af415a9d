"""One `pulumi up` of one stack: started, told what to do or called off, watched to its end."""

import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import structlog

from plimsoll.apply.errors import (
    ApplyError,
    Failure,
    FailureKind,
    PlanMismatchError,
    UpdateFailedError,
    UpdateInterruptedError,
    object_failure,
)
from plimsoll.apply.program import Order, Program
from plimsoll.apply.stack import CapacityStack, EngineEvent
from plimsoll.apply.state import provider_urn, stack_urn

_HARMLESS: Final = frozenset({"same", "read", "refresh"})
_SETTING_UP: Final = frozenset({"same", "create", "update"})
_LOOK_SECONDS: Final = 2.0
_CALLED_OFF_SECONDS: Final = 5.0
_FINISHING_SECONDS: Final = 5.0
_INTERRUPT_SECONDS: Final = 30.0
"""An engine that has not ended so long after an interrupt is interrupted again, then killed."""

log = structlog.get_logger(__name__)


class Operation(StrEnum):
    """What the engine is to do to one resource, in the engine's words."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"


@dataclass
class Progress:
    """What the engine has said so far. Changed under the update's condition alone."""

    done: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """Outputs by URN: each operation that succeeded."""
    begun: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    messages: dict[str, list[str]] = field(default_factory=dict)
    first_operation_at: float | None = None
    last_operation_at: float | None = None


class Update:
    """An armed update: its engine idles, with the stack's lock held, until `execute` or `call_off`."""

    def __init__(
        self, stack: CapacityStack, provider_inputs: Mapping[str, str], version: str, policy_packs: tuple[Path, ...]
    ) -> None:
        self.stack = stack
        self._program = Program(provider_inputs, version, self._on_armed)
        self._policy_packs = policy_packs
        self._events: queue.SimpleQueue[EngineEvent | None] = queue.SimpleQueue()
        self._condition = threading.Condition()
        self._armed = False
        self._ended = False
        self._executing = False
        self._error: ApplyError | None = None
        self._aborted = False
        self._expected: Mapping[str, Operation] = {}
        self._created: Callable[[str], None] = lambda _: None
        self._progress = Progress()
        self._setting_up = {stack_urn(stack.name), provider_urn(stack.name)}
        self._runner = threading.Thread(target=self._run, name=f"up-{stack.name}", daemon=True)
        self._watcher = threading.Thread(target=self._watch, name=f"events-{stack.name}", daemon=True)

    @property
    def armed(self) -> bool:
        """Started, and waiting for its order."""
        with self._condition:
            return self._armed and not self._ended and not self._executing

    @property
    def executed(self) -> bool:
        """Whether it was released."""
        return self._executing

    @property
    def told(self) -> bool:
        """Whether its failure is that of operations, which `execute` has told."""
        return bool(self._progress.failed)

    @property
    def error(self) -> ApplyError | None:
        """Why it ended otherwise than in success; None while it runs."""
        return self._error

    def start(self) -> None:
        self._watcher.start()
        self._runner.start()

    def wait_armed(self, seconds: float) -> None:
        """Returns once it is armed. Raises the ApplyError that it ended with before."""
        with self._condition:
            self._condition.wait_for(lambda: self._armed or self._ended, seconds)
            if self._ended:
                raise self._error or UpdateFailedError(f"stack {self.stack.name}: the update ended by itself")
            if self._armed:
                return
        self.call_off()
        raise UpdateFailedError(f"stack {self.stack.name}: the engine did not start within {seconds:.0f} s")

    def execute(
        self,
        order: Order,
        expected: Mapping[str, Operation],
        gone: Callable[[], Iterable[str]],
        created: Callable[[str], None] = lambda _: None,
    ) -> Progress:
        """Releases the program and returns once each expected operation, by URN, has succeeded or failed.

        `gone` is asked now and then for URNs whose deletion has begun, whether the engine still waits for its end or
        not; `created` is told the URN of each creation once it is confirmed. The engine may still be registering what
        stays; `join` awaits its end. Raises the ApplyError that ended it before all of them were done. Where operations
        failed the progress tells which and why instead, unless it was aborted or interrupted: then a failure may come
        of that, as a provider may break off what it has begun.
        """
        with self._condition:
            self._expected = dict(expected)
            self._created = created
            self._executing = True
        if not self._program.release(order):
            raise self._error or UpdateFailedError(f"stack {self.stack.name}: the update was called off")
        deleting = {urn for urn, operation in expected.items() if operation is Operation.DELETE}
        while not self._wait_settled(_LOOK_SECONDS if deleting else None):
            if self._begun_all_but(deleting):
                found = {urn: dict[str, Any]() for urn in gone()}
                with self._condition:
                    self._progress.done.update(found)
        with self._condition:
            progress, error = self._progress, self._error
            stopped = self._aborted or isinstance(error, UpdateInterruptedError)
            if error is not None and expected.keys() - progress.done.keys() and (stopped or not progress.failed):
                raise error
            return progress

    def failure(self, urn: str, operation: Operation) -> Failure | None:
        """Why the operation on a resource failed; None where it did not."""
        with self._condition:
            progress = self._progress
            if urn in progress.done:
                metadata = progress.done[urn].get("metadata") or {}
                if operation is Operation.CREATE and metadata.get("deletionTimestamp"):
                    # It met an object of its name on the way out, which takes the new fields with it.
                    return Failure(FailureKind.BEING_DELETED, "an object of that name is still being deleted")
                return None
            said = self._error.message if self._error else ""
            if progress.messages.get(urn) or urn in progress.failed:
                return object_failure(" ".join(progress.messages.get(urn, ())) or said)
            return Failure(FailureKind.NOT_STARTED, said or "the engine did not come to it")

    def call_off(self) -> None:
        """Ends an update that was not released, without touching anything, and awaits its end."""
        if self._program.call_off():
            self._await_end(_CALLED_OFF_SECONDS)
        else:
            self.interrupt()
            self._await_end(_INTERRUPT_SECONDS)

    def abandon(self) -> None:
        """Kills an armed engine: one that is called off writes the state as it knew it. Its lock stays behind."""
        self.stack.engine.kill()
        self._program.call_off()
        self.join()

    @property
    def finishing(self) -> bool:
        """Everything is confirmed, and the engine only writes its state: it waits for no deletion. Takes no lock."""
        expected = self._expected
        waits = any(operation is Operation.DELETE for operation in expected.values())
        return self._executing and bool(expected) and not waits and expected.keys() <= self._progress.done.keys()

    def interrupt(self) -> None:
        """Asks the engine to end: it starts nothing more. Takes no lock."""
        self.stack.engine.interrupt()

    def abort(self, error: ApplyError) -> None:
        """Interrupts it for a reason that `execute` then raises; one that is finishing is left a moment for it.

        An engine that is interrupted while it writes its state leaves its lock behind.
        """
        if self.finishing:
            late = threading.Timer(_FINISHING_SECONDS, self.interrupt)
            late.daemon = True
            late.start()
            return
        with self._condition:
            self._error = self._error or error
            self._aborted = True
        if not self._program.call_off():
            self.interrupt()

    def join(self) -> None:
        """Awaits its end, however long."""
        self._runner.join()
        self._watcher.join()

    def _wait_settled(self, seconds: float | None) -> bool:
        with self._condition:
            return self._condition.wait_for(self._settled, seconds)

    def _begun_all_but(self, deleting: set[str]) -> bool:
        """Whether only deletions are not confirmed, and the engine has begun them."""
        with self._condition:
            left = self._expected.keys() - self._progress.done.keys()
            return bool(left) and left <= deleting & self._progress.begun

    def _settled(self) -> bool:
        return self._ended or self._expected.keys() <= self._progress.done.keys()

    def _await_end(self, seconds: float) -> None:
        for escalate in (self.interrupt, self.interrupt, self.stack.engine.kill):
            self._runner.join(seconds)
            if not self._runner.is_alive():
                break
            log.warning("the engine does not end", stack=self.stack.name, seconds=seconds)
            escalate()
        self.join()

    def _on_armed(self) -> None:
        with self._condition:
            self._armed = True
            self._condition.notify_all()

    def _run(self) -> None:
        error: ApplyError | None = None
        try:
            self.stack.update(self._program, self._events.put, self._policy_packs)
        except ApplyError as failed:
            error = failed
        except Exception as failed:
            log.exception("the update failed", stack=self.stack.name)
            error = UpdateFailedError(f"stack {self.stack.name}: {type(failed).__name__}: {failed}")
        self._events.put(None)
        self._watcher.join()
        with self._condition:
            self._error = self._error or error
            self._ended = True
            self._condition.notify_all()

    def _watch(self) -> None:
        while (event := self._events.get()) is not None:
            foreign = self._take(event)
            if "resOutputsEvent" in event:
                self._tell_created(event)
            if foreign is not None:
                log.error("the engine does what was not planned", stack=self.stack.name, operation=foreign)
                self.abort(
                    PlanMismatchError(
                        f"stack {self.stack.name}: the engine began what was not planned: {foreign}",
                        "its state was changed by others, or an object would be replaced; see `pulumi preview`",
                    )
                )

    def _tell_created(self, event: EngineEvent) -> None:
        """Outside of the condition: whoever is told may take its time."""
        urn = event["resOutputsEvent"]["metadata"]["urn"]
        if self._expected.get(urn) is Operation.CREATE and self.failure(urn, Operation.CREATE) is None:
            self._created(urn)

    def _take(self, event: EngineEvent) -> str | None:
        """Notes an event. The operation, where it is a foreign one."""
        if "resourcePreEvent" in event:
            return self._begun(event["resourcePreEvent"]["metadata"])
        with self._condition:
            progress = self._progress
            if "resOutputsEvent" in event:
                metadata = event["resOutputsEvent"]["metadata"]
                urn = metadata["urn"]
                if urn in self._expected:
                    progress.done[urn] = (metadata.get("new") or {}).get("outputs") or {}
                    progress.last_operation_at = time.monotonic()
                    self._condition.notify_all()
            elif "resOpFailedEvent" in event:
                progress.failed.add(event["resOpFailedEvent"]["metadata"]["urn"])
            elif "diagnosticEvent" in event:
                diagnostic = event["diagnosticEvent"]
                if diagnostic.get("severity") == "error" and diagnostic.get("urn"):
                    progress.messages.setdefault(diagnostic["urn"], []).append(str(diagnostic.get("message", "")))
            elif "policyEvent" in event:
                policy = event["policyEvent"]
                if policy.get("enforcementLevel") == "mandatory" and policy.get("resourceUrn"):
                    message = f"policy {policy.get('policyName')} violated: {policy.get('message')}"
                    progress.messages.setdefault(policy["resourceUrn"], []).append(message)
                    progress.failed.add(policy["resourceUrn"])
        return None

    def _begun(self, metadata: Mapping[str, Any]) -> str | None:
        urn, operation = metadata["urn"], metadata["op"]
        if operation in _HARMLESS or (urn in self._setting_up and operation in _SETTING_UP):
            return None
        with self._condition:
            if self._expected.get(urn) == operation:
                self._progress.begun.add(urn)
                self._progress.first_operation_at = self._progress.first_operation_at or time.monotonic()
                return None
        return f"{operation} {urn.rpartition('::')[2]}"
