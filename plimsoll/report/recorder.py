"""Writes events in a background thread: late events never delay a round. Those that the apiserver is not reached for
wait for the next round.

Namespaces take turns, and each has room for a number of events that wait: one with many does not delay, or push out,
those of others.
"""

import os
import socket
import threading
from collections import OrderedDict, deque
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Final

import structlog

from plimsoll.kube import MERGE_PATCH, Connection, ConnectionFailedError, RequestError
from plimsoll.report.events import Event, micro_time

BACKLOG: Final = 10_000
"""Number of different events whose repetitions are counted."""
OF_NAMESPACE: Final = 1_000
"""Maximum queued events of one namespace; further ones are dropped, and their number is logged."""
TIMEOUT: Final = 10.0

log = structlog.get_logger(__name__)


class Recorder:
    """One thread, one request at a time, so that a burst of events does not load the apiserver."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._instance = f"{socket.gethostname()}-{os.getpid()}"
        self._waiting = _Turns()
        self._repeated: dict[str, int] = {}
        # Its thread is joined at the end of the process: everything queued by then is still written.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="events")

    def record(self, events: Iterable[Event], now: datetime) -> None:
        """Queues events, and has those written that wait; returns at once."""
        for namespace, dropped in self._waiting.put((event, now) for event in events).items():
            log.warning("too many events of one namespace", namespace=namespace, dropped=dropped)
        if self._waiting:
            self._thread.submit(self._drain)

    def close(self) -> None:
        """Returns when all queued events are written, or the apiserver is not reached; nothing may be recorded
        afterwards."""
        self.record((), datetime.now(UTC))
        self._thread.shutdown(wait=True)

    def _drain(self) -> None:
        while (waiting := self._waiting.next()) is not None:
            event, now = waiting
            try:
                self._write(event, now)
            except RequestError as error:
                # 404: the namespace is deleted, so nobody reads the event.
                if error.code != 404:
                    log.warning("cannot write event", reason=event.reason, error=error.message)
            except ConnectionFailedError as error:
                self._waiting.put_back(waiting)
                log.warning("cannot write events, they wait", error=error.message)
                break
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


class _Turns:
    """Events that wait, by namespace; one of each namespace in turn."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queues: OrderedDict[str, deque[tuple[Event, datetime]]] = OrderedDict()

    def put(self, events: Iterable[tuple[Event, datetime]]) -> dict[str, int]:
        """Queues the events; the number of those that are dropped, by namespace."""
        dropped: dict[str, int] = {}
        with self._lock:
            for event in events:
                namespace = event[0].namespace
                queue = self._queues.setdefault(namespace, deque())
                if len(queue) < OF_NAMESPACE:
                    queue.append(event)
                else:
                    dropped[namespace] = dropped.get(namespace, 0) + 1
        return dropped

    def next(self) -> tuple[Event, datetime] | None:
        """Removes the next event; None if there is none."""
        with self._lock:
            if not self._queues:
                return None
            namespace, queue = self._queues.popitem(last=False)
            event = queue.popleft()
            if queue:
                self._queues[namespace] = queue
            return event

    def put_back(self, event: tuple[Event, datetime]) -> None:
        """As the next of its namespace."""
        with self._lock:
            self._queues.setdefault(event[0].namespace, deque()).appendleft(event)

    def __bool__(self) -> bool:
        with self._lock:
            return bool(self._queues)
