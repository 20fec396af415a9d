"""Observer: watches of all kinds, combined into one Snapshot."""

import threading
from pathlib import Path

from plimsoll.kube import Connection
from plimsoll.model import Snapshot
from plimsoll.observe.cloud_types import CloudTypes
from plimsoll.observe.cluster.batcher import Batcher
from plimsoll.observe.cluster.cluster_watch import ClusterWatch
from plimsoll.observe.cluster.health import SILENCE_SECONDS
from plimsoll.observe.cluster.snapshots import Stores
from plimsoll.observe.hub_models import HubModels


class Observer(ClusterWatch):
    """Keeps the state of the cluster, as far as planning needs it."""

    def __init__(
        self,
        connection: Connection,
        batcher: Batcher | None = None,
        cloud_types: Path | None = None,
        hub_timeout: float | None = 0.0,
        silence: float = SILENCE_SECONDS,
    ) -> None:
        """`cloud_types` is the folder that stores instance types of clouds; with None, no cloud is queried.
        `hub_timeout` is how many seconds a snapshot waits for data of new models from a hub; with None, as long as the
        hub's deadline. `silence` is that of ClusterWatch."""
        batcher = batcher or Batcher()
        self._stores = Stores()
        super().__init__(connection, self._stores, batcher, silence)
        self._cloud_types = None if cloud_types is None else CloudTypes(cloud_types, batcher.note)
        self._hub_models = HubModels(connection, batcher.note, hub_timeout)
        self._lock = threading.Lock()
        self._latest: tuple[object, Snapshot] | None = None

    def snapshot(self) -> Snapshot:
        """The current state of the cluster; the same object while nothing changes.

        Raises NotSyncedError before every watch is synced, NewerSchemaError for definitions of a newer release,
        PlimsollError for more than one Environment, and InvalidObjectError for an Environment that cannot be read.
        """
        self.require_synced()
        self.require_known_schema()
        with self._lock:
            warnings = self.warnings()
            state = (self._stores.version, warnings, self._answers())
            if self._latest is None or self._latest[0] != state:
                self._latest = self._observed(warnings)
            return self._latest[1]

    def stop(self) -> None:
        self._hub_models.close()
        super().stop()

    def _answers(self) -> tuple[int, int]:
        self._hub_models.refresh()
        if self._cloud_types is None:
            return self._hub_models.version, 0
        self._cloud_types.refresh()
        return self._hub_models.version, self._cloud_types.version

    def _observed(self, warnings: tuple[str, ...]) -> tuple[object, Snapshot]:
        """A new snapshot, and the versions of what it was made of."""
        if self._stores.locate_requests():
            self.list_again(self._stores.request_events)
        version = self._stores.version
        snapshot = self._stores.snapshot(warnings, tuple(each for each in self.broken() if each in warnings))
        if self._cloud_types is not None:
            snapshot = self._cloud_types.completed(snapshot)
        # The versions from before: an answer that arrives meanwhile causes another snapshot.
        hub = self._hub_models.version
        snapshot = self._hub_models.completed(snapshot)
        return (version, warnings, (hub, self._answers()[1])), snapshot
