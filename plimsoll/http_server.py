"""An HTTP server that its clients cannot hold up: the number of connections and the time of each step are bounded.

uvicorn limits neither the connections nor the time until a request is there; a thread for each connection, as in the
servers of Python's library, ends with the file descriptors.
"""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from plimsoll.errors import PlimsollError

STEP_SECONDS: Final = 15.0
"""How long a client may take to send a request, from the connection or the last response on, and to read what was
written to it."""
_HEAD_BYTES: Final = 16 * 1024
"""Maximum size of a request's line and headers."""
_BACKLOG: Final = 64
"""Maximum number of connections that are accepted at once; more wait in the kernel."""


@contextmanager
def serve(app: Any, host: str, port: int, *, what: str, options: str, most: int) -> Iterator[str]:
    """Serves an ASGI application in a thread; yields the address. Port 0 takes a free one.

    With more than `most` connections, the one that has waited longest without a request is closed. Raises PlimsollError
    where the address cannot be used: `what` cannot be served, set other `options`.
    """
    try:
        listener = _listen(host, port)
    except (OSError, OverflowError) as error:
        raise PlimsollError(f"cannot serve {what} on {host}:{port}: {error}", f"set another {options}") from None
    protocol: Any = partial(_Bounded, most)
    config = uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        h11_max_incomplete_event_size=_HEAD_BYTES,
        backlog=_BACKLOG,
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name=what, daemon=True)
    thread.start()
    shown = f"[{host}]" if ":" in host else host
    try:
        yield f"http://{shown}:{listener.getsockname()[1]}/"
    finally:
        server.should_exit = True
        thread.join(timeout=5)
        listener.close()


def _listen(host: str, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        # Requests that arrive before the server has started wait in this queue.
        listener.listen(_BACKLOG)
    except (OSError, OverflowError):
        listener.close()
        raise
    return listener


class _Bounded(H11Protocol):
    """A connection that waits for its client at most STEP_SECONDS."""

    def __init__(self, most: int, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._most = most
        self._waits_since = time.monotonic()
        self._deadline: asyncio.TimerHandle | None = None

    @property
    def _waits(self) -> bool:
        """Whether the client has not sent its next request as a whole."""
        return self.cycle is None or self.cycle.response_complete or self.cycle.more_body

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_client()
        if len(self.connections) > self._most:
            # This one, if all others have a request that is being answered.
            waiting = (each for each in self.connections if isinstance(each, _Bounded) and each._waits)
            oldest = min(waiting, key=lambda each: each._waits_since)
            self.connections.discard(oldest)
            oldest.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._go_on()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        super().handle_events()
        if not self._waits:
            self._go_on()

    def on_response_complete(self) -> None:
        self._await_client()
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._await_client()

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self._waits:
            self._go_on()

    def _await_client(self) -> None:
        self._go_on()
        self._waits_since = time.monotonic()
        self._deadline = self.loop.call_later(STEP_SECONDS, self.transport.abort)

    def _go_on(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
