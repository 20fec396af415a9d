"""One capacity stack and the single thread that works on it."""

import threading
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, TypeVar

import structlog

from plimsoll.apply.delta import Outcome, Part, Review, Reviewer, Timing, outcome_of
from plimsoll.apply.engine import CapacityStack, ClusterProvider, Operation
from plimsoll.apply.errors import (
    ApplyError,
    LeaseLostError,
    PlanMismatchError,
    StateChangedError,
    UpdateInterruptedError,
)
from plimsoll.apply.lease import Lease
from plimsoll.apply.settings import ApplySettings
from plimsoll.apply.stacks.keeper import StateKeeper
from plimsoll.apply.stacks.life import Phase
from plimsoll.apply.stacks.update import Updates
from plimsoll.apply.state import Backend, Manifest, State, importable
from plimsoll.errors import PlimsollError
from plimsoll.model import ObjectKey

T = TypeVar("T")

_MOST_TRIES: Final = 4
"""A state that does not come in order after so many tries never will."""
_REST_SECONDS: Final = 30.0
"""After no update could be pre-started: deltas are applied without meanwhile."""
_FORGET_SECONDS: Final = 30.0
"""What others remove within this time is forgotten together: the state is edited while no engine runs."""

log = structlog.get_logger(__name__)


class Shard:
    """Its thread does one task after the other: an update is pre-started, given its part of a delta, settled.

    What an update goes through is its `life`; methods that return futures may be called from anywhere. `on_idle` is
    called, on the thread, when the last task has ended.
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
        self._rests_until = 0.0
        self._forgets_at = 0.0
        self._looked_for: set[str] = set()
        """UIDs that no watch shows, and that are in the cluster all the same."""
        self._on_idle = on_idle
        self._due = 0
        """How many tasks run or wait."""
        self._counting = threading.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=stack.name)

    @property
    def state(self) -> State:
        """As last read, or as the last delta will leave it."""
        return self._keeper.state

    @property
    def pid(self) -> int | None:
        """The running engine."""
        return self._stack.engine.pid

    @property
    def idle(self) -> bool:
        """No task is running or waiting; a pre-started update may be."""
        return self._due == 0

    @property
    def pre_started(self) -> bool:
        """Its engine waits for a delta."""
        return self._updates.phase is Phase.READY

    @property
    def standing(self) -> bool:
        """An update is pre-started, or about to be."""
        return self._pre_starting or self.pre_started

    @property
    def rests(self) -> bool:
        """It is too soon after no update could be pre-started."""
        return time.monotonic() < self._rests_until

    @property
    def rank(self) -> int:
        """How soon it can begin: 0 at once, 1 when its engine has started, 2 after a start, 3 when it is done."""
        if self.idle:
            return 0 if self.pre_started else 2
        return 1 if self._pre_starting and self._due == 1 else 3

    def pre_start(self) -> "Future[None]":
        """Starts an update ahead of need."""
        self._pre_starting = True
        return self._submit(self._pre_start)

    def call_off(self) -> "Future[None]":
        """Ends a pre-started update unchanged; one that is running is awaited."""
        return self._submit(self._call_off)

    def apply(self, part: Part, created: Callable[[ObjectKey], None]) -> "Future[Outcome]":
        """Does its part of a Plan; the future is there as soon as the engine has confirmed every operation.

        `created` is told of each object as soon as its creation is confirmed, on a thread of the update.
        """
        began, pre_started = time.monotonic(), self.pre_started
        future = self._submit(lambda: self._apply(part, began, pre_started, created))
        self._submit(self._settle)
        return future

    def recover(self) -> "Future[None]":
        """Clears what a killed writer left: locks and pending operations."""
        return self._submit(self._recover)

    def forget_missing(self, there: Collection[str]) -> None:
        """Drops from the state what is neither among the UIDs `there` nor in the cluster; nothing while it is busy.

        What is in the cluster all the same is looked for once.
        """
        missing = {uid for each in self.state.resources.values() if (uid := each.uid) not in there}
        self._looked_for &= missing
        if missing > self._looked_for and self.idle and time.monotonic() >= self._forgets_at:
            self._forgets_at = time.monotonic() + _FORGET_SECONDS
            self._submit(lambda: self._forget(missing))

    def adopt(self, objects: list[Manifest]) -> "Future[None]":
        """Writes live objects of ours into the state, which lost them."""
        return self._submit(lambda: self._adopt(objects))

    def drain(self) -> "Future[tuple[ObjectKey, ...]]":
        """Deletes every object of the stack, then the stack. The keys of the objects."""
        return self._submit(self._drain)

    def stop(self, error: ApplyError) -> None:
        """Begins nothing more: a pre-started update ends untouched, a running one finishes what it has begun."""
        self._updates.stop(error)

    def interrupt(self) -> None:
        """SIGINT to the engine, whatever it does, unless it is about to end. Takes no lock."""
        self._updates.interrupt()

    def close(self) -> None:
        """Awaits the tasks, and the end of the update."""
        self._thread.submit(self._call_off)
        self._thread.shutdown(wait=True)

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

    def _take(self) -> None:
        """Sees to a pre-started update, on a state without pending operations."""
        for _ in range(_MOST_TRIES):
            if self.pre_started:
                return
            self._updates.end()
            self._lease.require()
            self._keeper.prepare()
            self._keeper.unlocking(self._updates.start)
            if self._keeper.read().interrupted:
                self._updates.end()
                self._keeper.clear_pending()
        raise PlanMismatchError(f"stack {self.name}: pending operations remain; run `pulumi refresh` on it")

    def _apply(self, part: Part, began: float, pre_started: bool, created: Callable[[ObjectKey], None]) -> Outcome:
        if not self.pre_started and not (review := self._reviewer.review(part, self._keeper.read())).begins:
            return outcome_of(part, review)
        state, review = self._reviewed(part)
        reviewed = time.monotonic()
        if not review.begins:
            return outcome_of(part, review)
        self._backend.check_room()
        self._lease.require()
        operations = review.operations(state)
        deletions = {key: urn for key, (urn, operation) in operations.items() if operation is Operation.DELETE}
        made_by = {urn: key for key, (urn, operation) in operations.items() if operation is Operation.CREATE}
        released = time.monotonic()
        progress = self._updates.execute(
            review.order(state),
            dict(operations.values()),
            lambda: self._confirmed(deletions),
            lambda urn: created(made_by[urn]),
        )
        failures = {
            key: failure for key, (urn, _) in operations.items() if (failure := progress.failure(urn)) is not None
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
            pre_started=pre_started,
            start=0.0 if pre_started else self._ready_at - began,
            review=reviewed - (began if pre_started else self._ready_at),
            engine=first - released,
            provider=(progress.last_operation_at or first) - first,
        )
        return outcome_of(part, review, failures, timing)

    def _reviewed(self, part: Part) -> tuple[State, Review]:
        """What the part comes to on the state that the engine of a pre-started update has."""
        for _ in range(_MOST_TRIES):
            self._take()
            self._ready_at = time.monotonic()
            state = self.state
            review = self._reviewer.review(part, state)
            if review.mends:
                self._updates.end()
                self._keeper.mend(review.drop, review.adopt.values())
            elif self._keeper.changed():
                log.warning("the state was changed by another process: starting again", stack=self.name)
                self._updates.abandon()
            else:
                return state, review
        raise StateChangedError(
            f"stack {self.name}: its state changes while it is read; nothing was changed",
            "run `pulumi stack history` to see which process changes it",
        )

    def _pre_start(self) -> None:
        try:
            self._take()
        except (LeaseLostError, UpdateInterruptedError) as error:
            log.debug("not pre-started", stack=self.name, reason=error.message)
        except PlimsollError as error:
            self._rests_until = time.monotonic() + _REST_SECONDS
            log.warning("no update could be pre-started", stack=self.name, error=error.message)
        finally:
            self._pre_starting = False

    def _call_off(self) -> None:
        self._settle()
        self._updates.end()

    def _settle(self) -> None:
        """After an update: awaits its end, brings the state and the history in order."""
        progress = self._updates.ended()
        if progress is None:
            return
        if progress.error is not None and not progress.failed:  # those were told
            log.warning("the update ended with an error", stack=self.name, error=progress.error.message)
        self._tidy()

    def _forget(self, missing: set[str]) -> None:
        if self._tidy():
            self._looked_for = missing

    def _tidy(self) -> bool:
        """Brings the state and the history in order; whether that was done."""
        try:
            self._keeper.read()
            self._backend.prune(self.name, self._history)
            self._lease.require()
            self._recover()
        except (LeaseLostError, UpdateInterruptedError) as error:
            log.debug("left as it is", stack=self.name, reason=error.message)
        except PlimsollError as error:
            log.warning("cannot repair the stack", stack=self.name, error=error.message)
        else:
            return True
        return False

    def _recover(self) -> None:
        self._updates.end()
        self._keeper.recover()

    def _adopt(self, objects: list[Manifest]) -> None:
        if not self.state.adoptable:
            self._take()  # makes the stack and its provider
        self._updates.end()
        self._keeper.read()
        self._keeper.mend((), [(live, importable(live)) for live in objects])

    def _drain(self) -> tuple[ObjectKey, ...]:
        self._call_off()
        return self._keeper.remove()

    def _confirmed(self, keys: Mapping[ObjectKey, str]) -> set[str]:
        """URNs of objects that are gone, or on their way: the plugin waits for finalizers, the delta does not."""
        found = self._reviewer.live(keys)
        return {
            urn
            for key, urn in keys.items()
            if (live := found[key]) is None or live["metadata"].get("deletionTimestamp")
        }
