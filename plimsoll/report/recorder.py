"""Writes events in a background thread: late or lost events never delay a round."""

import os
import socket
from collections import deque
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Final

import structlog

from plimsoll.kube import MERGE_PATCH, Connection, ConnectionFailedError, RequestError
from plimsoll.report.events import Event, micro_time

BACKLOG: Final = 10_000
"""Maximum queued events; beyond that the oldest are dropped."""
TIMEOUT: Final = 10.0

log = structlog.get_logger(__name__)


class Recorder:
    """One thread, one request at a time, so that a burst of events does not load the apiserver."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._instance = f"{socket.gethostname()}-{os.getpid()}"
        self._waiting: deque[tuple[Event, datetime]] = deque(maxlen=BACKLOG)
        self._repeated: dict[str, int] = {}
        # Its thread is joined at the end of the process: everything queued by then is still written.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="events")

    def record(self, events: Iterable[Event], now: datetime) -> None:
        """Queues events; returns at once."""
        taken = [(event, now) for event in events]
        if taken:
            self._waiting.extend(taken)
            self._thread.submit(self._drain)

    def close(self) -> None:
        """Returns when all queued events are written; nothing may be recorded afterwards."""
        self._thread.shutdown(wait=True)

    def _drain(self) -> None:
        while self._waiting:
            event, now = self._waiting.popleft()
            try:
                self._write(event, now)
            except RequestError as error:
                # 404: the namespace is deleted, so nobody reads the event.
                if error.code != 404:
                    log.warning("cannot write event", reason=event.reason, error=error.message)
            except ConnectionFailedError as error:
                log.warning("cannot write events", dropped=len(self._waiting) + 1, error=error.message)
                self._waiting.clear()
        if len(self._repeated) > BACKLOG:
            self._repeated.clear()

    def _write(self, event: Event, now: datetime) -> None:
        path = f"/apis/events.k8s.io/v1/namespaces/{event.namespace}/events"
        try:
            self._connection.request("POST", path, event.manifest(now, self._instance), timeout=TIMEOUT)
        except RequestError as error:
            if error.reason != "AlreadyExists":
                raise
            # Counted since the start of this process: reading the object would need another permission.
            count = self._repeated[event.name] = self._repeated.get(event.name, 1) + 1
            series = {"series": {"count": count, "lastObservedTime": micro_time(now)}}
            self._connection.request("PATCH", f"{path}/{event.name}", series, content_type=MERGE_PATCH, timeout=TIMEOUT)
