"""Serves the pages on this machine."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.applications import Starlette

from plimsoll.errors import PlimsollError


@contextmanager
def serve(app: Starlette, host: str, port: int) -> Iterator[str]:
    """Serves in a thread; yields the address. Port 0 takes a free one.

    Raises PlimsollError where the address cannot be used.
    """
    listener = _listen(host, port)
    server = uvicorn.Server(
        uvicorn.Config(app, log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=1)
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="pages", daemon=True)
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
        listener.listen(128)
    except (OSError, OverflowError) as error:
        listener.close()
        raise PlimsollError(f"cannot serve pages on {host}:{port}: {error}", "set another --port or --host") from None
    return listener
