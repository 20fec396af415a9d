"""Stacks: the capacity stacks of one environment: which exist, which take new objects, and which are pre-started."""

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import Future, wait
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import structlog
from semver import VersionInfo

from plimsoll.apply.delta import Reviewer
from plimsoll.apply.engine import (
    CapacityStack,
    ClusterProvider,
    Engine,
    check_passphrase,
    end_orphans,
    engine_environment,
    engine_home,
    find_provider,
    find_pulumi,
    make_work_folder,
)
from plimsoll.apply.errors import ApplyError
from plimsoll.apply.identity import ClusterIdentity
from plimsoll.apply.lease import Lease
from plimsoll.apply.objects import is_being_deleted
from plimsoll.apply.settings import ApplySettings
from plimsoll.apply.stacks.shard import Shard
from plimsoll.apply.state import OWNED_KINDS, Backend, Manifest, State, open_backend
from plimsoll.labels import SHARD
from plimsoll.model import ObjectKey

T = TypeVar("T")

log = structlog.get_logger(__name__)


class Stacks:
    """The stacks in the settings, and further existing ones of the environment. Each has a Shard between `open` and
    `close`.

    The CLI is searched when it is first needed; reading the state in a folder or in S3 does not need it.
    """

    def __init__(
        self,
        settings: ApplySettings,
        reviewer: Reviewer,
        lease: Lease,
        cluster: Callable[[], ClusterIdentity],
    ) -> None:
        """`cluster` reads the identity of the cluster."""
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
        """Opens the stacks. Raises EngineMissingError, ProviderMissingError, PassphraseError, or the errors of the
        backend."""
        settings = self._settings
        check_passphrase(settings)
        pulumi, _ = self._pulumi
        make_work_folder(settings)
        self._backend.make()
        self._provider = find_provider(settings, pulumi, self._cluster)
        self._add_shards(self._provider)
        self._resting = False

    def _add_shards(self, provider: ClusterProvider) -> None:
        """Adds the Shards of the stacks in the settings and of existing ones that have none yet."""
        accepting = map(self._settings.stack_name, range(self._settings.shards))
        added = {
            name: Shard(
                self._stack(name, provider.environment),
                backend=self._backend,
                reviewer=self._reviewer,
                provider=provider,
                settings=self._settings,
                lease=self._lease,
                on_idle=self.arrange,
            )
            for name in dict.fromkeys([*accepting, *self._existing_names()])
            if name not in self._shards
        }
        self._shards = self._shards | added  # other threads may read the old ones

    def close(self, error: ApplyError) -> bool:
        """Ends every update: pre-started ones without changes, running ones by an interrupt. Waits for them. Returns
        whether all stacks are certainly unlocked."""
        self.stop(error)
        unlocked = [shard.close() for shard in self]
        self._shards = {}
        self._provider = None
        return all(unlocked)

    def stop(self, error: ApplyError) -> None:
        """Starts nothing more, and ends running updates; the rest of a Plan fails with the error."""
        for shard in self:
            shard.stop(error)

    def lose(self, error: ApplyError) -> None:
        """Starts nothing more, and kills every engine; the rest of a Plan fails with the error."""
        for shard in self:
            shard.lose(error)

    def interrupt(self) -> None:
        """Sends SIGINT to every engine that changes objects. Takes no lock."""
        for shard in self:
            shard.interrupt()

    def __iter__(self) -> Iterator[Shard]:
        return iter(self._shards.values())

    def __getitem__(self, stack: str) -> Shard:
        return self._shards[stack]

    def states(self) -> list[State]:
        """The states as last applied; from the backend if no Shards are open."""
        if self._shards:
            return [shard.state for shard in self]
        return [state for name in self._existing_names() if (state := self._backend.read(name)) is not None]

    def recover(self) -> None:
        """Clears what a killed writer left: plugins, locks, pending operations, and objects that are in no state. For
        the holder of the Lease, after `open`."""
        assert self._provider is not None
        self._add_shards(self._provider)  # the last holder may have created stacks while this writer was a standby
        end_orphans(engine_home(self._settings))
        _all_of(shard.recover() for shard in self)
        self._adopt_lost()

    def _adopt_lost(self) -> None:
        """Adopts the objects that are in no state."""
        for shard in self:
            shard.restored()
        known = {key for shard in self for key in shard.state.resources}
        lost: dict[str, list[Manifest]] = {}
        for live in self._reviewer.labelled(OWNED_KINDS):
            if self._settings.owns(live) and ObjectKey.of(live) not in known and not is_being_deleted(live):
                home = self._shards.get(live["metadata"]["labels"][SHARD]) or self._accepting()[0]
                lost.setdefault(home.name, []).append(live)
        for stack, objects in lost.items():
            log.warning("adopting objects that are missing in the state", stack=stack, objects=len(objects))
        _all_of(self[stack].adopt(objects) for stack, objects in lost.items())

    def forget_missing(self, live_uids: Collection[str]) -> None:
        """Removes, in the background, the entries of objects that are neither in `live_uids` nor in the cluster.
        Pre-starts updates again whose start failed, after their back-off."""
        for shard in self:
            shard.forget_missing(live_uids)
        if any(shard.restored() for shard in self):
            self._adopt_lost()
        self.arrange()

    def drain(self) -> list[ObjectKey]:
        """Deletes every object of every stack, then the stacks. Nothing is pre-started until `wake`."""
        with self._arranging:
            self._resting = True
        return [key for keys in _all_of(shard.drain() for shard in self) for key in keys]

    def wake(self) -> None:
        self._resting = False

    def ready(self) -> list[str]:
        """Names of the stacks that take new objects: those that can start soonest first, then those with the fewest
        objects."""
        shards = sorted(self._accepting(), key=lambda each: (each.rank, len(each.state.resources)))
        return [shard.name for shard in shards]

    def expect(self, stacks: int) -> None:
        """Announces a Plan for this many stacks: pre-starts that many updates, even if the settings have fewer."""
        self._expected = stacks
        self.arrange()

    def begun(self) -> None:
        """Ends the announcement of `expect`."""
        self._expected = 0

    def arrange(self) -> None:
        """Pre-starts as many updates as are wanted, on the stacks with the fewest objects, and calls off others."""
        with self._arranging:
            if self._resting or not self._lease.usable:
                return
            wanted = max(self._settings.pre_started_shards, self._expected)
            shards = self._accepting()
            pre_started = [shard for shard in shards if shard.has_pre_started]
            for shard in pre_started[wanted:]:
                if shard.idle:
                    shard.call_off()
            spare = [shard for shard in shards if shard.idle and not shard.has_pre_started and not shard.backing_off]
            spare.sort(key=lambda each: len(each.state.resources))
            for shard in spare[: max(0, wanted - len(pre_started))]:
                shard.pre_start()

    def _accepting(self) -> list[Shard]:
        """The stacks of the settings: only these take new objects."""
        names = map(self._settings.stack_name, range(self._settings.shards))
        return [self._shards[name] for name in names if name in self._shards]

    def _existing_names(self) -> list[str]:
        """Names of this environment's stacks in the backend."""
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
        """The stack's engine has these `variables` in its environment, too."""
        settings = self._settings
        environment = engine_environment(settings, self._lease.identity) | dict(variables)
        engine, folder = Engine(*self._pulumi), settings.work_folder / name
        return CapacityStack(name, folder, engine, environment, settings.secrets_provider)


def _all_of(futures: Iterable[Future[T]]) -> list[T]:
    """The results of all futures. Raises the first error when all have ended."""
    begun = list(futures)
    wait(begun)
    return [future.result() for future in begun]
