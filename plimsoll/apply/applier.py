"""Applies Plans as updates of the capacity stacks: one writer, several shards, updates armed ahead of need."""

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import replace
from typing import Self, TypeVar

import structlog

from plimsoll.apply.capacity_stacks import CapacityStacks
from plimsoll.apply.cluster_provider import ClusterProvider, open_provider
from plimsoll.apply.delta import check, stacks_for
from plimsoll.apply.engine_home import engine_home
from plimsoll.apply.environment import check_passphrase, make_work_folder
from plimsoll.apply.errors import LeaseLostError, LockedError, UpdateInterruptedError
from plimsoll.apply.execution import Execution
from plimsoll.apply.lease import Lease
from plimsoll.apply.leaving import mark_leaving
from plimsoll.apply.lifting import lift_gates
from plimsoll.apply.locks import break_stale
from plimsoll.apply.orphans import end_orphans
from plimsoll.apply.outcome import Outcome
from plimsoll.apply.owned_resource import OWNED_KINDS, OwnedResource, owned
from plimsoll.apply.review import Reviewer, is_going
from plimsoll.apply.roster import Roster
from plimsoll.apply.settings import ApplySettings
from plimsoll.apply.shard import Shard
from plimsoll.apply.signals import Arming, send
from plimsoll.apply.stack import CapacityStack
from plimsoll.apply.state import Manifest
from plimsoll.connection import Connection
from plimsoll.model.labels import SHARD
from plimsoll.model.plan import Lift, ObjectKey, Plan, Signal
from plimsoll.provider.objects import Objects

T = TypeVar("T")

log = structlog.get_logger(__name__)


class Applier:
    """The hand of one environment's loop. Made without a request; `start` takes the Lease.

    `apply` and the others are for one thread at a time; `interrupt` may be called from anywhere, a signal handler
    included.
    """

    def __init__(self, settings: ApplySettings, connection: Connection) -> None:
        self._settings = settings
        self._connection = connection
        self._reviewer = Reviewer(Objects(connection))
        self._lease = Lease(connection, settings.lease_name, settings.lease, self._on_lost)
        self._provider: ClusterProvider | None = None
        self._shards = Roster(settings, may_arm=lambda: not self._stopping and self._lease.held)
        # No Event: a signal handler that sets one may meet its own thread inside it.
        self._stopping = False

    @property
    def held(self) -> bool:
        """Whether the Lease is ours: nothing is applied without it."""
        return self._lease.held

    @property
    def identity(self) -> str:
        """Of this writer in the Lease: `hostname_pid_random`."""
        return self._lease.identity

    @property
    def engines(self) -> tuple[int, ...]:
        """Process ids of the engines that run now, armed ones included."""
        return tuple(pid for shard in self._shards if (pid := shard.pid) is not None)

    @property
    def armed(self) -> int:
        """How many updates are armed."""
        return sum(shard.armed for shard in self._shards)

    def start(self, wait_seconds: float | None = 0.0) -> None:
        """Takes the Lease, waiting up to `wait_seconds` for it (None: for ever), recovers, and arms.

        Raises EngineMissingError, ProviderMissingError, PassphraseError, LeaseHeldError, LockedError, or the errors of
        an unreachable cluster or backend; nothing is held then.
        """
        self._stopping = False
        self._shards.wake()
        try:
            self._open()
            self._lease.acquire(wait_seconds, self._require_going)
            self.recover()
        except BaseException:
            self.stop()
            raise
        self._shards.arrange()

    def recover(self) -> None:
        """Clears what a killed writer left behind: plugins, locks, pending operations, objects that no state knows."""
        end_orphans(engine_home(self._settings))
        _all_of([shard.recover() for shard in self._shards])
        known = {key for shard in self._shards for key in shard.state.resources}
        lost: dict[str, list[Manifest]] = {}
        for live in self._reviewer.labelled(OWNED_KINDS):
            home = self._shards.home(live["metadata"]["labels"][SHARD])
            if home is not None and ObjectKey.of(live) not in known and not is_going(live):
                lost.setdefault(home.name, []).append(live)
        for stack, objects in lost.items():
            log.warning("adopting objects that the state has lost", stack=stack, objects=len(objects))
        _all_of([self._shards[stack].adopt(objects) for stack, objects in lost.items()])
        self._lease.settle()

    def apply(self, plan: Plan) -> Outcome:
        """Makes the Plan's operations and signals happen, and nothing else; returns as soon as they are confirmed.

        What fails for one object is in `Outcome.failed`. Raises a PlimsollError where nothing was done at all, such as
        PlanMismatchError, DeletionCapError, LockedError, StateFolderFullError; and UpdateInterruptedError or
        LeaseLostError where it was interrupted, whatever part of it was done: that is in the states.
        """
        check(plan, self._settings.deletion_cap)
        if plan.empty and not plan.signals:
            return Outcome()
        self.require_lease()
        # First, as an update takes seconds: what is disarmed late buys another node.
        early = send(self._connection, [each for each in plan.signals if each.uid])
        with Arming(self._connection, [each for each in plan.signals if not each.uid]) as arming:
            outcome = Outcome() if plan.empty else self._operate(plan, arming.created)
            began = time.monotonic()
            late = arming.finish(outcome.created)
        return replace(outcome, signalled=early + late, signalling=time.monotonic() - began)

    def signal(self, signals: Iterable[Signal]) -> tuple[Signal, ...]:
        """Writes signals of pods that are there, also while `apply` runs; those that the cluster has taken.

        Nothing without the Lease.
        """
        return send(self._connection, list(signals)) if not self._stopping and self._lease.held else ()

    @contextmanager
    def expecting(self, creations: int) -> Iterator[None]:
        """Starts the engines that a delta of so many creations will take while it is still awaited and planned.

        What it leaves unused on leaving is ended.
        """
        self._shards.expect(stacks_for(creations))
        try:
            yield
        finally:
            self._shards.expect(0)

    def _operate(self, plan: Plan, created: Callable[[ObjectKey], None]) -> Outcome:
        self._shards.wake()
        self.require_lease()
        mark_leaving(self._connection, plan.leaving)
        execution = Execution(
            self._shards, room=self._settings.objects_per_shard, gate=self.require_lease, created=created
        )
        return execution.run(plan)

    def lift(self, lifts: Iterable[Lift]) -> None:
        """Takes capacity gates off pods, as `lifting.lift_gates`; nothing without the Lease."""
        if not self._stopping and self._lease.held:
            lift_gates(self._connection, lifts)

    def drain(self) -> tuple[ObjectKey, ...]:
        """Deletes every object of every capacity stack of the environment, then the stacks. The objects' keys.

        Nothing is armed afterwards, until the next delta. Finalizers are not awaited: NodeClaims go when their nodes
        are drained.
        """
        self.require_lease()
        self._shards.rest()
        drained = _all_of([shard.drain() for shard in self._shards])
        return tuple(sorted((key for keys in drained for key in keys), key=str))

    def resources(self) -> list[OwnedResource]:
        """What the stacks own: as just applied, or as the states have it where this writer is not started.

        Needs no Lease then, and no process where the backend is a folder or S3.
        """
        if self._shards:
            return owned(shard.state for shard in self._shards)
        return owned(CapacityStacks(self._settings, self._lease.identity).states())

    def interrupt(self) -> None:
        """Begins a graceful end: running updates finish what they have begun and start nothing more.

        Takes no lock, so that a signal handler may call it while `apply` runs; `stop` then awaits the end.
        """
        self._stopping = True
        for shard in self._shards:
            shard.interrupt()

    def stop(self) -> None:
        """Ends every update (armed ones untouched, running ones interrupted and awaited), then gives the Lease back."""
        self._stopping = True
        for shard in self._shards:
            shard.abort(_stopped())
        for shard in self._shards:
            shard.close()
        self._shards.clear()
        self._lease.release()
        if self._provider is not None:
            self._provider.close()
            self._provider = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _open(self) -> None:
        if self._shards:
            return
        settings = self._settings
        check_passphrase(settings)
        stacks = CapacityStacks(settings, self._lease.identity)
        pulumi, _ = stacks.pulumi
        make_work_folder(settings)
        self._provider = open_provider(settings, pulumi)
        for name in stacks.names():
            shard = Shard(
                stacks.stack(name, self._provider.environment),
                stacks.backend,
                self._reviewer,
                self._provider,
                policy_packs=settings.policy_packs,
                history=settings.history,
                gate=self.require_lease,
                unlock=self._unlock,
                on_idle=self._shards.arrange,
            )
            self._shards.add(shard)

    def require_lease(self) -> None:
        """Raises LeaseLostError or UpdateInterruptedError where nothing may be begun any more."""
        self._require_going()
        if not self._lease.held:
            raise LeaseLostError("the environment's Lease is not held", "nothing is applied until it is held again")

    def _require_going(self) -> None:
        if self._stopping:
            raise _stopped()

    def _unlock(self, stack: CapacityStack, error: LockedError) -> None:
        self.require_lease()
        break_stale(stack, error, self._lease.identity, self._lease.expired_holders)

    def _on_lost(self, error: LeaseLostError) -> None:
        for shard in self._shards:
            shard.abort(error)


def _stopped() -> UpdateInterruptedError:
    return UpdateInterruptedError("the writer is stopping", "what was begun is finished; start it again to go on")


def _all_of(futures: Iterable[Future[T]]) -> list[T]:
    """Results of all; raises the first error once all have ended."""
    ended = list(futures)
    wait(ended)
    return [future.result() for future in ended]
