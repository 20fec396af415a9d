"""One capacity stack and the single thread that works on it."""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Final

import structlog

from plimsoll.apply.delta.outcome import Outcome, Timing
from plimsoll.apply.delta.parts import Part
from plimsoll.apply.delta.review import Review, Reviewer, outcome_of
from plimsoll.apply.engine.cluster_provider import ClusterProvider
from plimsoll.apply.engine.stack import CapacityStack
from plimsoll.apply.errors import (
    ApplyError,
    LeaseLostError,
    LockedError,
    StateChangedError,
    UpdateInterruptedError,
)
from plimsoll.apply.stacks.keeper import StateKeeper
from plimsoll.apply.stacks.standby import MOST_MENDS, Standby
from plimsoll.apply.stacks.update import Operation, Update
from plimsoll.apply.stacks.worker import Worker
from plimsoll.apply.state.backend import Backend
from plimsoll.apply.state.state import Manifest, State, importable
from plimsoll.model.errors import PlimsollError
from plimsoll.model.plan import ObjectKey

_REST_SECONDS: Final = 30.0
"""After arming failed: deltas are applied cold meanwhile."""

log = structlog.get_logger(__name__)


class Shard:
    """A stack's life: armed, given its part of a delta, settled, armed again. Its methods return futures.

    `gate` raises where nothing may be begun any more (the Lease is lost, the writer stops); `on_idle` is called when
    the last task has ended.
    """

    def __init__(
        self,
        stack: CapacityStack,
        backend: Backend,
        reviewer: Reviewer,
        provider: ClusterProvider,
        *,
        policy_packs: tuple[Path, ...],
        history: int,
        gate: Callable[[], None],
        unlock: Callable[[CapacityStack, LockedError], None],
        on_idle: Callable[[], None],
    ) -> None:
        self.name = stack.name
        self._stack = stack
        self._keeper = StateKeeper(stack, backend, reviewer, gate=gate, unlock=unlock)
        self._standby = Standby(stack, self._keeper, provider, policy_packs=policy_packs, gate=gate)
        self._backend = backend
        self._reviewer = reviewer
        self._history = history
        self._gate = gate
        self._ready_at = 0.0
        self._arming = False
        self._arm_after = 0.0
        self._worker = Worker(stack.name, on_idle)

    @property
    def state(self) -> State:
        """As last read, or as the last delta will leave it."""
        return self._keeper.state

    @property
    def rank(self) -> int:
        """How soon it can begin: 0 at once, 1 when it is armed in a moment, 2 after a start, 3 when it is done."""
        if self.idle:
            return 0 if self.armed else 2
        return 1 if self._arming and self._worker.tasks == 1 else 3

    @property
    def idle(self) -> bool:
        """No task is running or waiting; an armed update may be."""
        return self._worker.tasks == 0

    @property
    def armed(self) -> bool:
        return self._standby.armed

    @property
    def pid(self) -> int | None:
        """The running engine."""
        return self._stack.engine.pid

    def apply(self, part: Part, created: Callable[[ObjectKey], None] = lambda _: None) -> "Future[Outcome]":
        """Does its part of a Plan; the future is there as soon as the engine has confirmed every operation.

        `created` is told of each object as soon as its creation is confirmed, on a thread of the update.
        """
        began, armed = time.monotonic(), self.armed
        future = self._worker.submit(lambda: self._apply(part, began, armed, created))
        self._worker.submit(self._settle)
        return future

    @property
    def standing(self) -> bool:
        """An update is armed, or about to be."""
        return self._arming or self.armed

    @property
    def may_arm(self) -> bool:
        """Not so soon after arming failed."""
        return time.monotonic() >= self._arm_after

    def arm(self) -> "Future[None]":
        """Starts an update ahead of need."""
        self._arming = True
        return self._worker.submit(self._arm)

    def disarm(self) -> "Future[None]":
        """Ends an armed update unchanged; one that is running is awaited."""
        return self._worker.submit(self._disarm)

    def recover(self) -> "Future[None]":
        """Clears what a killed writer left: locks and pending operations."""
        return self._worker.submit(self._recover)

    def adopt(self, objects: list[Manifest]) -> "Future[None]":
        """Writes live objects of ours into the state, which lost them."""
        return self._worker.submit(lambda: self._adopt(objects))

    def drain(self) -> "Future[tuple[ObjectKey, ...]]":
        """Deletes every object of the stack, then the stack. The keys of the objects."""
        return self._worker.submit(self._drain)

    def abort(self, error: ApplyError) -> None:
        """Interrupts what runs: an armed update ends untouched, a running one finishes what it has begun."""
        self._standby.abort(error)

    def interrupt(self) -> None:
        """SIGINT to the engine, whatever it does, unless it is about to end. Takes no lock."""
        self._standby.interrupt()

    def close(self) -> None:
        """Ends the update that was aborted, and awaits the tasks."""
        self._worker.close(self._disarm)

    def _apply(self, part: Part, began: float, armed: bool, created: Callable[[ObjectKey], None]) -> Outcome:
        if not self.armed and not (review := self._reviewer.review(part, self._keeper.read())).begins:
            return outcome_of(part, review)
        update, state, review = self._reviewed(part)
        reviewed = time.monotonic()
        if not review.begins:
            return outcome_of(part, review)
        self._backend.check_room()
        self._gate()
        operations = review.operations(state)
        deletions = {key: urn for key, (urn, operation) in operations.items() if operation is Operation.DELETE}
        made_by = {urn: key for key, (urn, operation) in operations.items() if operation is Operation.CREATE}
        released = time.monotonic()
        progress = update.execute(
            review.order(state),
            dict(operations.values()),
            lambda: self._confirmed(deletions),
            lambda urn: created(made_by[urn]),
        )
        failures = {
            key: failure
            for key, (urn, operation) in operations.items()
            if (failure := update.failure(urn, operation)) is not None
        }
        # The next delta is assigned by it, and may come before the engine has written it.
        made = {key: each for key, each in (review.creations | review.updates).items() if key not in failures}
        self._keeper.state = state.advanced(
            ((each, progress.done[operations[key][0]]) for key, each in made.items()),
            deletions.keys() - failures.keys(),
        )
        first = progress.first_operation_at or released
        timing = Timing(
            stack=self.name,
            armed=armed,
            start=0.0 if armed else self._ready_at - began,
            review=reviewed - (began if armed else self._ready_at),
            engine=first - released,
            provider=(progress.last_operation_at or first) - first,
        )
        return outcome_of(part, review, failures, timing)

    def _reviewed(self, part: Part) -> tuple[Update, State, Review]:
        """An armed update, the state that its engine has, and what the part comes to on it."""
        for _ in range(MOST_MENDS):
            update = self._standby.take()
            self._ready_at = time.monotonic()
            state = self.state
            review = self._reviewer.review(part, state)
            if review.mends:
                self._standby.call_off()
                self._keeper.mend(review.drop, review.adopt.values())
            elif self._keeper.changed():
                log.warning("the state was changed by others: starting anew", stack=self.name)
                self._standby.abandon()
            else:
                return update, state, review
        raise StateChangedError(
            f"stack {self.name}: its state does not stay as it is read; nothing was changed",
            "see who else changes it: `pulumi stack history`",
        )

    def _arm(self) -> None:
        try:
            self._standby.take()
        except (LeaseLostError, UpdateInterruptedError) as error:
            log.debug("not armed", stack=self.name, reason=error.message)
        except PlimsollError as error:
            self._arm_after = time.monotonic() + _REST_SECONDS
            log.warning("no update could be armed", stack=self.name, error=error.message)
        finally:
            self._arming = False

    def _disarm(self) -> None:
        self._settle()
        self._standby.call_off()

    def _settle(self) -> None:
        """After an update: awaits its end, brings the state and the history in order."""
        update = self._standby.ended()
        if update is None:
            return
        if update.error is not None and not update.told:
            log.warning("the update did not end well", stack=self.name, error=update.error.message)
        try:
            self._keeper.read()
            self._backend.prune(self.name, self._history)
            self._gate()
            self._recover()
        except (LeaseLostError, UpdateInterruptedError) as error:
            log.debug("left as it is", stack=self.name, reason=error.message)
        except PlimsollError as error:
            log.warning("the stack could not be settled", stack=self.name, error=error.message)

    def _recover(self) -> None:
        self._standby.call_off()
        self._keeper.recover()

    def _adopt(self, objects: list[Manifest]) -> None:
        if not self.state.adoptable:
            self._standby.take()  # makes the stack and its provider
        self._standby.call_off()
        self._keeper.read()
        self._keeper.mend((), [(live, importable(live)) for live in objects])

    def _drain(self) -> tuple[ObjectKey, ...]:
        self._disarm()
        return self._keeper.remove()

    def _confirmed(self, keys: Mapping[ObjectKey, str]) -> set[str]:
        """URNs of objects that are gone, or on their way: the plugin waits for finalizers, the delta does not."""
        found = self._reviewer.live(keys)
        return {
            urn
            for key, urn in keys.items()
            if (live := found[key]) is None or live["metadata"].get("deletionTimestamp")
        }
