"""Free ports on loopback."""

import socket
from contextlib import ExitStack
from typing import Final

from plimsoll.errors import PlimsollError

LOOPBACK: Final = "127.0.0.1"


def free_ports(count: int) -> list[int]:
    """That many different ports that nothing listens on now. Another process may take one before it is used."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind((LOOPBACK, 0))
        return [int(one.getsockname()[1]) for one in sockets]


def require_free(port: int) -> None:
    """Raises a PlimsollError if something listens on that port."""
    with socket.socket() as probe:
        # As the servers do: a port whose last connections are still winding down may be bound.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            raise PlimsollError(
                f"Port {port} on {LOOPBACK} is taken ({error.strerror}).",
                "Choose another --port, or leave it out to get a free one.",
            ) from error
