"""Writes GPUDemands in background threads: creates each, updates its status, and deletes it when it is over."""

import threading
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import structlog

from plimsoll.kube import APPLY_PATCH, Connection, ConnectionFailedError, RequestError
from plimsoll.labels import API_VERSION
from plimsoll.model.api import DemandReport, GPUDemandStatus
from plimsoll.report.statuses import QUERY, TIMEOUT, path_of

KIND: Final = "GPUDemand"
WRITERS: Final = 4
SHOWN_SECONDS: Final = 5.0
"""How long a watch may take to deliver a write."""

log = structlog.get_logger(__name__)


class DemandWriter:
    """Writes the latest report of each GPUDemand; a failure is logged, and the next report is written again."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        # Its threads are joined at the end of the process: everything queued by then is still written.
        self._threads = ThreadPoolExecutor(max_workers=WRITERS, thread_name_prefix="demands")
        self._lock = threading.Condition()
        self._waiting: dict[str, tuple[DemandReport, bool]] = {}
        self._busy: set[str] = set()
        self._written: dict[str, tuple[GPUDemandStatus | None, float]] = {}
        """By name: the last written status, and when."""

    def write(self, reports: Iterable[DemandReport], known: Mapping[str, GPUDemandStatus]) -> None:
        """Queues the reports that differ from `known`, the statuses in the cluster by name. Returns at once."""
        now = time.monotonic()
        with self._lock:
            self._written = {name: each for name, each in self._written.items() if now - each[1] < SHOWN_SECONDS}
            taken = [each for each in reports if self._differs(each, known)]
            self._waiting.update({each.name: (each, each.name not in known) for each in taken})
        for _ in range(min(len(taken), WRITERS)):
            self._threads.submit(self._drain)

    def newest(self, known: Mapping[str, GPUDemandStatus]) -> Mapping[str, GPUDemandStatus]:
        """`known`, with the written statuses that no watch has delivered yet."""
        with self._lock:
            written = {name: each[0] for name, each in self._written.items()}
        found = {**known, **written}
        return {name: status for name, status in found.items() if status is not None}

    def flush(self) -> None:
        """Returns when nothing is queued or in progress."""
        with self._lock:
            self._lock.wait_for(lambda: not self._waiting and not self._busy)

    def close(self) -> None:
        """Returns when all queued reports are written; nothing may be written afterwards."""
        self._threads.shutdown(wait=True)

    def _differs(self, report: DemandReport, known: Mapping[str, GPUDemandStatus]) -> bool:
        if report.name in self._written:
            return self._written[report.name][0] != report.status
        return known.get(report.name) != report.status

    def _drain(self) -> None:
        while (taken := self._next()) is not None:
            report, new = taken
            written = False
            try:
                self._write(report, new)
                written = True
            except (RequestError, ConnectionFailedError) as error:
                log.warning("cannot write GPUDemand", demand=report.name, error=error.message)
            finally:
                with self._lock:
                    self._busy.discard(report.name)
                    if written:
                        self._written[report.name] = (report.status, time.monotonic())
                    self._lock.notify_all()

    def _next(self) -> tuple[DemandReport, bool] | None:
        """One that no other thread is writing."""
        with self._lock:
            name = next((name for name in self._waiting if name not in self._busy), None)
            if name is None:
                return None
            self._busy.add(name)
            return self._waiting.pop(name)

    def _write(self, report: DemandReport, new: bool) -> None:
        path = path_of(KIND, "", report.name)
        if report.status is None:
            try:
                self._connection.request("DELETE", path, timeout=TIMEOUT)
            except RequestError as error:
                if error.code != 404:
                    raise
            return
        if new:
            self._apply(path, {**_identity(report.name), "spec": {}})
        self._apply(f"{path}/status", {**_identity(report.name), "status": report.status.as_manifest()})

    def _apply(self, path: str, manifest: dict[str, Any]) -> None:
        self._connection.request("PATCH", path, manifest, query=QUERY, content_type=APPLY_PATCH, timeout=TIMEOUT)


def _identity(name: str) -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name}}
