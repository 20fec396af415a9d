"""One update is released and watched: an operation that is not expected ends it."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from plimsoll.apply import (
    ApplyError,
    FailureKind,
    LeaseLostError,
    LockedError,
    PlanMismatchError,
    UpdateFailedError,
    UpdateInterruptedError,
    WriterStoppingError,
)
from plimsoll.apply.engine import (
    CalledOffError,
    ClusterProvider,
    EngineEvent,
    Operation,
    Program,
    Registrations,
    provider_urn,
    stack_urn,
)
from plimsoll.apply.stacks import Phase, Updates
from tests.applying.states import CLUSTER, STACK
from tests.awaiting import await_condition

A, B, C = (f"urn:pulumi:s::p::kubernetes:x:Y::{name}" for name in "abc")
NOTHING = Registrations((), ())


class FakeEngine:
    """An engine that ends when it is interrupted."""

    def __init__(self) -> None:
        self.interrupted = threading.Event()
        self.interrupts = 0
        self.killed = threading.Event()

    def interrupt(self) -> None:
        self.interrupts += 1
        self.interrupted.set()

    def kill(self) -> None:
        self.killed.set()
        self.interrupt()


class FakeStack:
    """Runs `script` as the engine would run an update."""

    name = STACK

    def __init__(self) -> None:
        self.engine = FakeEngine()
        self.released = threading.Event()
        self.runs = 0
        self.script: Callable[[Callable[[EngineEvent], None]], None] = lambda _: None
        self.refusal: ApplyError | None = None

    def update(self, program: Program, on_event: Callable[[EngineEvent], None], _: tuple[Path, ...]) -> None:
        self.runs += 1
        self.engine.interrupted.clear()
        if self.refusal is not None:
            raise self.refusal
        program._on_ready()
        while not self.released.wait(0.01):
            if program._registrations.done() and isinstance(program._registrations.exception(), CalledOffError):
                raise UpdateFailedError("called off")
            if self.engine.interrupted.is_set():
                raise UpdateInterruptedError("interrupted")
        self.script(on_event)


@pytest.fixture
def stack() -> FakeStack:
    return FakeStack()


@pytest.fixture
def updates(stack: FakeStack) -> Iterator[Updates]:
    fake: Any = stack
    made = Updates(fake, ClusterProvider({}, {}, "4.34.0", CLUSTER), ())
    yield made
    stack.released.set()
    stack.engine.interrupt()


def began(urn: str, operation: str) -> EngineEvent:
    return {"resourcePreEvent": {"metadata": {"urn": urn, "op": operation}}}


def ended(urn: str, operation: str, **outputs: Any) -> EngineEvent:
    return {"resOutputsEvent": {"metadata": {"urn": urn, "op": operation, "new": {"outputs": outputs}}}}


def failed(urn: str) -> EngineEvent:
    return {"resOpFailedEvent": {"metadata": {"urn": urn, "op": "create"}}}


def diagnosed(urn: str, message: str) -> EngineEvent:
    return {"diagnosticEvent": {"urn": urn, "severity": "error", "message": message}}


def execute(updates: Updates, stack: FakeStack, expected: dict[str, Operation]) -> Any:
    updates.start()
    assert updates.phase is Phase.READY
    stack.released.set()
    return updates.execute(NOTHING, expected)


def test_only_an_engine_that_changes_objects_is_interrupted(updates: Updates, stack: FakeStack) -> None:
    updates.start()
    updates.interrupt()
    assert not stack.engine.interrupted.is_set(), "it would leave its lock; calling it off is enough"
    updates.end()

    def script(_: Callable[[EngineEvent], None]) -> None:
        await_condition(lambda: updates.phase is Phase.RUNNING, message="the release of the program")
        updates.interrupt()

    stack.script = script
    execute(updates, stack, {A: Operation.CREATE})
    assert stack.engine.interrupted.is_set()


def test_execute_returns_when_every_operation_is_confirmed_not_when_the_engine_ends(
    updates: Updates, stack: FakeStack
) -> None:
    def script(on_event: Callable[[EngineEvent], None]) -> None:
        for event in (began(A, "create"), ended(A, "create", id="x"), began(B, "same")):
            on_event(event)
        stack.engine.interrupted.wait(120)

    stack.script = script
    progress = execute(updates, stack, {A: Operation.CREATE})

    assert progress.done == {A: {"id": "x"}}
    assert progress.failure(A) is None
    assert not stack.engine.interrupted.is_set()
    stack.engine.interrupt()
    last = updates.ended()
    assert last is not None and last.error is None


@pytest.mark.parametrize("operation", Operation)
def test_an_engine_that_only_writes_its_state_is_not_interrupted(
    updates: Updates, stack: FakeStack, operation: Operation
) -> None:
    may_end = threading.Event()

    def script(on_event: Callable[[EngineEvent], None]) -> None:
        on_event(ended(A, operation, id="x"))
        may_end.wait(120)

    stack.script = script
    execute(updates, stack, {A: operation})
    updates.stop(UpdateInterruptedError("stopping"))
    assert not stack.engine.interrupted.is_set()
    may_end.set()
    last = updates.ended()
    assert last is not None
    assert last.error is None


def test_each_confirmed_creation_calls_back(updates: Updates, stack: FakeStack) -> None:
    reported: list[str] = []
    first = threading.Event()

    def created(urn: str) -> None:
        reported.append(urn)
        first.set()

    def script(on_event: Callable[[EngineEvent], None]) -> None:
        on_event(ended(A, "create", id="x"))
        assert first.wait(120)  # before the rest of the update is done
        on_event(ended(C, "create", metadata={"deletionTimestamp": "now"}))
        on_event(ended(B, "update", id="y"))

    stack.script = script
    expected = {A: Operation.CREATE, B: Operation.UPDATE, C: Operation.CREATE}
    updates.start()
    stack.released.set()
    updates.execute(NOTHING, expected, created)
    assert reported == [A]


@pytest.mark.parametrize(
    ("urn", "operation"),
    [(B, "delete"), (A, "replace"), (A, "delete-replaced"), (A, "update"), (provider_urn(STACK), "replace")],
)
def test_an_unexpected_operation_interrupts_the_update(
    updates: Updates, stack: FakeStack, urn: str, operation: str
) -> None:
    def script(on_event: Callable[[EngineEvent], None]) -> None:
        on_event(began(urn, operation))
        assert stack.engine.interrupted.wait(120)
        raise UpdateInterruptedError("interrupted")

    stack.script = script
    with pytest.raises(PlanMismatchError, match=operation):
        execute(updates, stack, {A: Operation.CREATE})


def test_creating_the_stack_and_its_provider_is_expected(updates: Updates, stack: FakeStack) -> None:
    def script(on_event: Callable[[EngineEvent], None]) -> None:
        for event in (began(stack_urn(STACK), "create"), began(provider_urn(STACK), "update"), ended(A, "same")):
            on_event(event)

    stack.script = script
    assert A in execute(updates, stack, {A: Operation.UPDATE}).done


def test_a_failed_operation_has_a_reason_and_does_not_hide_the_others(updates: Updates, stack: FakeStack) -> None:
    def script(on_event: Callable[[EngineEvent], None]) -> None:
        for event in (began(A, "create"), began(B, "create"), failed(A), ended(B, "create")):
            on_event(event)
        on_event(diagnosed(A, "is invalid: spec: Required value"))
        raise UpdateFailedError("1 errored")

    stack.script = script
    progress = execute(updates, stack, {A: Operation.CREATE, B: Operation.CREATE})

    assert progress.done.keys() == {B}
    failure = progress.failure(A)
    assert failure is not None
    assert failure.kind is FailureKind.REFUSED
    assert "Required value" in failure.message
    assert progress.failed


def test_what_a_mandatory_policy_refuses_has_the_policys_message(updates: Updates, stack: FakeStack) -> None:
    def policy(level: str, urn: str) -> EngineEvent:
        found = {"enforcementLevel": level, "resourceUrn": urn, "policyName": "names", "message": "no bad names"}
        return {"policyEvent": found}

    def script(on_event: Callable[[EngineEvent], None]) -> None:
        for event in (policy("mandatory", A), policy("advisory", B), began(B, "create"), ended(B, "create")):
            on_event(event)
        raise UpdateFailedError("1 errored")

    stack.script = script
    progress = execute(updates, stack, {A: Operation.CREATE, B: Operation.CREATE})
    failure = progress.failure(A)
    assert failure is not None
    assert (failure.kind, failure.message) == (FailureKind.POLICY, "policy names violated: no bad names")
    assert progress.failure(B) is None


def test_a_creation_that_updated_an_object_being_deleted_has_failed(updates: Updates, stack: FakeStack) -> None:
    stack.script = lambda on_event: on_event(ended(A, "create", metadata={"deletionTimestamp": "then"}))
    progress = execute(updates, stack, {A: Operation.CREATE})
    failure = progress.failure(A)
    assert failure is not None
    assert failure.kind is FailureKind.BEING_DELETED


def test_a_killed_engine_is_an_error_and_no_operation_counts_as_done(updates: Updates, stack: FakeStack) -> None:
    def script(_: Callable[[EngineEvent], None]) -> None:
        raise UpdateFailedError("killed")

    stack.script = script
    with pytest.raises(UpdateFailedError, match="killed"):
        execute(updates, stack, {A: Operation.CREATE})


def test_an_engine_that_a_signal_interrupted_is_not_interrupted_again_when_the_writer_stops(
    updates: Updates, stack: FakeStack
) -> None:
    """A second interrupt would end it without its state."""

    def script(on_event: Callable[[EngineEvent], None]) -> None:
        on_event(began(A, "create"))
        updates.interrupt()
        updates.stop(WriterStoppingError())
        assert updates.phase is Phase.ENDING
        on_event(ended(A, "create"))

    stack.script = script
    execute(updates, stack, {A: Operation.CREATE})
    updates.ended()
    assert stack.engine.interrupts == 1


def test_an_update_that_is_called_off_executes_nothing(updates: Updates, stack: FakeStack) -> None:
    updates.start()
    updates.end()
    with pytest.raises(ApplyError):
        updates.execute(NOTHING, {A: Operation.CREATE})
    assert updates.phase is Phase.IDLE


def test_a_stopped_update_raises_the_error_of_the_stop(updates: Updates, stack: FakeStack) -> None:
    def script(_: Callable[[EngineEvent], None]) -> None:
        updates.stop(LeaseLostError("the Lease was lost"))
        assert stack.engine.interrupted.wait(120)
        raise UpdateInterruptedError("interrupted")

    stack.script = script
    with pytest.raises(LeaseLostError, match="was lost"):
        execute(updates, stack, {A: Operation.CREATE})


def test_a_lost_lease_kills_the_engine_that_changes_objects(updates: Updates, stack: FakeStack) -> None:
    """An interrupted engine finishes what it has begun, beside another writer."""

    def script(_: Callable[[EngineEvent], None]) -> None:
        updates.lose(LeaseLostError("the Lease was lost"))
        assert stack.engine.killed.wait(120)
        raise UpdateInterruptedError("killed")

    stack.script = script
    with pytest.raises(LeaseLostError, match="was lost"):
        execute(updates, stack, {A: Operation.DELETE})
    assert stack.engine.interrupts == 1, "by the kill alone"


def test_an_interrupted_update_raises_update_interrupted_even_if_the_provider_aborted_requests(
    updates: Updates, stack: FakeStack
) -> None:
    def script(on_event: Callable[[EngineEvent], None]) -> None:
        for event in (began(A, "create"), began(B, "create"), ended(A, "create")):
            on_event(event)
        updates.interrupt()
        for event in (diagnosed(B, "context canceled"), failed(B)):
            on_event(event)
        raise UpdateInterruptedError("interrupted")

    stack.script = script
    with pytest.raises(UpdateInterruptedError):
        execute(updates, stack, {A: Operation.CREATE, B: Operation.CREATE})


def test_a_stopped_update_raises_the_error_of_the_stop_even_if_the_provider_aborted_requests(
    updates: Updates, stack: FakeStack
) -> None:
    def script(on_event: Callable[[EngineEvent], None]) -> None:
        on_event(began(A, "create"))
        updates.stop(LeaseLostError("the Lease was lost"))
        for event in (diagnosed(A, "context canceled"), failed(A)):
            on_event(event)
        raise UpdateFailedError("1 errored")

    stack.script = script
    with pytest.raises(LeaseLostError, match="was lost"):
        execute(updates, stack, {A: Operation.CREATE})


def test_nothing_is_started_after_a_stop(updates: Updates, stack: FakeStack) -> None:
    updates.start()
    updates.stop(LeaseLostError("the Lease was lost"))
    updates.end()
    assert updates.phase is Phase.IDLE
    with pytest.raises(LeaseLostError, match="was lost"):
        updates.start()
    with pytest.raises(LeaseLostError, match="was lost"):
        updates.execute(NOTHING, {A: Operation.CREATE})
    assert stack.runs == 1


def test_at_most_one_engine_runs_at_a_time(updates: Updates, stack: FakeStack) -> None:
    updates.start()
    with pytest.raises(ApplyError):
        updates.start()
    assert stack.runs == 1
    updates.end()
    updates.start()
    assert updates.phase is Phase.READY


def test_an_engine_that_cannot_start_raises_its_error(updates: Updates, stack: FakeStack) -> None:
    stack.refusal = LockedError(STACK, ())
    with pytest.raises(LockedError, match=STACK):
        updates.start()
