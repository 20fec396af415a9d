"""A thread that does one task after the other."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class Worker:
    """`on_idle` is called, on the thread, whenever the last waiting task has ended."""

    def __init__(self, name: str, on_idle: Callable[[], None]) -> None:
        self._on_idle = on_idle
        self._waiting = 0
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=name)

    @property
    def tasks(self) -> int:
        """How many run or wait."""
        return self._waiting

    def submit(self, task: Callable[[], T]) -> "Future[T]":
        with self._lock:
            self._waiting += 1
        return self._pool.submit(self._perform, task)

    def close(self, last: Callable[[], None]) -> None:
        """Awaits the tasks, and a last one after them."""
        self._pool.submit(last)
        self._pool.shutdown(wait=True)

    def _perform(self, task: Callable[[], T]) -> T:
        try:
            return task()
        finally:
            with self._lock:
                self._waiting -= 1
                idle = self._waiting == 0
            if idle:
                self._on_idle()
