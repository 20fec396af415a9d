"""A request to stop, which a signal handler can make."""

import math
import signal
import time
from types import FrameType
from typing import Final

_POLL_SECONDS: Final = 0.1


class StopRequest:
    """Whether a thread, or a handler of a signal, asked another one to stop. Unlike an Event it has no lock: a handler
    interrupts a thread that may hold that."""

    def __init__(self) -> None:
        self.requested = False

    def request(self) -> None:
        self.requested = True

    def on_signals(self) -> None:
        """SIGTERM and SIGINT request it from now on; for the main thread."""
        signal.signal(signal.SIGTERM, self._handle)
        signal.signal(signal.SIGINT, self._handle)

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        self.request()

    def wait(self) -> None:
        """Returns soon after the request. Not by a lock: a signal that comes just before a thread waits for that is
        handled after the wait only."""
        self.sleep(math.inf)

    def sleep(self, seconds: float) -> None:
        """Returns soon after the request, if it comes before the end."""
        until = time.monotonic() + seconds
        while not self.requested and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, _POLL_SECONDS))
