"""Writes what is learned of nodes to NodeProfiles, in background threads; creates those that do not exist."""

from datetime import datetime
from typing import Any, Final

import structlog

from plimsoll.cluster.nodes import index_of
from plimsoll.cluster.pools import SeenNodes
from plimsoll.kube import APPLY_PATCH, Connection, ConnectionFailedError, RequestError
from plimsoll.labels import API_VERSION
from plimsoll.model import Snapshot
from plimsoll.model.api import KnownNodeProfile, NodeProfileStatus, ProfileReport
from plimsoll.model.cluster import Node
from plimsoll.report.latest_writer import LatestWriter
from plimsoll.report.statuses import QUERY, TIMEOUT, path_of

KIND: Final = "NodeProfile"
WRITERS: Final = 1

log = structlog.get_logger(__name__)


class ProfileWriter(LatestWriter[ProfileReport, bool]):
    """Writes what nodes show and NodeProfiles do not say yet. A failure is logged, and written again in the next
    round."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(WRITERS, "profiles")
        self._connection = connection
        self._read: tuple[tuple[Node, ...], tuple[KnownNodeProfile, ...]] | None = None
        """The nodes and NodeProfiles whose reports are queued or written."""

    def write(self, snapshot: Snapshot, now: datetime) -> None:
        """Queues what was learned since. Returns at once."""
        read = (snapshot.nodes, snapshot.node_profiles)
        if self._read is not None and all(old is new for old, new in zip(self._read, read, strict=True)):
            return
        self._read = read
        reports = SeenNodes(index_of(snapshot.nodes), snapshot.node_profiles).learned()
        with self._lock:
            self._queue({report.name: _seen(report, now) for report in reports})

    def _write(self, item: ProfileReport) -> bool:
        """Returns whether the object was written."""
        try:
            self._put(item)
        except (RequestError, ConnectionFailedError) as error:
            log.warning("cannot write NodeProfile", profile=item.name, error=error.message)
            return False
        return True

    def _wrote(self, key: str, item: ProfileReport, result: bool) -> None:
        if not result:
            self._read = None

    def _put(self, report: ProfileReport) -> None:
        path = path_of(KIND, "", report.name)
        identity = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": report.name}}
        if report.new:
            spec = {"nodePool": report.node_pool, "instanceType": report.instance_type}
            self._apply(path, {**identity, "spec": spec})
        status = NodeProfileStatus(learned=report.learned).as_manifest()
        self._apply(f"{path}/status", {**identity, "status": status})

    def _apply(self, path: str, manifest: dict[str, Any]) -> None:
        self._connection.request("PATCH", path, manifest, query=QUERY, content_type=APPLY_PATCH, timeout=TIMEOUT)


def _seen(report: ProfileReport, now: datetime) -> ProfileReport:
    seen = now.isoformat(timespec="seconds").replace("+00:00", "Z")
    return report.model_copy(update={"learned": report.learned.model_copy(update={"seen": seen})})
