"""The cluster of the tests with KAI, from which each test's objects are removed."""

from collections.abc import Callable, Iterator

import pytest

from plimsoll.sandbox import Sandbox
from tests.e2e.cluster.kube import Kube
from tests.e2e.kai.workloads import clear, prepare


@pytest.fixture
def cluster(kube: Callable[..., Kube], kai_sandbox: Sandbox) -> Iterator[Kube]:
    cluster = kube(kai_sandbox)
    prepare(cluster)
    yield cluster
    prepare(cluster, policies=None)
    clear(cluster)
