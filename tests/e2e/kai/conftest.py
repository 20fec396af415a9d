"""The cluster of the tests with KAI, from which each test's objects are removed; a failed test tells what is in it."""

from collections.abc import Callable, Generator, Iterator

import pytest

from plimsoll.errors import PlimsollError
from plimsoll.sandbox import Sandbox
from tests.e2e.cluster.kube import Kube
from tests.e2e.kai.told import told
from tests.e2e.kai.workloads import clear, prepare


@pytest.fixture
def cluster(kube: Callable[..., Kube], kai_sandbox: Sandbox) -> Iterator[Kube]:
    cluster = kube(kai_sandbox)
    prepare(cluster)
    yield cluster
    prepare(cluster, policies=None)
    clear(cluster)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds what the controller, KAI and Karpenter say of a cluster in which a test failed, before its objects go."""
    report = yield
    cluster = getattr(item, "funcargs", {}).get("cluster")
    if report.failed and isinstance(cluster, Kube):
        try:
            report.sections.append(("what the cluster says", told(cluster)))
        except PlimsollError as error:
            report.sections.append(("what the cluster says", f"it does not answer: {error}"))
    return report
