"""Applies Plans as updates of the capacity stacks: one writer, several shards, updates armed ahead of need."""

import threading
from collections.abc import Iterable
from concurrent.futures import Future, wait
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Self, TypeVar

import structlog
import tenacity

from plimsoll.apply.backend import Backend, open_backend
from plimsoll.apply.cluster_provider import ClusterProvider, open_provider
from plimsoll.apply.delta import assign, check, only
from plimsoll.apply.engine import HOLDER, Engine, find_pulumi
from plimsoll.apply.errors import (
    RETRYABLE,
    ApplyError,
    BackendUnreachableError,
    ClusterUnreachableError,
    Failure,
    FailureKind,
    LeaseLostError,
    LockedError,
    PassphraseError,
    StateChangedError,
    StateFolderFullError,
    UpdateInterruptedError,
)
from plimsoll.apply.lease import Lease
from plimsoll.apply.locks import break_stale
from plimsoll.apply.outcome import Outcome
from plimsoll.apply.review import Reviewer
from plimsoll.apply.settings import ApplySettings
from plimsoll.apply.shard import Shard
from plimsoll.apply.stack import CapacityStack
from plimsoll.apply.state import Manifest
from plimsoll.connection import Connection
from plimsoll.model.labels import SHARD
from plimsoll.model.plan import ObjectKey, Plan
from plimsoll.provider.identity import Kind
from plimsoll.provider.objects import Objects

OWNED_KINDS: Final = (
    Kind("karpenter.sh", "v1", "NodeClaim"),
    Kind("karpenter.sh", "v1", "NodePool"),
    Kind("apps", "v1", "Deployment"),
    Kind("apps", "v1", "StatefulSet"),
    Kind("leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet"),
)
"""What a Plan creates: looked for in the cluster when a state was lost."""
_TRIES: Final = 3
T = TypeVar("T")

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class OwnedResource:
    """An object that a capacity stack owns."""

    stack: str
    key: ObjectKey
    uid: str
    urn: str


class Applier:
    """The hand of one environment's loop. Made without a request; `start` takes the Lease.

    `apply` and the others are for one thread at a time; `interrupt` may be called from anywhere, a signal handler
    included.
    """

    def __init__(self, settings: ApplySettings, connection: Connection) -> None:
        self._settings = settings
        self._reviewer = Reviewer(Objects(connection))
        self._lease = Lease(connection, settings.lease_name, settings.lease, self._on_lost)
        self._provider: ClusterProvider | None = None
        self._shards: dict[str, Shard] = {}
        # No Event: a signal handler that sets one may meet its own thread inside it.
        self._stopping = False
        self._draining = False
        self._arranging = threading.Lock()

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
        return tuple(pid for shard in self._shards.values() if (pid := shard.pid) is not None)

    @property
    def armed(self) -> int:
        """How many updates are armed."""
        return sum(shard.armed for shard in self._shards.values())

    def start(self, wait_seconds: float | None = 0.0) -> None:
        """Takes the Lease, waiting up to `wait_seconds` for it (None: for ever), recovers, and arms.

        Raises EngineMissingError, ProviderMissingError, PassphraseError, LeaseHeldError, LockedError, or the errors of
        an unreachable cluster or backend; nothing is held then.
        """
        self._stopping = self._draining = False
        try:
            self._open()
            self._lease.acquire(wait_seconds)
            self.recover()
        except BaseException:
            self.stop()
            raise
        self._arrange()

    def recover(self) -> None:
        """Clears what a killed writer left behind: locks, pending operations, objects that no state knows."""
        _all_of([shard.recover() for shard in self._shards.values()])
        known = {key for shard in self._shards.values() for key in shard.state.resources}
        lost: dict[str, list[Manifest]] = {}
        for live in self._reviewer.labelled(self._shards, OWNED_KINDS):
            if ObjectKey.of(live) not in known and not live["metadata"].get("deletionTimestamp"):
                lost.setdefault(live["metadata"]["labels"][SHARD], []).append(live)
        for stack, objects in lost.items():
            log.warning("adopting objects that the state has lost", stack=stack, objects=len(objects))
        _all_of([self._shards[stack].adopt(objects) for stack, objects in lost.items()])
        self._lease.settle()

    def apply(self, plan: Plan) -> Outcome:
        """Makes the Plan's operations happen, and nothing else; returns as soon as the engine has confirmed them.

        What fails for one object is in `Outcome.failed`. Raises an ApplyError where nothing was done at all: among
        them PlanMismatchError, DeletionCapError, LeaseLostError, LockedError, StateFolderFullError.
        """
        check(plan, self._settings.deletion_cap)
        if plan.empty:
            return Outcome()
        self._draining = False
        outcomes: list[Outcome] = []
        errors: list[ApplyError] = []

        def attempt() -> Outcome:
            errors.clear()
            left = only(plan, outcomes[-1].failed) if outcomes else plan
            outcomes.append(self._apply_once(left, errors))
            return outcomes[-1]

        tenacity.Retrying(
            retry=tenacity.retry_if_result(self._worth_another_try),
            stop=tenacity.stop_after_attempt(_TRIES),
            wait=tenacity.wait_exponential_jitter(multiplier=0.5, max=5.0),
            retry_error_callback=lambda _: None,
        )(attempt)
        outcome = Outcome.merged(outcomes)
        if errors and not (outcome.created or outcome.updated or outcome.deleted or outcome.forgotten):
            raise errors[0]
        return outcome

    def drain(self) -> tuple[ObjectKey, ...]:
        """Deletes every object of every capacity stack of the environment, then the stacks. The objects' keys.

        Nothing is armed afterwards, until the next delta. Finalizers are not awaited: NodeClaims go when their nodes
        are drained.
        """
        self.require_lease()
        with self._arranging:
            self._draining = True
            draining = [shard.drain() for shard in self._shards.values()]
        drained = _all_of(draining)
        return tuple(sorted((key for keys in drained for key in keys), key=str))

    def resources(self) -> list[OwnedResource]:
        """What the stacks own: as just applied, or as the states have it where this writer is not started.

        Needs no Lease then, and no process where the backend is a folder or S3.
        """
        if self._shards:
            states = [shard.state for shard in self._shards.values()]
        else:
            backend = self._open_backend()
            names = [name for name in backend.stacks() if self._settings.shard_number(name) is not None]
            states = [state for name in names if (state := backend.read(name)) is not None]
        return [
            OwnedResource(state.stack, each.key, each.uid, each.urn)
            for state in states
            for each in sorted(state.resources.values(), key=lambda resource: str(resource.key))
        ]

    def interrupt(self) -> None:
        """Begins a graceful end: running updates finish what they have begun and start nothing more.

        Takes no lock, so that a signal handler may call it while `apply` runs; `stop` then awaits the end.
        """
        self._stopping = True
        for shard in self._shards.values():
            shard.interrupt()

    def stop(self) -> None:
        """Ends every update (armed ones untouched, running ones interrupted and awaited), then gives the Lease back."""
        self._stopping = True
        for shard in self._shards.values():
            shard.abort(_stopped())
        for shard in self._shards.values():
            shard.close()
        self._shards = {}
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
        _check_passphrase(settings)
        pulumi, version = find_pulumi(settings.pulumi)
        try:
            settings.work_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise StateFolderFullError(f"{settings.work_folder}: {error.strerror}", "name another folder") from None
        self._provider = open_provider(settings, pulumi)
        backend = self._open_backend()
        environment = engine_environment(settings, self._lease.identity) | dict(self._provider.environment)
        existing = [name for name in backend.stacks() if settings.shard_number(name) is not None]
        for name in dict.fromkeys([*map(settings.stack_name, range(settings.shards)), *existing]):
            work_dir = settings.work_folder / name
            self._shards[name] = Shard(
                CapacityStack(name, work_dir, Engine(pulumi, version), environment, settings.secrets_provider),
                backend,
                self._reviewer,
                self._provider,
                policy_packs=settings.policy_packs,
                history=settings.history,
                gate=self.require_lease,
                unlock=self._unlock,
                on_idle=self._arrange,
            )

    def _open_backend(self) -> Backend:
        def stack(name: str) -> CapacityStack:
            pulumi, version = find_pulumi(self._settings.pulumi)
            environment = engine_environment(self._settings, self._lease.identity)
            work_dir = self._settings.work_folder / name
            return CapacityStack(name, work_dir, Engine(pulumi, version), environment, self._settings.secrets_provider)

        return open_backend(
            self._settings.backend_url,
            export=lambda name: stack(name).export(),
            names=lambda: stack(self._settings.stack_name(0)).list_names(),
        )

    def _apply_once(self, plan: Plan, errors: list[ApplyError]) -> Outcome:
        self.require_lease()
        states = {name: shard.state for name, shard in self._shards.items()}
        parts = assign(plan, states, self._ready(), self._settings.objects_per_shard)
        futures = {name: self._shards[name].apply(part) for name, part in parts.items()}
        outcomes = []
        for name, future in futures.items():
            try:
                outcomes.append(future.result())
            except ApplyError as error:
                errors.append(error)
                failure = _failure_of(error)
                outcomes.append(Outcome(failed=MappingProxyType(dict.fromkeys(parts[name].keys, failure))))
        self._arrange()
        return Outcome.merged(outcomes)

    def _worth_another_try(self, outcome: Outcome) -> bool:
        if self._stopping or not self._lease.held:
            return False
        return any(failure.kind in RETRYABLE for failure in outcome.failed.values())

    def _own(self) -> list[Shard]:
        """The shards that take new objects."""
        names = map(self._settings.stack_name, range(self._settings.shards))
        return [self._shards[name] for name in names if name in self._shards]

    def _ready(self) -> list[str]:
        """Names of the shards that take new objects: who can begin soonest first, then the emptiest."""
        shards = self._own()
        shards.sort(key=lambda each: (each.rank, len(each.state.resources)))
        return [shard.name for shard in shards]

    def _arrange(self) -> None:
        """Arms as many shards as are wanted, the emptiest first, and disarms what is too much."""
        with self._arranging:
            if self._stopping or self._draining or not self._lease.held:
                return
            shards = self._own()
            standing = [shard for shard in shards if shard.standing]
            for shard in standing[self._settings.armed_shards :]:
                if shard.idle:
                    shard.disarm()
            spare = [shard for shard in shards if shard.idle and not shard.standing and shard.may_arm]
            spare.sort(key=lambda each: len(each.state.resources))
            for shard in spare[: max(0, self._settings.armed_shards - len(standing))]:
                shard.arm()

    def require_lease(self) -> None:
        """Raises LeaseLostError or UpdateInterruptedError where nothing may be begun any more."""
        if self._stopping:
            raise _stopped()
        if not self._lease.held:
            raise LeaseLostError("the environment's Lease is not held", "nothing is applied until it is held again")

    def _unlock(self, stack: CapacityStack, error: LockedError) -> None:
        self.require_lease()
        break_stale(stack, error, self._lease.identity, self._lease.expired_holders)

    def _on_lost(self, error: LeaseLostError) -> None:
        for shard in self._shards.values():
            shard.abort(error)


def engine_environment(settings: ApplySettings, identity: str) -> dict[str, str]:
    """Environment variables of the engine's processes. The passphrase is named by its file, never held."""
    environment = {
        "PULUMI_BACKEND_URL": settings.backend_url,
        "PULUMI_CONFIG_PASSPHRASE_FILE": str(settings.passphrase_file.absolute()),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        # Looked for at each start otherwise, for seconds, where the network does not answer.
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        # The history holds a checkpoint of each update already.
        "PULUMI_DIY_BACKEND_DISABLE_CHECKPOINT_BACKUPS": "true",
        "PULUMI_DIY_BACKEND_GZIP": "false",
        "PULUMI_DIY_BACKEND_ZSTD": "false",
        HOLDER: identity,
    }
    if settings.pulumi_home is not None:
        environment["PULUMI_HOME"] = str(settings.pulumi_home.absolute())
    return environment


def _check_passphrase(settings: ApplySettings) -> None:
    """Raises PassphraseError where the file cannot be read; its content is looked at by the engine alone."""
    if settings.secrets_provider != "passphrase":
        return
    try:
        with settings.passphrase_file.open("rb"):
            pass
    except OSError as error:
        raise PassphraseError(
            f"passphrase file {settings.passphrase_file}: {error.strerror}",
            "name a file that holds the passphrase of the stacks with --passphrase-file",
        ) from None


def _stopped() -> UpdateInterruptedError:
    return UpdateInterruptedError("the writer is stopping", "what was begun is finished; start it again to go on")


def _failure_of(error: ApplyError) -> Failure:
    kind = FailureKind.NOT_STARTED
    if isinstance(error, ClusterUnreachableError | BackendUnreachableError):
        kind = FailureKind.UNREACHABLE
    elif isinstance(error, StateChangedError):
        kind = FailureKind.CONFLICT
    return Failure(kind, error.message)


def _all_of(futures: Iterable[Future[T]]) -> list[T]:
    """Results of all; raises the first error once all have ended."""
    ended = list(futures)
    wait(ended)
    return [future.result() for future in ended]
