"""Updates: runs the updates of one stack, with their threads and engines."""

import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

import structlog

from plimsoll.apply.engine import (
    CapacityStack,
    ClusterProvider,
    DeclaredResource,
    Deleting,
    EngineEvent,
    Operation,
    Program,
    Progress,
    Registrations,
    urn_of,
)
from plimsoll.apply.errors import (
    ApplyError,
    LeaseLostError,
    PlanMismatchError,
    UpdateFailedError,
    UpdateInterruptedError,
)
from plimsoll.apply.stacks.update_state import Act, Event, Phase, UpdateState

_START_SECONDS: Final = 120.0
"""Limit from the start of an engine until its program waits."""
_FINISHING_SECONDS: Final = 5.0
"""Seconds until an engine that is to end while it writes its state is interrupted after all."""
_CALLED_OFF_SECONDS: Final = 5.0
"""Seconds until an engine whose program was called off is interrupted, interrupted again, then killed."""

_STOPPED: Final = (UpdateInterruptedError, LeaseLostError, PlanMismatchError)
"""Errors with which the writer ends an update."""

log = structlog.get_logger(__name__)


class Update:
    """One run of an engine, whose events are compared with the expected operations."""

    def __init__(self, stack: CapacityStack, provider: ClusterProvider, on_ready: Callable[[], None]) -> None:
        self.program = Program(provider.inputs, provider.version, provider.cluster, on_ready)
        self.progress = Progress(stack.name)
        self.released = False
        self.interrupted = False
        """Whether its engine has got an interrupt. A second one would end it at once, without writing its state."""
        self.created: Callable[[str], None] = lambda _: None
        """Called with the URN of each confirmed creation, on a thread of the engine's event log."""

    def fail(self, error: ApplyError | None) -> None:
        """Sets the reason of its end; the first one counts."""
        self.progress.error = self.progress.error or error


class Updates:
    """The updates of one stack, one after the other, in the phases of `update_state`.

    For the stack's thread only, except `phase`, `stop`, `lose` and `interrupt`."""

    def __init__(self, stack: CapacityStack, provider: ClusterProvider, policy_packs: tuple[Path, ...]) -> None:
        self._stack = stack
        self._provider = provider
        self._policy_packs = policy_packs
        self._condition = threading.Condition()
        self._update_state = UpdateState()
        self._update: Update | None = None
        """The last one, until its end was awaited; it may have ended before."""
        self._stopped_by: ApplyError | None = None

    @property
    def phase(self) -> Phase:
        return self._update_state.phase

    def start(self) -> None:
        """Starts an engine, and returns when its program waits. Raises the ApplyError if it ends instead."""
        name = self._stack.name
        with self._condition:
            if not self._on(Event.START):
                raise self._stopped_by or UpdateFailedError(f"stack {name}: another engine is running on it")
            update = self._update = Update(self._stack, self._provider, lambda: self._handle(Event.READY))
            threading.Thread(target=self._run, args=[update], name=f"up-{name}", daemon=True).start()
        if not self._wait(lambda: self.phase is not Phase.STARTING, _START_SECONDS):
            update.fail(UpdateFailedError(f"stack {name}: the engine did not start within {_START_SECONDS:.0f} s"))
        if self.phase is not Phase.READY:
            self.end()
            raise update.progress.error or UpdateFailedError(f"stack {name}: the update ended by itself")

    def execute(
        self,
        registrations: Registrations,
        expected: Mapping[str, Operation],
        created: Callable[[str], None] = lambda _: None,
    ) -> Progress:
        """Releases the program, and returns when each expected operation, by URN, has succeeded or failed.

        `created` is called with the URN of each confirmed creation. The engine may still be registering unchanged
        resources, and record the deletions after them; `ended` waits for its end. Raises the ApplyError that ended it
        before all operations were done. Failed operations are in the progress instead, unless the update was stopped
        or interrupted, because a provider may then abort operations.
        """
        with self._condition:
            update = self._update
            if update is None or not self._on(Event.RELEASE):
                error = update.progress.error if update is not None else self._stopped_by
                raise error or UpdateFailedError(f"stack {self._stack.name}: the update was cancelled")
            progress = update.progress
            progress.expected, update.created, update.released = dict(expected), created, True
            update.program.release(registrations._replace(delete=partial(self._delete, progress, registrations.delete)))
        self._wait(lambda: progress.confirmed or self.phase is Phase.IDLE, None)
        with self._condition:
            only_failures = progress.failed and not isinstance(progress.error, _STOPPED)
            if progress.error is not None and not only_failures and not progress.confirmed:
                raise progress.error
            return progress

    def end(self) -> None:
        """Ends the update, if there is one, without changes, and waits for its end. The end of one that was released is
        awaited by `ended`."""
        self._handle(Event.END)
        engine = self._stack.engine
        for escalate in (engine.interrupt, engine.interrupt, engine.kill):
            if self._await_end(_CALLED_OFF_SECONDS):
                break
            log.warning("the engine does not stop", stack=self._stack.name, seconds=_CALLED_OFF_SECONDS)
            escalate()
        self._await_end(None)
        self._update = None

    def abandon(self) -> None:
        """Kills the engine, because one whose program is called off would write the state as it knew it. Its lock
        remains."""
        self._handle(Event.ABANDON)
        self._await_end(None)
        self._update = None

    def ended(self) -> Progress | None:
        """Waits for the end of a released update, without a time limit. None if there is none."""
        update = self._update
        if update is None or not update.released:
            return None
        self._await_end(None)
        self._update = None
        return update.progress

    def stop(self, error: ApplyError) -> None:
        """Ends the running update and starts no others: a pre-started update ends without changes, a running one
        finishes its current operations. The stack's thread then raises `error`."""
        self._finish(Event.STOP, error)

    def lose(self, error: ApplyError) -> None:
        """As `stop`, but kills the engine in any phase, also one that runs no update. Its lock remains."""
        self._finish(Event.LOSE, error)

    def _finish(self, event: Event, error: ApplyError) -> None:
        with self._condition:
            self._stopped_by = self._stopped_by or error
            if self._update is not None and self.phase not in (Phase.IDLE, Phase.WRITING):
                self._update.fail(error)
            self._on(event)

    def interrupt(self) -> None:
        """Sends SIGINT to the stack's engine if it changes objects. Takes no lock.

        In other phases it would leave its lock, and ends soon anyway once the program is called off. Without an update,
        it may be a `pulumi destroy`.
        """
        if self.phase in (Phase.IDLE, Phase.RUNNING):
            if (update := self._update) is not None:
                update.interrupted = True
            self._stack.engine.interrupt()

    def _handle(self, event: Event) -> None:
        with self._condition:
            self._on(event)

    def _on(self, event: Event) -> bool:
        """Processes an event and does what the transition requires. Returns whether the event is valid in this phase.
        The caller holds the condition."""
        step = self._update_state.on(event)
        if step is None:
            return False
        self._update_state, act = step
        self._condition.notify_all()
        update, engine = self._update, self._stack.engine
        if act is Act.INTERRUPT and not (update is not None and update.interrupted):
            engine.interrupt()
        elif act is Act.INTERRUPT_LATER:
            late = threading.Timer(_FINISHING_SECONDS, self._interrupt_late, [update])
            late.daemon = True
            late.start()
        elif act is Act.KILL:
            engine.kill()
        if act in (Act.CALL_OFF, Act.KILL) and update is not None:
            update.program.call_off()
        return True

    def _interrupt_late(self, update: Update | None) -> None:
        with self._condition:
            if update is self._update and self.phase is Phase.WRITING:
                self._stack.engine.interrupt()

    def _wait(self, condition: Callable[[], bool], seconds: float | None) -> bool:
        with self._condition:
            return self._condition.wait_for(condition, seconds)

    def _await_end(self, seconds: float | None) -> bool:
        return self._wait(lambda: self.phase is Phase.IDLE, seconds)

    def _run(self, update: Update) -> None:
        """Runs on a thread of the update."""
        error: ApplyError | None = None
        try:
            self._stack.update(update.program, lambda event: self._process_event(update, event), self._policy_packs)
        except ApplyError as failed:
            error = failed
        except Exception as failed:
            log.exception("the update failed", stack=self._stack.name)
            error = UpdateFailedError(f"stack {self._stack.name}: {type(failed).__name__}: {failed}")
        with self._condition:
            update.fail(error)
            self._on(Event.ENDED)

    def _process_event(self, update: Update, event: EngineEvent) -> None:
        """Called on a thread of the engine's event log."""
        progress = update.progress
        with self._condition:
            foreign = progress.process_event(event)
            created = progress.created(event)
            if foreign is not None:
                self._refuse(update, foreign)
            self._on_progress(progress)
        if created is not None:
            update.created(created)  # the callee may take long

    def _delete(self, progress: Progress, delete: Deleting, failed: Collection[str]) -> Iterable[DeclaredResource]:
        """Called on a thread of the program."""
        began = time.monotonic()
        staying = tuple(delete(failed))
        with self._condition:
            progress.process_deletions(began, (urn_of(self._stack.name, each) for each in staying))
            self._on_progress(progress)
        return staying

    def _on_progress(self, progress: Progress) -> None:
        """Ends the wait for the operations when there are no more. The caller holds the condition."""
        if progress.expected and progress.confirmed:
            self._condition.notify_all()
            self._on(Event.CONFIRMED)

    def _refuse(self, update: Update, operation: str) -> None:
        log.error("the engine started an unplanned operation", stack=self._stack.name, operation=operation)
        if self.phase is not Phase.WRITING:
            update.fail(
                PlanMismatchError(
                    f"stack {self._stack.name}: the engine started an unplanned operation: {operation}",
                    "another process changed its state, or an object would be replaced; run `pulumi preview`",
                )
            )
        self._on(Event.END)
