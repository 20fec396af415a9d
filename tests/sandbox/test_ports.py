"""Ports of a sandbox's processes: no other process gets a port between its choice and the start of its server."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from plimsoll.errors import PlimsollError
from plimsoll.sandbox.processes import LOOPBACK, hold_port, port_of


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def serve(stack: ExitStack, port: int) -> socket.socket:
    """A server like Go's, with SO_REUSEADDR."""
    server = stack.enter_context(socket.socket())
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind((LOOPBACK, port))
    server.listen()
    return server


def test_a_server_listens_on_its_reserved_port(opened: ExitStack) -> None:
    port = port_of(opened.enter_context(hold_port()))
    server = serve(opened, port)
    client = opened.enter_context(socket.create_connection((LOOPBACK, port)))
    assert server.accept()[0].getpeername() == client.getsockname()


def test_a_reserved_port_is_not_assigned_to_others(opened: ExitStack) -> None:
    held = {port_of(opened.enter_context(hold_port())) for _ in range(500)}
    others = [opened.enter_context(hold_port()) for _ in range(200)]
    server = serve(opened, port_of(others[0]))
    clients = [opened.enter_context(socket.create_connection(server.getsockname())) for _ in range(100)]

    assert len(held) == 500
    assert held.isdisjoint(map(port_of, others))
    assert held.isdisjoint(map(port_of, clients))
    with pytest.raises(OSError, match="in use"), socket.socket() as plain:
        plain.bind((LOOPBACK, min(held)))


def test_a_port_in_use_is_refused_by_its_number(opened: ExitStack) -> None:
    port = port_of(opened.enter_context(hold_port()))
    serve(opened, port)

    with pytest.raises(PlimsollError, match=str(port)):
        hold_port(port)


def test_the_port_of_an_ended_server_can_be_reserved(opened: ExitStack) -> None:
    with hold_port() as held, ExitStack() as serving:
        port = port_of(held)
        server = serve(serving, port)
        opened.enter_context(socket.create_connection((LOOPBACK, port)))
        server.accept()[0].close()

    assert port_of(opened.enter_context(hold_port(port))) == port
