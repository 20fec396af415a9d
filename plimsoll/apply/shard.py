"""One capacity stack and the single thread that works on it."""

import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeVar

import structlog

from plimsoll.apply.backend import Backend
from plimsoll.apply.cluster_provider import ClusterProvider
from plimsoll.apply.delta import Part
from plimsoll.apply.errors import (
    ApplyError,
    Failure,
    FailureKind,
    LeaseLostError,
    LockedError,
    PlanMismatchError,
    StateChangedError,
    UpdateInterruptedError,
)
from plimsoll.apply.outcome import Outcome, Timing
from plimsoll.apply.review import Review, Reviewer
from plimsoll.apply.stack import CapacityStack
from plimsoll.apply.state import Manifest, State, importable
from plimsoll.apply.update import Operation, Progress, Update
from plimsoll.model.errors import PlimsollError
from plimsoll.model.plan import ObjectKey
from plimsoll.provider.identity import kind_of

_START_SECONDS: Final = 120.0
_MOST_MENDS: Final = 4
_REST_SECONDS: Final = 30.0
"""After arming failed: deltas are applied cold meanwhile."""
T = TypeVar("T")

log = structlog.get_logger(__name__)


class Shard:
    """A stack's life: armed, given its part of a delta, settled, armed again. Its methods return futures.

    `gate` raises where nothing may be begun any more (the Lease is lost, the writer stops); `unlock` breaks a lock
    whose holder is dead, else raises; `on_idle` is called when the last task has ended.
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
        self.stack = stack
        self.state = State.empty(stack.name)
        """As last read; it is replaced, never changed."""
        self._backend = backend
        self._reviewer = reviewer
        self._provider = provider
        self._policy_packs = policy_packs
        self._history = history
        self._gate = gate
        self._unlock = unlock
        self._on_idle = on_idle
        self._update: Update | None = None
        self._ready_at = 0.0
        self._arming = False
        self._arm_after = 0.0
        self._tasks = 0
        self._lock = threading.Lock()
        self._worker = ThreadPoolExecutor(1, thread_name_prefix=stack.name)

    @property
    def rank(self) -> int:
        """How soon it can begin: 0 at once, 1 when it is armed in a moment, 2 after a start, 3 when it is done."""
        if self.idle:
            return 0 if self.armed else 2
        return 1 if self._arming and self._tasks == 1 else 3

    @property
    def idle(self) -> bool:
        """No task is running or waiting; an armed update may be."""
        return self._tasks == 0

    @property
    def armed(self) -> bool:
        update = self._update
        return update is not None and update.armed

    @property
    def pid(self) -> int | None:
        """The running engine."""
        return self.stack.engine.pid

    def apply(self, part: Part) -> "Future[Outcome]":
        """Does its part of a Plan; the future is there as soon as the engine has confirmed every operation."""
        began, armed = time.monotonic(), self.armed
        future = self._submit(lambda: self._apply(part, began, armed))
        self._submit(self._settle)
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
        return self._submit(self._arm)

    def disarm(self) -> "Future[None]":
        """Ends an armed update unchanged; one that is running is awaited."""
        return self._submit(self._disarm)

    def recover(self) -> "Future[None]":
        """Clears what a killed writer left: locks and pending operations."""
        return self._submit(self._recover)

    def adopt(self, objects: list[Manifest]) -> "Future[None]":
        """Writes live objects of ours into the state, which lost them."""
        return self._submit(lambda: self._adopt([(live, importable(live)) for live in objects]))

    def drain(self) -> "Future[tuple[ObjectKey, ...]]":
        """Deletes every object of the stack, then the stack. The keys of the objects."""
        return self._submit(self._drain)

    def abort(self, error: ApplyError) -> None:
        """Interrupts what runs: an armed update ends untouched, a running one finishes what it has begun."""
        update = self._update
        if update is not None:
            update.abort(error)

    def interrupt(self) -> None:
        """SIGINT to the engine, whatever it does. Takes no lock."""
        self.stack.engine.interrupt()

    def close(self) -> None:
        """Ends the update that was aborted, and awaits the tasks."""
        self._worker.submit(self._disarm)
        self._worker.shutdown(wait=True)

    def _submit(self, task: Callable[[], T]) -> "Future[T]":
        with self._lock:
            self._tasks += 1
        return self._worker.submit(self._perform, task)

    def _perform(self, task: Callable[[], T]) -> T:
        try:
            return task()
        finally:
            with self._lock:
                self._tasks -= 1
                idle = self._tasks == 0
            if idle:
                self._on_idle()

    def _apply(self, part: Part, began: float, armed: bool) -> Outcome:
        if not self.armed and not (review := self._reviewer.review(part, self._read())).begins:
            return _outcome(part, review, {})
        update, state, review = self._reviewed(part)
        reviewed = time.monotonic()
        if not review.begins:
            return _outcome(part, review, {})
        self._backend.check_room()
        self._gate()
        operations = review.operations(state)
        released = time.monotonic()
        progress = update.execute(review.order(state), dict(operations.values()))
        failures = {
            key: failure
            for key, (urn, operation) in operations.items()
            if (failure := _failure(update, progress, urn, operation)) is not None
        }
        made = {**review.creations, **review.updates}
        # The next delta is assigned by it, and may come before the engine has written it.
        self.state = state.advanced(
            (
                (made[key], progress.done[urn])
                for key, (urn, _) in operations.items()
                if key in made and key not in failures
            ),
            (key for key in review.deletions if key not in failures),
        )
        first = progress.first_operation_at or released
        last = progress.last_operation_at or first
        timing = Timing(
            stack=self.name,
            armed=armed,
            start=self._ready_at - began if not armed else 0.0,
            review=reviewed - (self._ready_at if not armed else began),
            engine=first - released,
            provider=last - first,
        )
        return _outcome(part, review, failures, timing)

    def _reviewed(self, part: Part) -> tuple[Update, State, Review]:
        """An armed update, the state that its engine has, and what the part comes to on it."""
        for _ in range(_MOST_MENDS):
            update = self._armed_update()
            self._ready_at = time.monotonic()
            state = self.state
            review = self._reviewer.review(part, state)
            if review.mends:
                self._call_off()
                self._mend(review.drop, review.adopt.values())
            elif self._backend.tag(self.name) != state.tag:
                log.warning("the state was changed by others: starting anew", stack=self.name)
                self._update = None
                update.abandon()
            else:
                return update, state, review
        raise StateChangedError(
            f"stack {self.name}: its state does not stay as it is read; nothing was changed",
            "see who else changes it: `pulumi stack history`",
        )

    def _armed_update(self) -> Update:
        """The armed update; one is started where there is none, on a state without pending operations."""
        for _ in range(_MOST_MENDS):
            if self._update is not None:
                if self._update.armed:
                    return self._update
                self._call_off()
            self._gate()
            self._prepare()
            self._unlocking(self._start)
            self.state = self._read()
            if not self.state.interrupted:
                continue
            self._call_off()
            self._clear_pending()
        raise PlanMismatchError(f"stack {self.name}: pending operations come back; run `pulumi refresh` on it")

    def _start(self) -> None:
        update = Update(self.stack, self._provider.inputs, self._provider.version, self._policy_packs)
        update.start()
        self._update = update
        try:
            update.wait_armed(_START_SECONDS)
        except ApplyError:
            self._update = None
            update.join()
            raise

    def _prepare(self) -> None:
        """Makes the stack where it is missing, and its settings file where another host made it."""
        state = self._backend.read(self.name)
        if state is None:
            self.stack.init()
        elif state.salt is not None:
            self.stack.remember_salt(state.salt)

    def _read(self) -> State:
        return self._backend.read(self.name) or State.empty(self.name)

    def _arm(self) -> None:
        try:
            self._armed_update()
        except (LeaseLostError, UpdateInterruptedError) as error:
            log.debug("not armed", stack=self.name, reason=error.message)
        except PlimsollError as error:
            self._arm_after = time.monotonic() + _REST_SECONDS
            log.warning("no update could be armed", stack=self.name, error=error.message)
        finally:
            self._arming = False

    def _call_off(self) -> None:
        update, self._update = self._update, None
        if update is not None:
            update.call_off()

    def _disarm(self) -> None:
        if self._update is not None and self._update.executed:
            self._settle()
        self._call_off()

    def _settle(self) -> None:
        """After an update: awaits its end, brings the state and the history in order."""
        update = self._update
        if update is None or not update.executed:
            return
        update.join()
        self._update = None
        if update.error is not None and not update.told:
            log.warning("the update did not end well", stack=self.name, error=update.error.message)
        try:
            self.state = self._read()
            self._backend.prune(self.name, self._history)
            self._gate()
            self._recover()
        except (LeaseLostError, UpdateInterruptedError) as error:
            log.debug("left as it is", stack=self.name, reason=error.message)
        except PlimsollError as error:
            log.warning("the stack could not be settled", stack=self.name, error=error.message)

    def _recover(self) -> None:
        self._call_off()
        self.state = self._read()
        if self.state.interrupted:
            self._clear_pending()
        stale = self._stale()
        if stale:
            log.info("forgetting objects that others removed", stack=self.name, objects=[str(key) for key in stale])
            self._mend(stale, ())

    def _stale(self) -> list[ObjectKey]:
        """Keys of the state whose object has gone, or is another one of that name."""
        resources = self.state.resources
        if not resources:
            return []
        kinds = {kind_of({"apiVersion": key.api_version, "kind": key.kind}) for key in resources}
        live = {ObjectKey.of(each): each["metadata"]["uid"] for each in self._reviewer.labelled([self.name], kinds)}
        # A label can be taken away: only a look at the object itself tells that it has gone.
        suspects = [key for key, resource in resources.items() if live.get(key) != resource.uid]
        found = self._reviewer.live(suspects)
        return [key for key in suspects if (obj := found[key]) is None or obj["metadata"]["uid"] != resources[key].uid]

    def _clear_pending(self) -> None:
        """Drops the operations that a killed engine left, and takes over the objects that it had made."""
        pending = {each.key: each for each in self.state.pending if each.operation in ("creating", "updating")}
        found = self._reviewer.live(pending)
        adopted = [
            (live, inputs)
            for key, live in found.items()
            if live is not None and _made_by(live, inputs := pending[key].inputs)
        ]
        log.info("clearing pending operations", stack=self.name, adopted=len(adopted))
        self._mend((), adopted)

    def _adopt(self, objects: list[tuple[Manifest, Manifest]]) -> None:
        if not self.state.adoptable:
            self._armed_update()  # makes the stack and its provider
        self._call_off()
        self.state = self._read()
        self._mend((), objects)

    def _mend(self, drop: Iterable[ObjectKey], adopt: Iterable[tuple[Manifest, Manifest]]) -> None:
        """Edits the state, with no update armed."""
        self._gate()
        if self.state.salt is not None:
            self.stack.remember_salt(self.state.salt)
        deployment = self.state.edited(drop, adopt)
        self._unlocking(lambda: self.stack.replace_state(deployment))
        self.state = self._read()

    def _drain(self) -> tuple[ObjectKey, ...]:
        self._disarm()
        if self._backend.read(self.name) is None:
            return ()
        self._prepare()
        self._recover()
        keys = tuple(self.state.resources)
        if self.state.deployment.get("resources"):
            self._unlocking(self.stack.destroy_resources)
        self._unlocking(self.stack.remove)
        self.state = State.empty(self.name)
        return keys

    def _unlocking(self, command: Callable[[], None]) -> None:
        """Runs a command that takes the stack's lock; a dead holder's lock is broken once."""
        try:
            command()
        except LockedError as error:
            self._unlock(self.stack, error)
            command()


def _made_by(live: Manifest, inputs: Manifest) -> bool:
    """Whether a live object is what these inputs made, by the labels and annotations that we set."""
    metadata, declared = live["metadata"], inputs["metadata"]
    return not metadata.get("deletionTimestamp") and all(
        (declared.get(field) or {}).items() <= (metadata.get(field) or {}).items()
        for field in ("labels", "annotations")
    )


def _failure(update: Update, progress: Progress, urn: str, operation: Operation) -> Failure | None:
    if urn not in progress.done:
        return update.failure(urn)
    metadata = progress.done[urn].get("metadata") or {}
    if operation is Operation.CREATE and metadata.get("deletionTimestamp"):
        # It met an object of its name on the way out, which takes the new fields with it.
        return Failure(FailureKind.BEING_DELETED, "an object of that name is still being deleted")
    return None


def _outcome(part: Part, review: Review, failures: dict[ObjectKey, Failure], timing: Timing | None = None) -> Outcome:
    failed = {**review.failed, **failures}

    def succeeded(keys: Iterable[ObjectKey]) -> tuple[ObjectKey, ...]:
        return tuple(key for key in keys if key not in failed and key not in review.forgotten)

    return Outcome(
        created=succeeded(each.key for each in part.creations),
        updated=succeeded(each.key for each in part.updates),
        deleted=succeeded(each.key for each in part.deletions),
        forgotten=tuple(review.forgotten),
        failed=MappingProxyType(failed),
        timings=(timing,) if timing is not None else (),
    )
