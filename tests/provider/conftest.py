from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import pytest
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc

from plimsoll.kube import Interruption, Kubeconfig, Objects
from plimsoll.provider import Call, Session, Settings, serve
from tests.provider.apiserver import Apiserver, apiserver

Sessions = Callable[..., Session]


@pytest.fixture
def cluster() -> Iterator[Apiserver]:
    with apiserver() as one:
        yield one


@pytest.fixture
def sessions(cluster: Apiserver, tmp_path: Path) -> Iterator[Sessions]:
    """`sessions(setting="value")`: a session with the settings of an engine."""
    kubeconfig = Kubeconfig.read(str(cluster.kubeconfig(tmp_path)))
    connection = kubeconfig.connect()
    yield lambda **settings: Session(Objects(connection), kubeconfig, Settings(settings))
    connection.close()


@pytest.fixture
def call(sessions: Sessions) -> Call:
    return Call(sessions(), Interruption())


@pytest.fixture
def engine(cluster: Apiserver, tmp_path: Path) -> Iterator[provider_pb2_grpc.ResourceProviderStub]:
    """The provider as an engine reaches it, already configured."""
    with (
        serve(cluster.kubeconfig(tmp_path)) as served,
        grpc.insecure_channel(f"127.0.0.1:{served.port}") as channel,
    ):
        stub = provider_pb2_grpc.ResourceProviderStub(channel)
        stub.Configure(provider_pb2.ConfigureRequest())
        yield stub
