"""The Observer: watches of every kind, one Snapshot."""

import threading
from pathlib import Path

from plimsoll.kube import Connection
from plimsoll.model import Snapshot
from plimsoll.observe.cloud_types import CloudTypes
from plimsoll.observe.cluster.batcher import Batcher
from plimsoll.observe.cluster.cluster_watch import ClusterWatch
from plimsoll.observe.cluster.snapshots import Stores


class Observer(ClusterWatch):
    """Keeps what the cluster holds, as far as capacity is planned on it."""

    def __init__(self, connection: Connection, batcher: Batcher | None = None, cloud_types: Path | None = None) -> None:
        """`cloud_types` is the folder that keeps what clouds say of instance types; None: no cloud is asked."""
        batcher = batcher or Batcher()
        self._stores = Stores()
        super().__init__(connection, self._stores, batcher)
        self._cloud_types = None if cloud_types is None else CloudTypes(cloud_types, batcher.note)
        self._lock = threading.Lock()
        self._latest: tuple[object, Snapshot] | None = None

    def snapshot(self) -> Snapshot:
        """The cluster as it is known now; the same value while nothing changes.

        Raises NotSyncedError before every watch is synced, NewerSchemaError on kinds of a newer release, PlimsollError
        on more than one Environment, and InvalidObjectError on one that cannot be read.
        """
        self.require_synced()
        self.require_known_schema()
        with self._lock:
            warnings = self.warnings()
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
