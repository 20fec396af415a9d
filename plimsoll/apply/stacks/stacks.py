"""The capacity stacks of one environment: which there are, which take new objects, and which are pre-started."""

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import Future, wait
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import structlog
from semver import VersionInfo

from plimsoll.apply.cluster import ClusterIdentity
from plimsoll.apply.delta import Reviewer, is_going
from plimsoll.apply.engine import (
    CapacityStack,
    ClusterProvider,
    Engine,
    check_passphrase,
    end_orphans,
    engine_environment,
    engine_home,
    find_pulumi,
    make_work_folder,
    open_provider,
)
from plimsoll.apply.errors import ApplyError
from plimsoll.apply.lease import Lease
from plimsoll.apply.settings import ApplySettings
from plimsoll.apply.stacks.shard import Shard
from plimsoll.apply.state import OWNED_KINDS, Backend, Manifest, State, open_backend
from plimsoll.labels import SHARD
from plimsoll.model import ObjectKey

T = TypeVar("T")

log = structlog.get_logger(__name__)


class Stacks:
    """Those that the settings name and those that are there; each has a Shard between `open` and `close`.

    The CLI is looked for when it is first needed, and is not where the backend is a folder or S3 and nothing is run.
    """

    def __init__(
        self, settings: ApplySettings, reviewer: Reviewer, lease: Lease, cluster: Callable[[], ClusterIdentity]
    ) -> None:
        """`cluster` asks the cluster who it is."""
        self._cluster = cluster
        self._settings = settings
        self._reviewer = reviewer
        self._lease = lease
        self._provider: ClusterProvider | None = None
        self._shards: dict[str, Shard] = {}
        self._arranging = threading.Lock()
        self._resting = False
        self._expected = 0

    def open(self) -> None:
        """Raises EngineMissingError, ProviderMissingError, PassphraseError, or the errors of the backend."""
        settings = self._settings
        check_passphrase(settings)
        pulumi, _ = self._pulumi
        make_work_folder(settings)
        self._backend.make()
        provider = self._provider = open_provider(settings, pulumi, self._cluster)
        taking = map(settings.stack_name, range(settings.shards))
        for name in dict.fromkeys([*taking, *self._there()]):
            stack = self._stack(name, provider.environment)
            self._shards[name] = Shard(
                stack,
                backend=self._backend,
                reviewer=self._reviewer,
                provider=provider,
                settings=settings,
                lease=self._lease,
                on_idle=self.arrange,
            )
        self._resting = False

    def close(self, error: ApplyError) -> None:
        """Ends every update (pre-started ones untouched, running ones interrupted and awaited)."""
        self.stop(error)
        for shard in self:
            shard.close()
        self._shards = {}
        if self._provider is not None:
            self._provider.close()
            self._provider = None

    def stop(self, error: ApplyError) -> None:
        """Begins nothing more, and ends what runs; the rest of a delta fails with the error."""
        for shard in self:
            shard.stop(error)

    def interrupt(self) -> None:
        """SIGINT to every engine that is not about to end. Takes no lock."""
        for shard in self:
            shard.interrupt()

    def __iter__(self) -> Iterator[Shard]:
        return iter(self._shards.values())

    def __getitem__(self, stack: str) -> Shard:
        return self._shards[stack]

    def states(self) -> list[State]:
        """As just applied, or as the backend has them where no Shards are open."""
        if self._shards:
            return [shard.state for shard in self]
        return [state for name in self._there() if (state := self._backend.read(name)) is not None]

    def recover(self) -> None:
        """Clears what a killed writer left behind: plugins, locks, pending operations, objects that no state knows."""
        end_orphans(engine_home(self._settings))
        _all_of(shard.recover() for shard in self)
        known = {key for shard in self for key in shard.state.resources}
        lost: dict[str, list[Manifest]] = {}
        for live in self._reviewer.labelled(OWNED_KINDS):
            stack = live["metadata"]["labels"][SHARD]
            ours = self._settings.shard_number(stack) is not None
            if ours and ObjectKey.of(live) not in known and not is_going(live):
                home = self._shards.get(stack) or self._taking()[0]
                lost.setdefault(home.name, []).append(live)
        for stack, objects in lost.items():
            log.warning("adopting objects that are missing in the state", stack=stack, objects=len(objects))
        _all_of(self[stack].adopt(objects) for stack, objects in lost.items())

    def forget_missing(self, there: Collection[str]) -> None:
        """Drops from the states, in the background, what is neither among the UIDs `there` nor in the cluster."""
        for shard in self:
            shard.forget_missing(there)

    def drain(self) -> list[ObjectKey]:
        """Deletes every object of every stack, then the stacks. Nothing is pre-started until `wake`."""
        with self._arranging:
            self._resting = True
        return [key for keys in _all_of(shard.drain() for shard in self) for key in keys]

    def wake(self) -> None:
        self._resting = False

    def ready(self) -> list[str]:
        """Names of the stacks that take new objects: who can begin soonest first, then the emptiest."""
        shards = sorted(self._taking(), key=lambda each: (each.rank, len(each.state.resources)))
        return [shard.name for shard in shards]

    def expect(self, stacks: int) -> None:
        """A delta for so many stacks is about to come: pre-starts as many, beyond what the settings want."""
        self._expected = stacks
        self.arrange()

    def begun(self) -> None:
        """What was expected is under way: nothing is pre-started for it any more."""
        self._expected = 0

    def arrange(self) -> None:
        """Pre-starts as many updates as are wanted, on the emptiest stacks first, and calls off what is too much."""
        with self._arranging:
            if self._resting or not self._lease.usable:
                return
            wanted = max(self._settings.pre_started_shards, self._expected)
            shards = self._taking()
            standing = [shard for shard in shards if shard.standing]
            for shard in standing[wanted:]:
                if shard.idle:
                    shard.call_off()
            spare = [shard for shard in shards if shard.idle and not shard.standing and not shard.rests]
            spare.sort(key=lambda each: len(each.state.resources))
            for shard in spare[: max(0, wanted - len(standing))]:
                shard.pre_start()

    def _taking(self) -> list[Shard]:
        names = map(self._settings.stack_name, range(self._settings.shards))
        return [self._shards[name] for name in names if name in self._shards]

    def _there(self) -> list[str]:
        named = self._backend.stacks(self._settings.stack_prefix)
        return [name for name in named if self._settings.shard_number(name) is not None]

    @cached_property
    def _pulumi(self) -> tuple[Path, VersionInfo]:
        return find_pulumi(self._settings.pulumi)

    @cached_property
    def _backend(self) -> Backend:
        return open_backend(
            self._settings.backend_url,
            export=lambda name: self._stack(name, {}).export(),
            names=lambda: self._stack(self._settings.stack_name(0), {}).list_names(),
        )

    def _stack(self, name: str, variables: Mapping[str, str]) -> CapacityStack:
        """`variables` are further ones of its engine's environment."""
        settings = self._settings
        environment = engine_environment(settings, self._lease.identity) | dict(variables)
        engine, folder = Engine(*self._pulumi), settings.work_folder / name
        return CapacityStack(name, folder, engine, environment, settings.secrets_provider)


def _all_of(futures: Iterable[Future[T]]) -> list[T]:
    """Results of all; raises the first error once all have ended."""
    begun = list(futures)
    wait(begun)
    return [future.result() for future in begun]
