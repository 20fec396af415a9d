"""The Observer: watches of every kind, one Snapshot."""

import threading
from pathlib import Path
from typing import Any

from plimsoll.kube import Connection
from plimsoll.model import Snapshot
from plimsoll.observe.cloud_types import CloudTypes
from plimsoll.observe.cluster.batcher import Batcher
from plimsoll.observe.cluster.health import Health
from plimsoll.observe.cluster.kinds import DEFINITIONS
from plimsoll.observe.cluster.presence import ABSENT, Presence
from plimsoll.observe.cluster.snapshots import Stores
from plimsoll.observe.cluster.store import Store
from plimsoll.observe.cluster.watching import Watch


class Observer:
    """Keeps what the cluster holds, as far as capacity is planned on it. At rest it makes no request but watches."""

    def __init__(self, connection: Connection, batcher: Batcher | None = None, cloud_types: Path | None = None) -> None:
        """`cloud_types` is the folder that keeps what clouds say of instance types; None: no cloud is asked."""
        self._batcher = batcher or Batcher()
        self._cloud_types = None if cloud_types is None else CloudTypes(cloud_types, self._batcher.note)
        self._stores = Stores()
        self._definitions = Store(DEFINITIONS)
        self._health = Health([DEFINITIONS.name, *(store.kind.name for store in self._stores)])
        self._presences: dict[str, tuple[Presence, Watch[Any]]] = {}
        self._watches: list[Watch[Any]] = []
        for store in self._stores:
            definition = store.kind.definition
            presence = None if definition is None else Presence()
            watch = Watch(connection, store, self._health, self._batcher.note, presence)
            self._watches.append(watch)
            if definition is not None and presence is not None:
                self._presences[definition] = (presence, watch)
        self._watches.append(Watch(connection, self._definitions, self._health, self._tell_presences))
        self._lock = threading.Lock()
        self._latest: tuple[object, Snapshot] | None = None

    def start(self) -> None:
        """Starts a thread a watch; returns at once."""
        for watch in self._watches:
            watch.start()

    def stop(self) -> None:
        """Ends every watch, and a `wait` in progress."""
        for watch in self._watches:
            watch.stop()
        self._batcher.wake()
        for watch in self._watches:
            watch.join(timeout=5.0)

    def wait_synced(self, timeout: float) -> None:
        """Returns once the whole state is seen; `timeout` in seconds.

        Raises ConnectionFailedError where nobody answers, RequestError where the account is not known or not
        allowed, and NotSyncedError when the time is over. The watches go on trying until `stop`.
        """
        self._health.wait_synced(timeout)
        self._batcher.forget()

    def snapshot(self) -> Snapshot:
        """The cluster as it is known now; the same value while nothing changes.

        Raises NotSyncedError before every watch is synced, PlimsollError on more than one Environment, and
        InvalidObjectError on one that cannot be read.
        """
        self._health.require_synced()
        with self._lock:
            warnings = self._health.warnings()
            state = (self._stores.version, warnings, self._answers())
            if self._latest is None or self._latest[0] != state:
                self._latest = self._observed(warnings)
            return self._latest[1]

    def _answers(self) -> int:
        if self._cloud_types is None:
            return 0
        self._cloud_types.refresh()
        return self._cloud_types.version

    def _observed(self, warnings: tuple[str, ...]) -> tuple[object, Snapshot]:
        """A new snapshot, with what it was made of."""
        version = self._stores.version
        snapshot = self._stores.snapshot(warnings)
        if self._cloud_types is not None:
            snapshot = self._cloud_types.completed(snapshot)
        return (version, warnings, self._answers()), snapshot

    def wait(self, idle: float, maximum: float, timeout: float) -> bool:
        """Waits for changes that can matter, as `Batcher.wait`: True once they pause, False after `timeout`."""
        return self._batcher.wait(idle, maximum, timeout)

    def pause(self, idle: float, maximum: float) -> bool:
        """Waits for the end of a burst, as `Batcher.pause`: whether there was more of it."""
        return self._batcher.pause(idle, maximum)

    def wake(self) -> None:
        """Ends the `wait` in progress, or the next one; safe in a signal handler."""
        self._batcher.wake()

    def _tell_presences(self) -> None:
        there = {definition.name: definition.revision for definition in self._definitions.values()}
        for name, (presence, watch) in self._presences.items():
            presence.set(there.get(name, ABSENT))
            if name not in there:
                watch.interrupt()
