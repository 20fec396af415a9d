"""The Feed: the newest Snapshot, and notifications of the next one."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from plimsoll.model import Snapshot


class Feed:
    """Published by one thread, read by the pages' threads, awaited on an event loop."""

    def __init__(self, snapshot: Snapshot, *, followed: bool = True) -> None:
        """`followed`: whether a cluster is followed; files do not change."""
        self.followed = followed
        self._lock = threading.Lock()
        self._snapshot = snapshot
        self._waiting: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()
        self._closed = False

    @property
    def latest(self) -> Snapshot:
        return self._snapshot

    @property
    def closed(self) -> bool:
        return self._closed

    def publish(self, snapshot: Snapshot) -> None:
        """Publishes a Snapshot; the same one again counts as no change."""
        with self._lock:
            if snapshot is self._snapshot:
                return
            self._snapshot = snapshot
        self._notify()

    def close(self) -> None:
        """Ends all waiting, for the end of the process."""
        self._closed = True
        self._notify()

    def _notify(self) -> None:
        with self._lock:
            waiting = tuple(self._waiting)
        for loop, event in waiting:
            loop.call_soon_threadsafe(event.set)

    @contextmanager
    def changes(self) -> Iterator[asyncio.Event]:
        """An event that is set at each change; the reader clears it. To be used on an event loop."""
        entry = (asyncio.get_running_loop(), asyncio.Event())
        with self._lock:
            self._waiting.add(entry)
        try:
            yield entry[1]
        finally:
            with self._lock:
                self._waiting.discard(entry)
