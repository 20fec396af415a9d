"""The updates of one stack, one `pulumi up` after the other: the threads and the engine behind a stack's life."""

import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

import structlog

from plimsoll.apply.engine import (
    CapacityStack,
    ClusterProvider,
    EngineEvent,
    Operation,
    Order,
    Program,
    Progress,
)
from plimsoll.apply.errors import (
    ApplyError,
    LeaseLostError,
    PlanMismatchError,
    UpdateFailedError,
    UpdateInterruptedError,
)
from plimsoll.apply.stacks.life import Act, Event, Life, Phase

_START_SECONDS: Final = 120.0
_LOOK_SECONDS: Final = 2.0
_CALLED_OFF_SECONDS: Final = 5.0
_FINISHING_SECONDS: Final = 5.0
_INTERRUPT_SECONDS: Final = 30.0
"""An engine that has not ended so long after an interrupt is interrupted again, then killed."""

_STOPPED: Final = (UpdateInterruptedError, LeaseLostError, PlanMismatchError)
"""What an update is ended for by its writer."""

log = structlog.get_logger(__name__)


class Update:
    """One run of an engine: its program waits for its order, and its events are held against the operations."""

    def __init__(self, stack: CapacityStack, provider: ClusterProvider, on_ready: Callable[[], None]) -> None:
        self.program = Program(provider.inputs, provider.version, provider.cluster, on_ready)
        self.progress = Progress(stack.name)
        self.released = False
        self.created: Callable[[str], None] = lambda _: None
        """Is told the URN of each creation once it is confirmed, on a thread of the engine's event log."""

    def fail(self, error: ApplyError | None) -> None:
        """The first reason holds."""
        self.progress.error = self.progress.error or error


class Updates:
    """For the stack's own thread; `phase`, `stop` and `interrupt` are for any."""

    def __init__(self, stack: CapacityStack, provider: ClusterProvider, policy_packs: tuple[Path, ...]) -> None:
        self._stack = stack
        self._provider = provider
        self._policy_packs = policy_packs
        self._condition = threading.Condition()
        self._life = Life()
        self._update: Update | None = None
        """The last one, until it is settled: it may have ended."""
        self._stopped_by: ApplyError | None = None

    @property
    def phase(self) -> Phase:
        return self._life.phase

    def start(self) -> None:
        """Starts an engine, and returns once its program waits. Raises the ApplyError that it ended with before."""
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
        order: Order,
        expected: Mapping[str, Operation],
        gone: Callable[[], Iterable[str]],
        created: Callable[[str], None] = lambda _: None,
    ) -> Progress:
        """Releases the program and returns once each expected operation, by URN, has succeeded or failed.

        `gone` is asked now and then for URNs whose deletion has begun, whether the engine still waits for its end or
        not; `created` is told the URN of each creation once it is confirmed. The engine may still be registering what
        stays; `ended` awaits its end. Raises the ApplyError that ended it before all of them were done. Where
        operations failed the progress tells which and why instead, unless it was stopped or interrupted: then a failure
        may come of that, as a provider may break off what it has begun.
        """
        with self._condition:
            update = self._update
            if update is None or not self._on(Event.RELEASE):
                error = update.progress.error if update is not None else self._stopped_by
                raise error or UpdateFailedError(f"stack {self._stack.name}: the update was cancelled")
            progress = update.progress
            progress.expected, update.created, update.released = dict(expected), created, True
            update.program.release(order)
        patience = _LOOK_SECONDS if progress.deletions else None
        while not self._wait(lambda: progress.confirmed or self.phase is Phase.IDLE, patience):
            with self._condition:
                due = progress.waits_for_deletions
            if due:
                found = gone()
                with self._condition:
                    progress.done.update((urn, {}) for urn in found)
        with self._condition:
            told = progress.failed and not isinstance(progress.error, _STOPPED)
            if progress.error is not None and not told and not progress.confirmed:
                raise progress.error
            return progress

    def end(self) -> None:
        """Ends the update, if there is one, without touching anything where it was not released; awaits its end."""
        released = self._update is not None and self._update.released
        self._handle(Event.END)
        engine = self._stack.engine
        seconds = _INTERRUPT_SECONDS if released else _CALLED_OFF_SECONDS
        for escalate in (engine.interrupt, engine.interrupt, engine.kill):
            if self._await_end(seconds):
                break
            log.warning("the engine does not stop", stack=self._stack.name, seconds=seconds)
            escalate()
        self._await_end(None)
        self._update = None

    def abandon(self) -> None:
        """Kills the engine: one that is called off writes the state as it knew it. Its lock stays behind."""
        self._handle(Event.ABANDON)
        self._await_end(None)
        self._update = None

    def ended(self) -> Progress | None:
        """Awaits the end of an update that was released, however long; None where there is none to settle."""
        update = self._update
        if update is None or not update.released:
            return None
        self._await_end(None)
        self._update = None
        return update.progress

    def stop(self, error: ApplyError) -> None:
        """Ends what runs, and starts nothing more: a pre-started update ends untouched, a running one finishes what it
        has begun. `error` is what the stack's thread then raises."""
        with self._condition:
            self._stopped_by = self._stopped_by or error
            if self._update is not None and self.phase not in (Phase.IDLE, Phase.WRITING):
                self._update.fail(error)
            self._on(Event.STOP)

    def interrupt(self) -> None:
        """SIGINT to the stack's engine, whatever it does, unless it is about to end. Takes no lock."""
        if self.phase is not Phase.WRITING:
            self._stack.engine.interrupt()

    def _handle(self, event: Event) -> None:
        with self._condition:
            self._on(event)

    def _on(self, event: Event) -> bool:
        """Whether the event has a place in the stack's life; then does what it asks for. Under the condition."""
        step = self._life.on(event)
        if step is None:
            return False
        self._life, act = step
        self._condition.notify_all()
        update, engine = self._update, self._stack.engine
        if act is Act.INTERRUPT:
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
        """On a thread of the update."""
        error: ApplyError | None = None
        try:
            self._stack.update(update.program, lambda event: self._take(update, event), self._policy_packs)
        except ApplyError as failed:
            error = failed
        except Exception as failed:
            log.exception("the update failed", stack=self._stack.name)
            error = UpdateFailedError(f"stack {self._stack.name}: {type(failed).__name__}: {failed}")
        with self._condition:
            update.fail(error)
            self._on(Event.ENDED)

    def _take(self, update: Update, event: EngineEvent) -> None:
        """On a thread of the engine's event log."""
        progress = update.progress
        with self._condition:
            foreign = progress.take(event)
            created = progress.created(event)
            if foreign is not None:
                self._refuse(update, foreign)
            if progress.expected and progress.confirmed:
                self._condition.notify_all()
                if not progress.deletions:  # for their ends the engine waits on
                    self._on(Event.CONFIRMED)
        if created is not None:
            update.created(created)  # whoever is told may take its time

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
