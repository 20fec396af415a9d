"""ClusterWatch: watches that keep stores of several kinds up to date, with a thread each."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from plimsoll.errors import PlimsollError
from plimsoll.kube import Connection
from plimsoll.labels import SCHEMA, SCHEMA_VERSION
from plimsoll.observe.cluster.batcher import Batcher
from plimsoll.observe.cluster.health import SILENCE_SECONDS, Health
from plimsoll.observe.cluster.kind_watch import KindWatch
from plimsoll.observe.cluster.kinds import DEFINITIONS
from plimsoll.observe.cluster.presence import ABSENT, Presence
from plimsoll.observe.cluster.store import Store


class NewerSchemaError(PlimsollError):
    """The custom resource definitions are those of a newer release, so nothing may be planned."""


class ClusterWatch:
    """Keeps the given stores up to date, and waits for relevant changes of any kind.

    If one of the kinds has a CustomResourceDefinition, the definitions are watched too. While nothing changes, no
    requests are made except watches.
    """

    def __init__(
        self,
        connection: Connection,
        stores: Iterable[Store[Any]],
        batcher: Batcher | None = None,
        silence: float = SILENCE_SECONDS,
    ) -> None:
        """A watch that delivers nothing for `silence` seconds has failed."""
        self._batcher = batcher or Batcher()
        self._definitions = Store(DEFINITIONS)
        stores = list(stores)
        custom = any(store.kind.definition is not None for store in stores)
        names = [store.kind.name for store in stores]
        self._health = Health([*names, DEFINITIONS.name] if custom else names, silence)
        self._watches: list[KindWatch[Any]] = []
        self._watch_of: dict[Store[Any], KindWatch[Any]] = {}
        self._presences: dict[str, tuple[Presence, KindWatch[Any]]] = {}
        for store in stores:
            definition = store.kind.definition
            presence = None if definition is None else Presence()
            note = partial(self._batcher.note, at_once=not store.kind.gathered)
            watch = KindWatch(connection, store, self._health, note, presence)
            self._watches.append(watch)
            self._watch_of[store] = watch
            if definition is not None and presence is not None:
                self._presences[definition] = (presence, watch)
        if custom:
            self._watches.append(KindWatch(connection, self._definitions, self._health, self._update_presences))

    def start(self) -> None:
        """Starts a thread for each watch. Returns at once."""
        for watch in self._watches:
            watch.start()

    def stop(self) -> None:
        """Ends every watch and the current `wait`."""
        for watch in self._watches:
            watch.stop()
        self._batcher.wake()
        for watch in self._watches:
            watch.join(timeout=5.0)

    def wait_synced(self, timeout: float) -> None:
        """Returns when every watch is synced; `timeout` in seconds.

        Raises ConnectionFailedError if nothing answers, RequestError if the account is unknown or not allowed, and
        NotSyncedError after the timeout. The watches continue until `stop`.
        """
        self._health.wait_synced(timeout)
        self._batcher.forget()

    def require_synced(self) -> None:
        """Raises NotSyncedError unless every watch is synced."""
        self._health.require_synced()

    def require_known_schema(self) -> None:
        """Raises NewerSchemaError if the definitions are those of a newer release: their objects may have fields that
        this release ignores."""
        for definition in self._definitions.values():
            version = definition.labels.get(SCHEMA, "")
            if version.isdecimal() and int(version) > SCHEMA_VERSION:
                raise NewerSchemaError(
                    f"the kind {definition.name} has schema {version}, and this release supports {SCHEMA_VERSION}",
                    "run the release that created it, or deploy this release's foundation stack",
                )

    def warnings(self) -> tuple[str, ...]:
        """See `Health.warnings`."""
        return self._health.warnings()

    def broken(self) -> tuple[str, ...]:
        """See `Health.broken`."""
        return self._health.broken()

    def ages(self) -> Mapping[str, float]:
        """Seconds since each watched kind was listed, or its watch delivered something or ended regularly."""
        return self._health.ages()

    def silent(self) -> tuple[str, ...]:
        """See `Health.silent`."""
        return self._health.silent()

    def wait(self, idle: float, maximum: float, timeout: float) -> bool:
        """Waits for relevant changes, see `Batcher.wait`: True when they pause, False after `timeout`."""
        return self._batcher.wait(idle, maximum, timeout)

    def pause(self, idle: float, maximum: float) -> bool:
        """Waits for the end of a burst, see `Batcher.pause`. Returns whether there were further changes."""
        return self._batcher.pause(idle, maximum)

    def wake(self) -> None:
        """Ends the current `wait`, or the next one. Safe in a signal handler."""
        self._batcher.wake()

    def list_again(self, store: Store[Any]) -> None:
        """Lists the objects of a store anew, because the path of its kind changed. Returns at once."""
        self._watch_of[store].interrupt()

    def _update_presences(self) -> None:
        existing = {definition.name: definition.revision for definition in self._definitions.values()}
        for name, (presence, watch) in self._presences.items():
            presence.set(existing.get(name, ABSENT))
            if name not in existing:
                watch.interrupt()
