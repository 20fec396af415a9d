"""Base of the background writers: writes the latest item of each object, several objects at a time."""

import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class LatestWriter(Generic[T, R]):
    """Writes items by key on several threads; two items of one key are written one after the other.

    If a newer item of a key is queued before the older one is written, only the newer one is written. Further state of
    subclasses is guarded by `_lock`.
    """

    def __init__(self, threads: int, name: str) -> None:
        self._lock = threading.Condition()
        self._waiting: dict[str, T] = {}
        self._busy: set[str] = set()
        self._most = threads
        # The threads are joined at the end of the process, so queued items are still written.
        self._threads = ThreadPoolExecutor(max_workers=threads, thread_name_prefix=name)

    def flush(self) -> None:
        """Returns when no item is queued or being written."""
        with self._lock:
            self._lock.wait_for(lambda: not self._waiting and not self._busy)

    def close(self) -> None:
        """Returns when all queued items are written; nothing may be written afterwards."""
        self._threads.shutdown(wait=True)

    def _write(self, item: T) -> R:
        """Writes one item, on one of the threads; logs what fails instead of raising it."""
        raise NotImplementedError

    def _wrote(self, key: str, item: T, result: R) -> None:
        """Called with the result of `_write`, with the lock held, before another item of the key is started."""

    def _may_begin(self, key: str) -> bool:
        """Whether the waiting item of that key may be written now. Called with the lock held."""
        return True

    def _queue(self, items: Mapping[str, T]) -> None:
        """Queues the items. Returns at once."""
        with self._lock:
            self._waiting.update(items)
        self._begin(len(items))

    def _begin(self, items: int) -> None:
        """Lets threads write this many items."""
        for _ in range(min(items, self._most)):
            self._threads.submit(self._drain)

    def _drain(self) -> None:
        while (taken := self._next()) is not None:
            key, item = taken
            written = False
            try:
                result = self._write(item)
                written = True
            finally:
                with self._lock:
                    self._busy.discard(key)
                    if written:
                        self._wrote(key, item, result)
                    self._lock.notify_all()

    def _next(self) -> tuple[str, T] | None:
        """The next item that no other thread is writing."""
        with self._lock:
            key = next((key for key in self._waiting if key not in self._busy and self._may_begin(key)), None)
            if key is None:
                return None
            self._busy.add(key)
            return key, self._waiting.pop(key)
