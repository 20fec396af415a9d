"""Batches changes: a single change at rest starts a round at once, a burst starts one soon after its end."""

import threading
import time
from typing import Protocol


class Clock(Protocol):
    """Time for the Batcher: seconds that only grow, and waiting on a condition."""

    def now(self) -> float: ...

    def wait(self, condition: threading.Condition, seconds: float) -> None: ...


class MonotonicClock:
    """The machine's own."""

    def now(self) -> float:
        return time.monotonic()

    def wait(self, condition: threading.Condition, seconds: float) -> None:
        condition.wait(seconds)


class Batcher:
    """Collects changes until they pause. One thread waits; any thread notes."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock: Clock = clock or MonotonicClock()
        self._condition = threading.Condition()
        self._first: float | None = None
        self._last = 0.0
        self._at_once = False
        self._idle: float | None = None
        """Of the wait in progress."""
        self._woken = False

    def note(self, *, at_once: bool = False) -> None:
        """A change that can matter happened.

        With `at_once`, a change that comes at rest (somebody waits, and nothing has changed for the wait's `idle`)
        ends the wait immediately; the changes that follow it are gathered by the next wait.
        """
        with self._condition:
            now = self._clock.now()
            if self._first is None:
                self._first = now
                self._at_once = at_once and self._idle is not None and now - self._last >= self._idle
            self._last = now
            self._condition.notify_all()

    def wake(self) -> None:
        """Ends the wait in progress, or the next one; safe in a signal handler."""
        with self._condition:
            self._woken = True
            self._condition.notify_all()

    def forget(self) -> None:
        """Drops what was noted: whoever calls reads the whole state anyway."""
        with self._condition:
            self._first = None

    def pause(self, idle: float, maximum: float) -> bool:
        """Waits until nothing has changed for `idle`, at most `maximum`; whether something did since the last wait.

        A change that was acted on already counts: the time that this took is not waited for again.
        """
        with self._condition:
            left = self._last + idle - self._clock.now()
        return self.wait(idle, maximum, max(0.0, left))

    def wait(self, idle: float, maximum: float, timeout: float) -> bool:
        """True once a change has been quiet for `idle`, or `maximum` after the first; all in seconds.

        False when nothing happened for `timeout`, or on `wake`. A change near the timeout still gets its window.
        """
        with self._condition:
            end = self._clock.now() + timeout
            self._idle = idle
            while not self._woken:
                due = end if self._first is None else min(self._last + idle, self._first + maximum)
                if self._first is not None and self._at_once:
                    break
                remaining = due - self._clock.now()
                if remaining <= 0:
                    break
                self._clock.wait(self._condition, remaining)
            changed = self._first is not None and not self._woken
            self._woken = False
            self._idle = None
            if changed:
                self._first = None
            return changed
