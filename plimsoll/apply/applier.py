"""Applies Plans as updates of the capacity stacks: one writer, several stacks, pre-started updates."""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Self

from plimsoll.apply.delta import Outcome, Reviewer, require_applicable, stacks_for
from plimsoll.apply.errors import LeaseLostError, WriterStoppingError
from plimsoll.apply.execution import Execution
from plimsoll.apply.identity import cluster_identity
from plimsoll.apply.lease import Lease
from plimsoll.apply.pods import CreationSignals, PodWriter
from plimsoll.apply.settings import ApplySettings
from plimsoll.apply.stacks import Stacks
from plimsoll.apply.state import OwnedResource, State, owned
from plimsoll.kube import Connection, Objects
from plimsoll.model import Change, GateRemoval, ObjectKey, Plan, Refusal, Signal


class Applier:
    """Applies the Plans of one cluster. Creating it sends no request; `start` takes the Lease.

    `apply` and the other methods must be called by one thread at a time; `interrupt` may be called from any thread and
    from a signal handler."""

    def __init__(self, settings: ApplySettings, connection: Connection) -> None:
        self._settings = settings
        self._pods = PodWriter(connection)
        self._lease = Lease(connection, settings.lease, self._on_lost)
        self._reviewer = Reviewer(Objects(connection))
        self._stacks = Stacks(settings, self._reviewer, self._lease, lambda: cluster_identity(connection))

    @property
    def held(self) -> bool:
        """Whether this process holds the Lease. Nothing is applied without it."""
        return self._lease.held

    @property
    def identity(self) -> str:
        """This writer's identity in the Lease: `hostname_pid_random`, in a pod with `.` and the pod's UID."""
        return self._lease.identity

    @property
    def engines(self) -> tuple[int, ...]:
        """Process ids of the running engines, including those of pre-started updates."""
        return tuple(pid for shard in self._stacks if (pid := shard.pid) is not None)

    @property
    def pre_started(self) -> int:
        """Number of pre-started updates."""
        return sum(shard.pre_started for shard in self._stacks)

    def start(self, wait_seconds: float | None = 0.0, go_on: Callable[[], None] = lambda: None) -> None:
        """Takes the Lease, waiting up to `wait_seconds` for it (None: without limit), recovers, and pre-starts updates.

        `go_on` is called repeatedly during the wait, and may raise an error to end it.

        Raises EngineMissingError, ProviderMissingError, PassphraseError, LeaseHeldError, LockedError,
        WriterStoppingError after `interrupt` or `stop`, or the errors of an unreachable cluster or backend; nothing
        is held then, and it may be called again.
        """
        self._close()
        try:
            self._lease.identify()
            self._stacks.open()
            self._lease.acquire(wait_seconds, go_on)
            self._stacks.recover()
            self._lease.forget_expired_holders()
        except BaseException:
            self._close()
            raise
        self._stacks.arrange()

    def apply(self, plan: Plan) -> Outcome:
        """Applies the Plan's operations and signals, and nothing else; returns as soon as they are confirmed.

        Failures of single objects are in `Outcome.failed`. Raises a PlimsollError where nothing was done at all, such
        as PlanMismatchError, OtherClusterError, LockedError, StateFolderFullError; and UpdateInterruptedError or
        LeaseLostError where it was interrupted, whatever part of it was done: that is in the states."""
        require_applicable(plan)
        if plan.empty and not plan.signals:
            return Outcome()
        self.require_lease()
        # Before the update, which takes seconds: for a request that is withdrawn late, the autoscaler launches a node.
        early = self._pods.signal([each for each in plan.signals if each.uid])
        with CreationSignals(self._pods, [each for each in plan.signals if not each.uid]) as signals:
            outcome = Outcome() if plan.empty else self._operate(plan, signals.created)
            if not outcome.empty:
                self._lease.applied()
            began = time.monotonic()
            late = signals.finish(outcome.created)
        return replace(outcome, signalled=early + late, signalling=time.monotonic() - began)

    def dry_run(self, workloads: Sequence[Change]) -> Mapping[ObjectKey, Refusal]:
        """Which of these workloads the apiserver does not accept in a dry run, and why. Nothing is written. Raises
        ClusterUnreachableError."""
        return self._reviewer.refused(workloads, self._settings.stack_name(0))

    def signal(self, signals: Iterable[Signal]) -> tuple[Signal, ...]:
        """Writes signals of existing pods, also while `apply` runs. Returns those that the cluster accepted; none
        without the Lease."""
        return self._pods.signal(list(signals)) if self._lease.usable else ()

    def remove_gates(self, removals: Iterable[GateRemoval]) -> int:
        """Removes capacity gates from pods, and returns how many; none without the Lease."""
        return self._pods.remove_gates(list(removals)) if self._lease.usable else 0

    def forget_missing(self, live_uids: Collection[str]) -> None:
        """Removes, in the background, objects from the states that others deleted in the cluster.

        `live_uids` are the UIDs of all objects that the watches show; only other objects are looked up in the cluster.
        Pre-starts updates again whose start failed. Does nothing without the Lease.
        """
        if self._lease.usable:
            self._stacks.forget_missing(live_uids)

    @contextmanager
    def expecting(self, creations: int) -> Iterator[None]:
        """Starts the engines that a Plan with this many creations will need, while the Plan is still awaited and
        planned. Unused engines are ended when the context is left."""
        self._stacks.expect(stacks_for(creations))
        try:
            yield
        finally:
            self._stacks.expect(0)

    def _operate(self, plan: Plan, created: Callable[[ObjectKey], None]) -> Outcome:
        self._stacks.wake()
        self._pods.set_deletion_cost(plan.preferred_deletions)
        return Execution(self._stacks, self._settings.objects_per_shard, self._lease, created).run(plan)

    def drain(self) -> tuple[ObjectKey, ...]:
        """Deletes every object of every capacity stack of the environment, then the stacks. Returns the keys of the
        objects.

        Nothing is pre-started until the next Plan is applied. Finalizers are not awaited: NodeClaims are deleted after
        their nodes are drained.
        """
        self.require_lease()
        return tuple(sorted(self._stacks.drain(), key=str))

    def resources(self) -> list[OwnedResource]:
        """The resources of the stacks: as last applied, or read from the states if this writer is not started. Reading
        needs no Lease, and no process if the backend is a folder or S3."""
        return owned(self.states())

    def recorded(self) -> frozenset[str]:
        """UIDs of the resources of the stacks."""
        return frozenset(each.uid for state in self.states() for each in state.resources.values())

    def states(self) -> list[State]:
        """The states behind `resources`."""
        return self._stacks.states()

    def require_lease(self) -> None:
        """Raises LeaseLostError or WriterStoppingError if no further operation may be started."""
        self._lease.require()

    def interrupt(self) -> None:
        """Starts a graceful shutdown: running updates finish the operations that they have begun and start no others.
        Takes no lock, so a signal handler may call it while `apply` runs; `stop` then waits for the end."""
        self._lease.give_up()
        self._stacks.interrupt()

    def stop(self) -> None:
        """Ends every update (pre-started ones untouched, running ones awaited), then releases the Lease. The applier
        cannot be started again."""
        self._lease.give_up()
        self._close()

    def _on_lost(self, error: LeaseLostError) -> None:
        self._stacks.lose(error)

    def _close(self) -> None:
        unlocked = self._stacks.close(WriterStoppingError())
        self._lease.release(unlocked=unlocked)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
