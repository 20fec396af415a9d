"""Ports on loopback, kept for the processes of one sandbox."""

import socket
from typing import Final

from plimsoll.errors import PlimsollError

LOOPBACK: Final = "127.0.0.1"


def hold_port(port: int = 0) -> socket.socket:
    """A socket that keeps a port for a server until it is closed; 0 takes a free port.

    It never listens. The kernel gives its port to no other socket and to no outgoing connection, and lets a server
    listen on it that sets SO_REUSEADDR, as Go's do. Raises a PlimsollError if something listens on the port.
    """
    held = socket.socket()
    try:
        # As the servers do: a port whose last connections are still winding down may be bound.
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, int(port != 0))
        held.bind((LOOPBACK, port))
    except OSError as error:
        held.close()
        raise PlimsollError(
            f"Port {port} on {LOOPBACK} is taken ({error.strerror}).",
            "Set another --port, or omit it to use a free one.",
        ) from error
    # Set before, the kernel could have chosen a port that is held in the same way.
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return held


def port_of(held: socket.socket) -> int:
    return int(held.getsockname()[1])
