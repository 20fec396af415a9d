"""StateKeeper: keeps the state of one stack consistent with the cluster: adopts objects that are missing in the state,
and removes entries whose objects no longer exist."""

from collections.abc import Callable, Iterable

import structlog

from plimsoll.apply.delta import Reviewer
from plimsoll.apply.engine import CapacityStack
from plimsoll.apply.errors import LockedError, LockHolder, StateDamagedError, UpdateFailedError
from plimsoll.apply.identity import ClusterIdentity
from plimsoll.apply.lease import Lease
from plimsoll.apply.objects import is_being_deleted, kind_of_key
from plimsoll.apply.stacks.locks import break_stale
from plimsoll.apply.state import Backend, Manifest, State, require_own
from plimsoll.model import ObjectKey

log = structlog.get_logger(__name__)


class StateKeeper:
    """The state of one stack, as last read. The caller ensures that no engine runs during an edit.

    Without the Lease, the state is not edited and no lock is broken.
    """

    def __init__(
        self, stack: CapacityStack, backend: Backend, reviewer: Reviewer, lease: Lease, cluster: ClusterIdentity
    ) -> None:
        self.state = State.empty(stack.name)
        """It is replaced, never changed."""
        self.restored = False
        """Whether a damaged state was set aside, so that it may lack objects of the stack. The reader resets it."""
        self._stack = stack
        self._backend = backend
        self._reviewer = reviewer
        self._lease = lease
        self._cluster = cluster

    def read(self) -> State:
        """Reads the state. Raises OtherClusterError if it is that of another cluster, and does not change it."""
        state = self._backend.read(self._stack.name) or State.empty(self._stack.name)
        require_own(state, self._cluster)
        self.state = state
        return state

    def changed(self) -> bool:
        """Whether the state was written since it was read."""
        return self._backend.tag(self._stack.name) != self.state.tag

    def prepare(self) -> None:
        """Creates the stack if it is missing, and its settings file if another host created it. No engine may run.

        Removes files that a killed engine left incomplete, because every further engine would fail on them, and sets a
        damaged state aside.
        """
        self._backend.repair(self._stack.name)
        state = self._readable()
        if state is None:
            self._stack.init()
        elif state.secrets:
            self._stack.remember_secrets(state.secrets)

    def recover(self) -> None:
        """Clears pending operations and the lock of a writer that has ended, and removes entries of objects that others
        deleted."""
        self._backend.repair(self._stack.name)
        self._readable()
        if self.read().interrupted:
            self.clear_pending()
        stale = self._stale()
        if stale:
            stack = self._stack.name
            log.info(
                "removing objects from the state that no longer exist", stack=stack, objects=[str(key) for key in stale]
            )
        if self._lease.expired_holders and self.state.deployment:
            self._break_left_lock()
        if stale or self.state.deletes_objects:
            self.repair(stale, ())

    def clear_pending(self) -> None:
        """Clears the pending operations of a killed engine, and adopts the objects that it had created."""
        pending = {each.key: each for each in self.state.pending if each.operation in ("creating", "updating")}
        found = self._reviewer.live(pending)
        adopted = [
            (live, inputs)
            for key, live in found.items()
            if live is not None and _made_by(live, inputs := pending[key].inputs)
        ]
        log.info("clearing pending operations", stack=self._stack.name, adopted=len(adopted))
        self.repair((), adopted)

    def repair(self, drop: Iterable[ObjectKey], adopt: Iterable[tuple[Manifest, Manifest]]) -> None:
        """Edits the state: removes `drop` and pending operations, and adds the (live, inputs) of `adopt`."""
        self._lease.require()
        if self.state.secrets:
            self._stack.remember_secrets(self.state.secrets)
        deployment = self.state.edited(drop, adopt)
        self.unlocking(lambda: self._stack.replace_state(deployment))
        self.read()

    def remove(self) -> tuple[ObjectKey, ...]:
        """Deletes every object of the stack, then the stack. Returns the keys of the objects."""
        if self._readable() is None:
            return ()
        self.recover()
        self.prepare()
        keys = tuple(self.state.resources)
        recorded = {key: each.uid for key, each in self.state.resources.items()}
        refused = self._reviewer.delete(recorded, self._lease.require)
        for key, failure in refused.items():
            raise UpdateFailedError(f"stack {self._stack.name}: {key} was not deleted: {failure.message}")
        if self.state.deployment.get("resources"):
            self.unlocking(self._stack.destroy_resources)
        self.unlocking(self._stack.remove)
        self.state = State.empty(self._stack.name)
        return keys

    def unlocking(self, command: Callable[[], None]) -> None:
        """Runs a command that takes the stack's lock. The lock of a holder that has ended is broken once."""
        try:
            command()
        except LockedError as error:
            self._break_lock(error.holders)
            command()

    def break_own_lock(self) -> bool:
        """Breaks the lock that an ended engine of this writer left; also while the writer stops, as long as it holds
        the Lease. Returns whether the stack is certainly unlocked. Raises LockedError if others hold the lock."""
        holders = self._backend.lock_holders(self._stack.name)
        if holders and self._lease.held:
            self._backend.repair(self._stack.name)  # of what the engine had begun to write
            break_stale(self._stack, holders, self._lease.identity, ())
            return True
        return holders == ()

    def _readable(self) -> State | None:
        """The state in the backend; None if there is none.

        A damaged one is set aside, and a backup takes its place: what was done since is missing in it, as after a kill.
        Raises StateDamagedError if the backend has no backups of its own.
        """
        stack = self._stack.name
        try:
            return self._backend.read(stack)
        except StateDamagedError as error:
            self._lease.require()
            if (found := self._backend.set_aside(stack)) is None:
                raise
            self.restored = True
            log.error(
                "a damaged state was set aside: its objects are recovered from a backup and by their labels",
                stack=stack,
                error=error.message,
                damaged=found.damaged,
                backup=found.backup or "none",
            )
            return self._backend.read(stack)

    def _break_left_lock(self) -> None:
        """Breaks the lock that a writer left whose Lease has expired."""
        holders = self._backend.lock_holders(self._stack.name)
        if holders is None:
            self.repair((), ())  # takes the lock, and is told who holds it
        elif holders:
            self._break_lock(holders)

    def _break_lock(self, holders: tuple[LockHolder, ...]) -> None:
        self._lease.require()
        break_stale(self._stack, holders, self._lease.identity, self._lease.expired_holders)

    def _stale(self) -> list[ObjectKey]:
        """Keys of entries whose object no longer exists, or was replaced by another of that name."""
        resources = self.state.resources
        if not resources:
            return []
        kinds = {kind_of_key(key) for key in resources}
        listed = self._reviewer.labelled(kinds, self._stack.name, metadata_only=True)
        live = {ObjectKey.of(each): each["metadata"]["uid"] for each in listed}
        # Labels can be removed, so only reading the object itself shows that it was deleted.
        suspects = [key for key, resource in resources.items() if live.get(key) != resource.uid]
        found = self._reviewer.live(suspects)
        return [key for key in suspects if (obj := found[key]) is None or obj["metadata"]["uid"] != resources[key].uid]


def _made_by(live: Manifest, inputs: Manifest) -> bool:
    """Whether a live object was created from these inputs, by the labels and annotations that Plimsoll sets."""
    metadata, declared = live["metadata"], inputs["metadata"]
    return not is_being_deleted(live) and all(
        (declared.get(field) or {}).items() <= (metadata.get(field) or {}).items()
        for field in ("labels", "annotations")
    )
