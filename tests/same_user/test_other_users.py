"""gRPC on the loopback interface: a process of another user of the machine is refused, as by a Unix socket."""

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import empty_pb2
from pulumi.automation import CommandResult
from pulumi.runtime.proto import language_pb2_grpc
from semver import VersionInfo

from plimsoll.apply.engine import CapacityStack, Engine, Program
from plimsoll.same_user import is_own
from tests.applying.states import CLUSTER

NOBODY = 65534
TABLE = Path("/proc/net/tcp")

pytestmark = pytest.mark.skipif(not TABLE.exists(), reason="the kernel shows no table of connections")


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


def peer_of(connection: socket.socket) -> str:
    host, port = connection.getsockname()
    return f"ipv4:{host}:{port}"


def test_a_connection_of_ones_own_is_known(listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    with socket.create_connection(("127.0.0.1", port)) as client:
        assert is_own(peer_of(client), port)
        assert not is_own(peer_of(client), port + 1), "it is a connection to another server"
    assert not is_own("ipv4:127.0.0.1:1", port), "there is no such connection"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
def test_a_connection_of_another_user_is_not(listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        os.setuid(NOBODY)
        with socket.create_connection(("127.0.0.1", port)) as client:
            os.write(writing, peer_of(client).encode())
            client.recv(1)
        os._exit(0)
    with ExitStack() as stack:
        stack.callback(os.waitpid, child, 0)
        accepted, _ = listener.accept()
        stack.callback(accepted.close)
        assert not is_own(os.read(reading, 100).decode(), port)


class Asking(Engine):
    """An engine that asks the program of its update twice, the second time as another user."""

    def __init__(self, act_as_another_user: Callable[[], None]) -> None:
        super().__init__(Path("pulumi"), VersionInfo(3, 259, 0))
        self._act_as_another_user = act_as_another_user
        self.refusal = grpc.StatusCode.OK

    def run(self, args: list[str], *_: Any, **__: Any) -> CommandResult:
        (address,) = (arg.removeprefix("--client=") for arg in args if arg.startswith("--client="))
        with grpc.insecure_channel(address) as channel:
            program = language_pb2_grpc.LanguageRuntimeStub(channel)
            program.GetPluginInfo(empty_pb2.Empty(), timeout=10)
            self._act_as_another_user()
            with pytest.raises(grpc.RpcError) as refused:
                program.GetPluginInfo(empty_pb2.Empty(), timeout=10)
            self.refusal = refused.value.code()
        return CommandResult("", "", 0)


def test_the_program_of_an_update_refuses_calls_of_another_user(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    engine = Asking(lambda: monkeypatch.setattr("plimsoll.same_user.os.geteuid", lambda: NOBODY - 1))
    stack = CapacityStack("capacity-test-0", tmp_path / "work", engine, {}, "passphrase")
    stack.update(Program({}, "4.0.0", CLUSTER, lambda: None), lambda _: None, ())
    assert engine.refusal is grpc.StatusCode.PERMISSION_DENIED
