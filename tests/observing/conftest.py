from collections.abc import Iterator

import pytest

from plimsoll.kube.connection import Connection
from plimsoll.observe.cluster import kinds
from plimsoll.observe.cluster.observer import Observer
from tests.observing.apiserver import FakeApiserver, listening

CORE = (
    kinds.NODES.path,
    kinds.PODS.path,
    kinds.CLAIM_EVENTS.path,
    kinds.DEPLOYMENTS.path,
    kinds.STATEFUL_SETS.path,
    kinds.DAEMON_SETS.path,
    kinds.AUTOSCALERS.path,
    kinds.POD_TEMPLATES.path,
    kinds.DEFINITIONS.path,
)


@pytest.fixture
def cluster() -> FakeApiserver:
    """A cluster without any custom kind."""
    cluster = FakeApiserver()
    cluster.serve(*CORE)
    return cluster


@pytest.fixture
def connection(cluster: FakeApiserver) -> Iterator[Connection]:
    with listening(cluster) as connection:
        yield connection


@pytest.fixture
def observer(connection: Connection) -> Iterator[Observer]:
    """Not started: a test may prepare its cluster first."""
    observer = Observer(connection)
    yield observer
    observer.stop()
