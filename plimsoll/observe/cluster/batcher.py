"""Batches changes: a single change while idle starts a round at once; a burst of changes starts one round when it
ends."""

import threading
import time
from typing import Protocol


class Clock(Protocol):
    """The clock of a Batcher: seconds that never decrease, and waiting on a condition."""

    def now(self) -> float: ...

    def wait(self, condition: threading.Condition, seconds: float) -> None: ...


class MonotonicClock:
    """The monotonic clock of the machine."""

    def now(self) -> float:
        return time.monotonic()

    def wait(self, condition: threading.Condition, seconds: float) -> None:
        condition.wait(seconds)


class Batcher:
    """Collects changes until they pause. One thread waits; any thread may call `note`."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock: Clock = clock or MonotonicClock()
        self._condition = threading.Condition()
        self._first: float | None = None
        self._last = 0.0
        self._at_once = False
        self._idle: float | None = None
        """The `idle` seconds of the wait in progress."""
        self._woken = False

    def note(self, *, at_once: bool = False) -> None:
        """Records a relevant change.

        With `at_once`, a change while idle (a thread waits, and nothing has changed for that wait's `idle` seconds)
        ends the wait immediately. The changes that follow it are collected by the next wait.
        """
        with self._condition:
            now = self._clock.now()
            if self._first is None:
                self._first = now
                self._at_once = at_once and self._idle is not None and now - self._last >= self._idle
            self._last = now
            self._condition.notify_all()

    def wake(self) -> None:
        """Ends the current wait, or the next one. Safe in a signal handler."""
        with self._condition:
            self._woken = True
            self._condition.notify_all()

    def forget(self) -> None:
        """Drops recorded changes, because the caller reads the whole state anyway."""
        with self._condition:
            self._first = None

    def pause(self, idle: float, maximum: float) -> bool:
        """Waits until nothing has changed for `idle` seconds, at most `maximum` seconds. Returns whether something
        changed since the last wait.

        The time that was spent on acting on a change counts as part of the wait.
        """
        with self._condition:
            left = self._last + idle - self._clock.now()
        return self.wait(idle, maximum, max(0.0, left))

    def wait(self, idle: float, maximum: float, timeout: float) -> bool:
        """Waits for changes. Returns True when nothing has changed for `idle` seconds after a change, or `maximum`
        seconds after the first change.

        Returns False if nothing changed for `timeout` seconds, or on `wake`. A change shortly before the timeout is
        still followed for `idle`.
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
