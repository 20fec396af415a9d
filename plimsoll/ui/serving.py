"""Serves the pages on this machine."""

from contextlib import AbstractContextManager
from typing import Final

from starlette.applications import Starlette

from plimsoll import http_server

_MOST: Final = 256
"""Maximum number of connections. Each open page keeps one."""


def serve(app: Starlette, host: str, port: int) -> AbstractContextManager[str]:
    """Serves in a thread; yields the address. Port 0 takes a free one.

    Raises PlimsollError where the address cannot be used.
    """
    return http_server.serve(app, host, port, what="pages", options="--port or --host", most=_MOST)
