"""Reserves ports on loopback for the processes of a sandbox."""

import socket
from typing import Final

from plimsoll.errors import PlimsollError

LOOPBACK: Final = "127.0.0.1"


def hold_port(port: int = 0) -> socket.socket:
    """Returns a socket that reserves a port for a server until it is closed; 0 selects a free port.

    The socket never listens. The kernel gives its port to no other socket and to no outgoing connection, but lets a
    server listen on it that sets SO_REUSEADDR, as Go's servers do. Raises PlimsollError if something listens on the
    port.
    """
    held = socket.socket()
    try:
        # As servers do: a port may be bound while connections of its last server are closing.
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, int(port != 0))
        held.bind((LOOPBACK, port))
    except OSError as error:
        held.close()
        raise PlimsollError(
            f"Port {port} on {LOOPBACK} cannot be used ({error.strerror}).",
            "Set another --port, or omit it to use a free one.",
        ) from error
    # Set after bind: otherwise the kernel could choose a port that is reserved in the same way.
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return held


def port_of(held: socket.socket) -> int:
    return int(held.getsockname()[1])
