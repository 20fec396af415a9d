"""The watches of a cluster: stores of some kinds, kept at its state on a thread each."""

from collections.abc import Iterable
from functools import partial
from typing import Any

from plimsoll.errors import PlimsollError
from plimsoll.kube import Connection
from plimsoll.labels import SCHEMA, SCHEMA_VERSION
from plimsoll.observe.cluster.batcher import Batcher
from plimsoll.observe.cluster.health import Health
from plimsoll.observe.cluster.kind_watch import KindWatch
from plimsoll.observe.cluster.kinds import DEFINITIONS
from plimsoll.observe.cluster.presence import ABSENT, Presence
from plimsoll.observe.cluster.store import Store


class NewerSchemaError(PlimsollError):
    """Our kinds are those of a newer release: nothing may be planned."""


class ClusterWatch:
    """Keeps the given stores; changes that can matter, of whichever kind, are waited for together.

    Where one of the kinds has a definition, the definitions are watched too. At rest no request is made but watches.
    """

    def __init__(self, connection: Connection, stores: Iterable[Store[Any]], batcher: Batcher | None = None) -> None:
        self._batcher = batcher or Batcher()
        self._definitions = Store(DEFINITIONS)
        stores = list(stores)
        custom = any(store.kind.definition is not None for store in stores)
        names = [store.kind.name for store in stores]
        self._health = Health([*names, DEFINITIONS.name] if custom else names)
        self._watches: list[KindWatch[Any]] = []
        self._presences: dict[str, tuple[Presence, KindWatch[Any]]] = {}
        for store in stores:
            definition = store.kind.definition
            presence = None if definition is None else Presence()
            note = partial(self._batcher.note, at_once=not store.kind.gathered)
            watch = KindWatch(connection, store, self._health, note, presence)
            self._watches.append(watch)
            if definition is not None and presence is not None:
                self._presences[definition] = (presence, watch)
        if custom:
            self._watches.append(KindWatch(connection, self._definitions, self._health, self._tell_presences))

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

    def require_synced(self) -> None:
        """Raises NotSyncedError before every watch is synced."""
        self._health.require_synced()

    def require_known_schema(self) -> None:
        """Raises NewerSchemaError where a newer release has defined our kinds: their objects may say what we miss."""
        for definition in self._definitions.values():
            version = definition.labels.get(SCHEMA, "")
            if version.isdecimal() and int(version) > SCHEMA_VERSION:
                raise NewerSchemaError(
                    f"the kind {definition.name} has schema {version}, and this release supports {SCHEMA_VERSION}",
                    "run the release that created it, or deploy this release's foundation stack",
                )

    def warnings(self) -> tuple[str, ...]:
        """As `Health.warnings`."""
        return self._health.warnings()

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
