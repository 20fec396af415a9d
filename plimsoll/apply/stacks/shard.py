"""Shard: one capacity stack and the thread that works on it."""

import threading
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, TypeVar

import structlog

from plimsoll.apply.delta import Outcome, Part, Review, Reviewer, Timing, outcome_of
from plimsoll.apply.engine import CapacityStack, ClusterProvider, DeclaredResource, Operation
from plimsoll.apply.errors import (
    ApplyError,
    Failure,
    LeaseLostError,
    PlanMismatchError,
    StateChangedError,
    UpdateInterruptedError,
)
from plimsoll.apply.lease import Lease
from plimsoll.apply.settings import ApplySettings
from plimsoll.apply.stacks.keeper import StateKeeper
from plimsoll.apply.stacks.update import Updates
from plimsoll.apply.stacks.update_state import Phase
from plimsoll.apply.state import Backend, Manifest, State, importable
from plimsoll.errors import PlimsollError
from plimsoll.model import ObjectKey

T = TypeVar("T")

_MOST_TRIES: Final = 4
"""Maximum number of attempts to have a pre-started update whose state is consistent with the cluster."""
_BACKOFF_SECONDS: Final = 30.0
"""Back-off in seconds after a pre-start failed. Plans are applied without a pre-started update meanwhile."""
_FORGET_SECONDS: Final = 30.0
"""Minimum seconds between two edits of the state for objects that others deleted: no engine may run meanwhile."""

log = structlog.get_logger(__name__)


class Shard:
    """A stack whose tasks run one after the other on its thread. In the usual order, these pre-start an update, release
    it to apply a part of a Plan, and settle it: await its end, then tidy the state and the history.

    The drawing in `update_state` shows the phases of an update. Methods that return futures may be called from any
    thread. `on_idle` is called, on the shard's thread, when the last task has ended.
    """

    def __init__(
        self,
        stack: CapacityStack,
        *,
        backend: Backend,
        reviewer: Reviewer,
        provider: ClusterProvider,
        settings: ApplySettings,
        lease: Lease,
        on_idle: Callable[[], None],
    ) -> None:
        self.name = stack.name
        self._stack = stack
        self._backend = backend
        self._reviewer = reviewer
        self._history = settings.history
        self._lease = lease
        self._keeper = StateKeeper(stack, backend, reviewer, lease, provider.cluster)
        self._updates = Updates(stack, provider, settings.policy_packs)
        self._ready_at = 0.0
        self._pre_starting = False
        self._backoff_until = 0.0
        self._next_forget = 0.0
        self._unwatched: set[str] = set()
        """UIDs that no watch shows although the objects exist in the cluster."""
        self._on_idle = on_idle
        self._due = 0
        """Number of running and waiting tasks."""
        self._counting = threading.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=stack.name)

    @property
    def state(self) -> State:
        """The state as last read, or as it will be after the last Plan."""
        return self._keeper.state

    def restored(self) -> bool:
        """Whether a damaged state was set aside since the last call. Objects of the stack may be in no state then."""
        found, self._keeper.restored = self._keeper.restored, False
        return found

    @property
    def pid(self) -> int | None:
        """Process id of the running engine."""
        return self._stack.engine.pid

    @property
    def idle(self) -> bool:
        """Whether no task is running or waiting. An update may be pre-started."""
        return self._due == 0

    @property
    def pre_started(self) -> bool:
        """Whether an update is pre-started."""
        return self._updates.phase is Phase.READY

    @property
    def has_pre_started(self) -> bool:
        """Whether an update is pre-started or about to be."""
        return self._pre_starting or self.pre_started

    @property
    def backing_off(self) -> bool:
        """Whether a pre-start failed recently."""
        return time.monotonic() < self._backoff_until

    @property
    def rank(self) -> int:
        """How soon it can start to apply: 0 at once, 1 when its engine has started, 2 after starting an engine, 3 after
        its tasks."""
        if self.idle:
            return 0 if self.pre_started else 2
        return 1 if self._pre_starting and self._due == 1 else 3

    def pre_start(self) -> "Future[None]":
        """Pre-starts an update."""
        self._pre_starting = True
        return self._submit(self._pre_start)

    def call_off(self) -> "Future[None]":
        """Ends a pre-started update without changes, or waits for the end of a running one."""
        return self._submit(self._call_off)

    def apply(self, part: Part, created: Callable[[ObjectKey], None]) -> "Future[Outcome]":
        """Applies its part of a Plan. The future completes as soon as the engine has confirmed every operation.

        `created` is called with each object when its creation is confirmed, on a thread of the update.
        """
        began, pre_started = time.monotonic(), self.pre_started
        future = self._submit(lambda: self._apply(part, began, pre_started, created))
        self._submit(self._settle)
        return future

    def recover(self) -> "Future[None]":
        """Clears what a killed writer left: locks and pending operations."""
        return self._submit(self._recover)

    def forget_missing(self, live_uids: Collection[str]) -> None:
        """Removes the entries of objects that are neither in `live_uids` nor in the cluster. Does nothing while tasks
        run.

        Objects that exist although no watch shows them are read only once.
        """
        missing = {uid for each in self.state.resources.values() if (uid := each.uid) not in live_uids}
        self._unwatched &= missing
        if missing > self._unwatched and self.idle and time.monotonic() >= self._next_forget:
            self._next_forget = time.monotonic() + _FORGET_SECONDS
            self._submit(lambda: self._forget(missing))

    def adopt(self, objects: list[Manifest]) -> "Future[None]":
        """Adds live objects that are missing in the state."""
        return self._submit(lambda: self._adopt(objects))

    def drain(self) -> "Future[tuple[ObjectKey, ...]]":
        """Deletes every object of the stack, then the stack. Returns the keys of the objects."""
        return self._submit(self._drain)

    def stop(self, error: ApplyError) -> None:
        """Starts nothing more: a pre-started update ends without changes, a running one finishes its current
        operations."""
        self._updates.stop(error)

    def lose(self, error: ApplyError) -> None:
        """Starts nothing more, and kills the engine, whatever it does: another writer may be at work."""
        self._updates.lose(error)

    def interrupt(self) -> None:
        """Sends SIGINT to the engine if it changes objects. Takes no lock."""
        self._updates.interrupt()

    def close(self) -> bool:
        """Waits for the tasks and the end of the update. Returns whether the stack is certainly unlocked."""
        self._thread.submit(self._call_off)
        unlocked = self._thread.submit(self._unlock)
        self._thread.shutdown(wait=True)
        return unlocked.result()

    def _submit(self, task: Callable[[], T]) -> "Future[T]":
        with self._counting:
            self._due += 1
        return self._thread.submit(self._perform, task)

    def _perform(self, task: Callable[[], T]) -> T:
        try:
            return task()
        finally:
            with self._counting:
                self._due -= 1
                idle = self.idle
            if idle:
                self._on_idle()

    def _ensure_pre_started(self) -> None:
        """Ensures that an update is pre-started, with a state without pending operations, whose engine deletes no
        object."""
        for _ in range(_MOST_TRIES):
            if self.pre_started:
                return
            self._updates.end()
            self._lease.require()
            self._keeper.prepare()
            self._keeper.unlocking(self._updates.start)
            state = self._keeper.read()
            if state.interrupted or state.deletes_objects:
                self._updates.end()
                self._keeper.clear_pending()
        raise PlanMismatchError(f"stack {self.name}: pending operations remain; run `pulumi refresh` on it")

    def _apply(self, part: Part, began: float, pre_started: bool, created: Callable[[ObjectKey], None]) -> Outcome:
        if not self.pre_started and not (review := self._reviewer.review(part, self._keeper.read())).has_work:
            return outcome_of(part, review)
        state, review = self._reviewed(part)
        reviewed = time.monotonic()
        if not review.has_work:
            return outcome_of(part, review)
        self._backend.check_room()
        self._lease.require()
        undeleted: dict[ObjectKey, Failure] = {}

        def delete(failed: Collection[str]) -> list[DeclaredResource]:
            undeleted.update(review.held(part, {key for key, each in review.updates.items() if each.name in failed}))
            undeleted.update(self._delete({key: review.deletions[key] for key in review.deletions.keys() - undeleted}))
            return [state.resources[key].declared for key in undeleted]

        operations = review.operations(state)
        made_by = {urn: key for key, (urn, operation) in operations.items() if operation is Operation.CREATE}
        released = time.monotonic()
        progress = self._updates.execute(
            review.registrations(state)._replace(delete=delete),
            dict(operations.values()),
            lambda urn: created(made_by[urn]),
        )
        failures = {
            key: failure for key, (urn, _) in operations.items() if (failure := progress.failure(urn)) is not None
        } | undeleted
        # The next Plan is assigned by this state, and may come before the engine has written it.
        made = {key: each for key, each in (review.creations | review.updates).items() if key not in failures}
        self._keeper.state = state.advanced(
            ((each, progress.done[operations[key][0]]) for key, each in made.items()),
            review.deletions.keys() - failures.keys(),
        )
        if undeleted:
            self._lease.require()
        first = progress.first_operation_at or released
        timing = Timing(
            stack=self.name,
            pre_started=pre_started,
            start=0.0 if pre_started else self._ready_at - began,
            review=reviewed - (began if pre_started else self._ready_at),
            engine=first - released,
            provider=(progress.last_operation_at or first) - first,
        )
        return outcome_of(part, review, failures, timing)

    def _delete(self, deletions: Mapping[ObjectKey, str]) -> Mapping[ObjectKey, Failure]:
        """Deletes objects by key and UID. Returns those that may still be there, with the reasons."""
        try:
            return self._reviewer.delete(deletions, self._lease.require)
        except PlimsollError as error:
            return dict.fromkeys(deletions, Failure.of(error))

    def _reviewed(self, part: Part) -> tuple[State, Review]:
        """The operations of the part, reviewed against the state that the engine of the pre-started update has read."""
        for _ in range(_MOST_TRIES):
            self._ensure_pre_started()
            self._ready_at = time.monotonic()
            state = self.state
            review = self._reviewer.review(part, state)
            if self._keeper.changed():
                self._end()
            elif review.edits_state:
                self._updates.end()
                self._keeper.read()  # the engine of a new stack has written the provider, which adopted objects need
                self._keeper.repair(review.drop, review.adopt.values())
            else:
                return state, review
        raise StateChangedError(
            f"stack {self.name}: its state changes while it is read; nothing was changed",
            "run `pulumi stack history` to see which process changes it",
        )

    def _pre_start(self) -> None:
        try:
            self._ensure_pre_started()
        except (LeaseLostError, UpdateInterruptedError) as error:
            log.debug("no update was pre-started", stack=self.name, reason=error.message)
        except Exception as error:  # the shard is idle then, and would try again at once
            self._backoff_until = time.monotonic() + _BACKOFF_SECONDS
            expected = isinstance(error, PlimsollError)
            log.warning("no update could be pre-started", stack=self.name, error=str(error), exc_info=not expected)
        finally:
            self._pre_starting = False

    def _call_off(self) -> None:
        self._settle()
        self._end()

    def _end(self) -> None:
        """Ends the update. A pre-started one is killed if another process has changed the state that it has read."""
        if self.pre_started and self._keeper.changed():
            log.warning("another process changed the state: the update is abandoned", stack=self.name)
            self._updates.abandon()
        else:
            self._updates.end()

    def _settle(self) -> None:
        """After an update: waits for its end, then reads and repairs the state, and prunes the history."""
        progress = self._updates.ended()
        if progress is None:
            return
        if progress.error is not None and not progress.failed:  # those were reported already
            log.warning("the update ended with an error", stack=self.name, error=progress.error.message)
        self._tidy()

    def _forget(self, missing: set[str]) -> None:
        if self._tidy():
            self._unwatched = missing

    def _tidy(self) -> bool:
        """Reads and repairs the state, and prunes the history. Returns whether that succeeded."""
        try:
            self._end()
            self._keeper.read()
            self._backend.prune(self.name, self._history)
            self._lease.require()
            self._recover()
        except (LeaseLostError, UpdateInterruptedError) as error:
            log.debug("the state is not repaired", stack=self.name, reason=error.message)
        except PlimsollError as error:
            log.warning("cannot repair the stack", stack=self.name, error=error.message)
        else:
            return True
        return False

    def _unlock(self) -> bool:
        """Whether the stack is certainly unlocked, after breaking the lock of an engine that a signal ended."""
        try:
            return not self._stack.engine.ended_by_signal or self._keeper.break_own_lock()
        except PlimsollError as error:
            log.warning("cannot break the lock of an ended engine", stack=self.name, error=error.message)
            return False

    def _recover(self) -> None:
        self._end()
        self._keeper.recover()

    def _adopt(self, objects: list[Manifest]) -> None:
        if not self.state.adoptable:
            self._ensure_pre_started()  # creates the stack and its provider
        self._end()
        self._keeper.read()
        self._keeper.repair((), [(live, importable(live)) for live in objects])

    def _drain(self) -> tuple[ObjectKey, ...]:
        self._call_off()
        return self._keeper.remove()
