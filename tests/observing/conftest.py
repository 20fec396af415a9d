from collections.abc import Iterator

import pytest

from plimsoll.kube import Connection
from plimsoll.model.api import TRIGGER_NAMESPACE
from plimsoll.observe.cluster import (
    AUTOSCALERS,
    CLAIM_EVENTS,
    DAEMON_SETS,
    DEFINITIONS,
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    NAMESPACES,
    NODES,
    POD_TEMPLATES,
    PODS,
    RESOURCE_QUOTAS,
    SERVICES,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    VOLUME_CLAIMS,
    VOLUMES,
    Observer,
    request_events,
)
from tests.observing.apiserver import FakeApiserver, listening

CORE = (
    NODES.path,
    PODS.path,
    CLAIM_EVENTS.path,
    request_events(TRIGGER_NAMESPACE).path,
    DEPLOYMENTS.path,
    STATEFUL_SETS.path,
    DAEMON_SETS.path,
    NAMESPACES.path,
    DISRUPTION_BUDGETS.path,
    RESOURCE_QUOTAS.path,
    VOLUME_CLAIMS.path,
    VOLUMES.path,
    STORAGE_CLASSES.path,
    AUTOSCALERS.path,
    POD_TEMPLATES.path,
    SERVICES.path,
    DEFINITIONS.path,
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
    """An observer that is not started, so that a test can prepare its cluster first."""
    observer = Observer(connection)
    yield observer
    observer.stop()
