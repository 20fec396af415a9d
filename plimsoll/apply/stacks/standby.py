"""The one update of a stack: armed ahead of need or when it is needed, called off, or awaited."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from plimsoll.apply.engine.cluster_provider import ClusterProvider
from plimsoll.apply.engine.stack import CapacityStack
from plimsoll.apply.errors import ApplyError, PlanMismatchError
from plimsoll.apply.stacks.keeper import StateKeeper
from plimsoll.apply.stacks.update import Update

MOST_MENDS: Final = 4
"""A state that does not come in order after so many tries never will."""
_START_SECONDS: Final = 120.0


class Standby:
    """A stack's update, from its start to its end; there is at most one.

    For the stack's own thread; `armed`, `abort` and `interrupt` may be called from anywhere. `gate` raises where
    nothing may be begun any more.
    """

    def __init__(
        self,
        stack: CapacityStack,
        keeper: StateKeeper,
        provider: ClusterProvider,
        *,
        policy_packs: tuple[Path, ...],
        gate: Callable[[], None],
    ) -> None:
        self._stack = stack
        self._keeper = keeper
        self._provider = provider
        self._policy_packs = policy_packs
        self._gate = gate
        self._update: Update | None = None

    @property
    def armed(self) -> bool:
        update = self._update
        return update is not None and update.armed

    def take(self) -> Update:
        """The armed update; one is started where there is none, on a state without pending operations."""
        for _ in range(MOST_MENDS):
            if self._update is not None:
                if self._update.armed:
                    return self._update
                self.call_off()
            self._gate()
            self._keeper.prepare()
            self._keeper.unlocking(self._start)
            if self._keeper.read().interrupted:
                self.call_off()
                self._keeper.clear_pending()
        raise PlanMismatchError(f"stack {self._stack.name}: pending operations come back; run `pulumi refresh` on it")

    def call_off(self) -> None:
        """Ends it unchanged, if there is one."""
        update, self._update = self._update, None
        if update is not None:
            update.call_off()

    def abandon(self) -> None:
        """Ends it, if there is one, whose state others have changed under it."""
        update, self._update = self._update, None
        if update is not None:
            update.abandon()

    def ended(self) -> Update | None:
        """Awaits the end of the update, if it was given its order; else None."""
        update = self._update
        if update is None or not update.executed:
            return None
        update.join()
        self._update = None
        return update

    def abort(self, error: ApplyError) -> None:
        """An armed update ends untouched, a running one finishes what it has begun."""
        update = self._update
        if update is not None:
            update.abort(error)

    def interrupt(self) -> None:
        """SIGINT to the engine, whatever it does, unless it is about to end. Takes no lock."""
        update = self._update
        if update is None or not update.finishing:
            self._stack.engine.interrupt()

    def _start(self) -> None:
        update = Update(self._stack, self._provider.inputs, self._provider.version, self._policy_packs)
        update.start()
        self._update = update
        try:
            update.wait_armed(_START_SECONDS)
        except ApplyError:
            self._update = None
            update.join()
            raise
