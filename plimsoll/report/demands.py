"""Writes GPUDemands in background threads: creates them with their demand, updates them, and deletes them after it."""

import time
from collections.abc import Iterable, Mapping
from typing import Any, Final

import structlog

from plimsoll.kube import APPLY_PATCH, Connection, ConnectionFailedError, RequestError
from plimsoll.labels import API_VERSION
from plimsoll.model.api import DemandReport, GPUDemandStatus
from plimsoll.report.latest_writer import LatestWriter
from plimsoll.report.statuses import QUERY, TIMEOUT, path_of

KIND: Final = "GPUDemand"
WRITERS: Final = 4
SHOWN_SECONDS: Final = 5.0
"""How long a watch may take to show what was written."""

_GONE: Final = (404, 409)
"""Codes of a deletion that finds no object of that name, or another one than was seen."""

log = structlog.get_logger(__name__)


class DemandWriter(LatestWriter[tuple[DemandReport, bool, str], bool]):
    """Writes the latest report of each GPUDemand; failures are logged, and the report is written again in the next
    round."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(WRITERS, "demands")
        self._connection = connection
        self._written: dict[str, tuple[GPUDemandStatus | None, float]] = {}
        """By name: what was written last, and when."""

    def write(
        self, reports: Iterable[DemandReport], known: Mapping[str, GPUDemandStatus], uids: Mapping[str, str]
    ) -> None:
        """Queues reports that differ from `known`, the statuses in the cluster by name. `uids` are those of the objects
        that the snapshot shows, by name: an object is deleted by its UID. Returns at once."""
        now = time.monotonic()
        with self._lock:
            self._written = {name: each for name, each in self._written.items() if now - each[1] < SHOWN_SECONDS}
            taken = [report for report in reports if self._differs(report, known)]
            self._queue(
                {report.name: (report, report.name not in known, uids.get(report.name, "")) for report in taken}
            )

    def newest(self, known: Mapping[str, GPUDemandStatus]) -> Mapping[str, GPUDemandStatus]:
        """`known`, with written statuses that no watch has delivered yet."""
        with self._lock:
            written = {name: each[0] for name, each in self._written.items()}
        newest = {**known, **written}
        return {name: status for name, status in newest.items() if status is not None}

    def _differs(self, report: DemandReport, known: Mapping[str, GPUDemandStatus]) -> bool:
        if report.name in self._written:
            return self._written[report.name][0] != report.status
        return known.get(report.name) != report.status

    def _write(self, item: tuple[DemandReport, bool, str]) -> bool:
        """Returns whether the object was written."""
        report, new, uid = item
        try:
            if report.status is None:
                self._delete(report.name, uid)
            else:
                self._put(report.name, report.status, new)
        except (RequestError, ConnectionFailedError) as error:
            log.warning("cannot write GPUDemand", demand=report.name, error=error.message)
            return False
        return True

    def _wrote(self, key: str, item: tuple[DemandReport, bool, str], result: bool) -> None:
        if result:
            self._written[key] = (item[0].status, time.monotonic())

    def _delete(self, name: str, uid: str) -> None:
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": uid}}
        try:
            self._connection.request("DELETE", path_of(KIND, "", name), options, timeout=TIMEOUT)
        except RequestError as error:
            if error.code not in _GONE:
                raise

    def _put(self, name: str, status: GPUDemandStatus, new: bool) -> None:
        path = path_of(KIND, "", name)
        if new:
            self._apply(path, {**_identity(name), "spec": {}})
        self._apply(f"{path}/status", {**_identity(name), "status": status.as_manifest()})

    def _apply(self, path: str, manifest: dict[str, Any]) -> None:
        self._connection.request("PATCH", path, manifest, query=QUERY, content_type=APPLY_PATCH, timeout=TIMEOUT)


def _identity(name: str) -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name}}
