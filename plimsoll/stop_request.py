"""A request to stop, which a signal handler can make."""

import time
from typing import Final

_POLL_SECONDS: Final = 0.1


class StopRequest:
    """Whether a thread, or a handler of a signal, asked another one to stop. Unlike an Event it has no lock: a handler
    interrupts a thread that may hold that."""

    def __init__(self) -> None:
        self.requested = False

    def request(self) -> None:
        self.requested = True

    def sleep(self, seconds: float) -> None:
        """Returns soon after the request, if it comes before the end."""
        until = time.monotonic() + seconds
        while not self.requested and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, _POLL_SECONDS))
