"""What clients may do to the server that probes, metrics and pages share: take connections, be slow, send nonsense."""

import contextlib
import resource
import socket
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from plimsoll import http_server
from plimsoll.cli.controller import serving
from plimsoll.sandbox.processes import LOOPBACK, hold_port, port_of
from tests.awaiting import await_condition

MOST = 8
IDLE = 1023
"""As many as file descriptors that a process usually may have."""


async def well(scope: dict[str, Any], receive: Callable[[], Any], send: Callable[[Any], Any]) -> None:
    large = b"." * 8_000_000 if scope["path"] == "/large" else b"well"
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": large, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


@contextmanager
def served() -> Iterator[int]:
    with http_server.serve(well, LOOPBACK, 0, what="tests", options="--port", most=MOST) as address:
        yield int(address.rstrip("/").rpartition(":")[2])


@pytest.fixture
def port() -> Iterator[int]:
    with served() as port:
        yield port


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The port of a server that awaits its clients for a moment only."""
    monkeypatch.setattr(http_server, "STEP_SECONDS", 0.2)
    with served() as port:
        yield port


@pytest.fixture
def connections() -> Iterator[ExitStack]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4 * IDLE), hard))
    with ExitStack() as stack:
        yield stack
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def connect(stack: ExitStack, port: int, sends: bytes = b"") -> socket.socket:
    client = stack.enter_context(socket.create_connection((LOOPBACK, port), timeout=120))
    client.sendall(sends)
    return client


def get(port: int, path: str = "/") -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(f"http://{LOOPBACK}:{port}{path}", timeout=120) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def is_served(port: int) -> bool:
    """Whether a client is answered. One that is slow itself may not be, by an impatient server."""
    try:
        return get(port) == (200, b"well")
    except OSError:
        return False


def is_closed(client: socket.socket) -> bool:
    """Reads what was sent until the other side ends the connection; a second without an answer is no end."""
    client.settimeout(1)
    try:
        while client.recv(1 << 20):
            pass
    except TimeoutError:
        return False
    except OSError:
        return True
    return True


def test_probes_are_answered_while_a_thousand_connections_are_idle(connections: ExitStack) -> None:
    with hold_port() as held, hold_port() as other:
        metrics, probes = port_of(held), port_of(other)
        with serving(LOOPBACK, metrics, probes) as service:
            for port in (metrics, probes):
                for _ in range(IDLE):
                    connect(connections, port)
            assert get(probes, "/healthz")[0] == 200
            assert get(probes, "/readyz")[0] == 503, "nothing is synced"
            assert b"plimsoll_" in get(metrics, "/metrics")[1]
            assert [get(probes, "/metrics")[0], get(metrics, "/healthz")[0]] == [404, 404], "each on its own port"
            assert service.status.alive


@pytest.mark.parametrize(
    "sends", [b"", b"GET / HTTP/1.1\r\n", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n1"]
)
def test_connections_beyond_the_bound_close_those_that_wait_longest(
    sends: bytes, port: int, connections: ExitStack
) -> None:
    first = [connect(connections, port, sends) for _ in range(MOST)]
    for _ in range(MOST):
        connect(connections, port, sends)
    await_condition(lambda: all(map(is_closed, first)), message="the end of the first connections")
    assert get(port) == (200, b"well")


@pytest.mark.parametrize(
    "sends",
    [
        b"",
        b"GET / HTTP/1.1\r\nHost: a\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n1",
    ],
    ids=["nothing", "half a head", "no second request", "half a body"],
)
def test_a_client_that_sends_nothing_more_is_left(sends: bytes, impatient: int, connections: ExitStack) -> None:
    client = connect(connections, impatient, sends)
    await_condition(lambda: is_closed(client), 120, "the end of the connection")
    await_condition(lambda: is_served(impatient), message="an answer to another client")


def test_bytes_one_at_a_time_do_not_prolong_a_request(impatient: int, connections: ExitStack) -> None:
    client = connect(connections, impatient, b"GET / HTTP/1.1\r\nX: ")

    def trickle() -> bool:
        with contextlib.suppress(TimeoutError):
            client.settimeout(0.02)
            client.sendall(b"a")
            return client.recv(1) == b""
        return False

    def ended() -> bool:
        try:
            return trickle()
        except OSError:
            return True

    await_condition(ended, 120, "the end of the connection")


def test_a_client_that_does_not_read_is_left(impatient: int, connections: ExitStack) -> None:
    client = connect(connections, impatient, b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
    others = [connect(connections, impatient, b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n") for _ in range(MOST - 1)]
    await_condition(lambda: is_served(impatient), message="room for another client")
    await_condition(lambda: all(map(is_closed, [client, *others])), message="the end of all connections")


def test_a_head_of_any_size_is_refused(port: int, connections: ExitStack) -> None:
    client = connect(connections, port, b"GET / HTTP/1.1\r\nX: " + b"a" * 40_000)
    assert client.recv(1 << 16).startswith(b"HTTP/1.1 400")
