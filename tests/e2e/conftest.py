"""Sandboxes for the end-to-end tests. They are removed when the test run ends, in whatever way it ends."""

from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from demo.stage import Stage, declare
from plimsoll.kube import RequestError
from plimsoll.sandbox import Sandbox
from tests.awaiting import await_condition
from tests.e2e.admission.objects import prepare_admission
from tests.e2e.cluster.environments import declare_without_workspaces
from tests.e2e.cluster.kinds import define_karpenter_kinds
from tests.e2e.cluster.kube import Kube
from tests.e2e.cluster.nodes import bring_nodes
from tests.e2e.cluster.sandboxes import take_down_sandboxes, up_sandbox

_LOG_LINES = 30
_SHARED = {
    "admission_sandbox": "admission",
    "audited_sandbox": "audited",
    "byo_sandbox": "byo and nap",  # some tests have both
    "claims_sandbox": "claims",
    "demand_sandbox": "demand",
    "kai_sandbox": "kai",
    "nap_sandbox": "byo and nap",
    "recovery_sandbox": "recovery",
    "workspaces_sandbox": "workspaces",
}
"""Groups of tests, by the sandbox that they share."""
_APART = {"tests/e2e/test_benchmarks.py", "tests/e2e/test_guides.py"}
"""Files whose tests start their own sandboxes: they would be the longest groups."""


def _group_of(item: pytest.Item) -> str | None:
    """The group whose tests run in one process, one after the other: those that share sandboxes, else those of one
    file."""
    if item.get_closest_marker("e2e") is None:
        return None
    shared = sorted(_SHARED.keys() & set(getattr(item, "fixturenames", ())))
    file = item.nodeid.partition("::")[0]
    return _SHARED[shared[0]] if shared else item.nodeid if file in _APART else file


# First, as xdist reads the groups in this hook.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if (group := _group_of(item)) is not None:
            item.add_marker(pytest.mark.xdist_group(group))
    # A group in one stretch. Groups before single tests, which fill up what is left in the end.
    items.sort(key=lambda item: _group_of(item) or "~")


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Takes sandboxes down after the last test of their group, because idle ones use CPU and memory."""
    if nextitem is None or _group_of(nextitem) != _group_of(item):
        take_down_sandboxes()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds the end of the sandboxes' logs to the report of a failed test."""
    report = yield
    if report.failed:
        for sandbox in {each for each in getattr(item, "funcargs", {}).values() if isinstance(each, Sandbox)}:
            for log in sorted(sandbox.folder.logs.glob("*.log")):
                lines = log.read_text(errors="replace").splitlines()[-_LOG_LINES:]
                report.sections.append((f"end of {log.name} of sandbox {sandbox.name}", "\n".join(lines)))
    return report


@pytest.fixture(scope="session", autouse=True)
def sandbox_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder of this test run for sandboxes, so that those of the user are not used."""
    home = tmp_path_factory.mktemp("plimsoll")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLIMSOLL_HOME", str(home))
        patch.delenv("PLIMSOLL_SANDBOX", raising=False)
        # The apiservers of a test run use a seventh less CPU, and 200 MiB more memory each.
        patch.setenv("GOGC", "300")
        yield home


@pytest.fixture(scope="session")
def byo_sandbox(sandbox_home: Path) -> Iterator[Sandbox]:
    """A cluster for existing nodes, without Karpenter and its CRDs. Its tests define none of our CRDs, and no namespace
    of our stacks."""
    yield from up_sandbox("byo", karpenter=False)


@pytest.fixture(scope="session")
def nap_sandbox(sandbox_home: Path) -> Iterator[Sandbox]:
    """A cluster with node auto-provisioning: Karpenter with its KWOK provider."""
    yield from up_sandbox("nap", karpenter=True)


@pytest.fixture(scope="session")
def claims_sandbox(sandbox_home: Path) -> Iterator[Sandbox]:
    """A cluster with the CRD NodeClaim and without a controller for it."""
    for sandbox in up_sandbox("claims", karpenter=False):
        with closing(Kube(sandbox.kubeconfig)) as cluster:
            define_karpenter_kinds(cluster)
            await_condition(lambda: _is_served(cluster), message="NodeClaims served")
        yield sandbox


@pytest.fixture(scope="session")
def demand_sandbox(sandbox_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """A cluster with Karpenter and an environment without Workspaces, for tests of demand."""
    for sandbox in up_sandbox("demand", karpenter=True):
        declare_without_workspaces(sandbox, tmp_path_factory.mktemp("demand"))
        yield sandbox


@pytest.fixture(scope="session")
def kai_sandbox(sandbox_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """As `demand_sandbox`, with the KAI Scheduler."""
    for sandbox in up_sandbox("kai", karpenter=True, kai=True):
        declare_without_workspaces(sandbox, tmp_path_factory.mktemp("kai"))
        yield sandbox


@pytest.fixture(scope="session")
def audited_sandbox(sandbox_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """As `demand_sandbox`, with LeaderWorkerSet and an audit log of the apiserver. Its tests leave no Workspaces."""
    for sandbox in up_sandbox("audited", karpenter=True, lws=True, audit=True):
        declare_without_workspaces(sandbox, tmp_path_factory.mktemp("audited"))
        yield sandbox


@pytest.fixture(scope="session")
def recovery_sandbox(sandbox_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """As `demand_sandbox`, for tests that stop its control plane and delete its definitions. They leave no
    Workspaces."""
    for sandbox in up_sandbox("recovery", karpenter=True):
        declare_without_workspaces(sandbox, tmp_path_factory.mktemp("recovery"))
        yield sandbox


@pytest.fixture(scope="session")
def workspaces_sandbox(sandbox_home: Path) -> Iterator[Sandbox]:
    """A cluster for existing nodes and their Workspaces, with LeaderWorkerSet and without Karpenter."""
    yield from up_sandbox("workspaces", karpenter=False, lws=True)


@pytest.fixture(scope="session")
def workspaces_stage(workspaces_sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """The environment of `workspaces_sandbox`, declared by `pulumi up`, with two nodes for its Workspace `phi` and one
    of another kind, for which its Workspace `mixed` is refused. Its tests leave no other Workspaces."""
    folder = tmp_path_factory.mktemp("workspaces")
    stage = Stage.on(workspaces_sandbox, folder)
    bring_nodes(
        stage, folder, "a100-0,96000,1179648,8,A100-80GB", "a100-1,96000,1179648,8,A100-80GB", "t4-0,48000,196608,4,T4"
    )
    declare(stage, "sandbox")
    return stage


@pytest.fixture(scope="session")
def admission_sandbox(sandbox_home: Path) -> Iterator[Sandbox]:
    """A cluster with our CRDs, the admission policies, and the kinds of others that they check; without stacks."""
    for sandbox in up_sandbox("admission", karpenter=False):
        with closing(Kube(sandbox.kubeconfig)) as cluster:
            prepare_admission(cluster)
        yield sandbox


@pytest.fixture
def kube() -> Iterator[Callable[..., Kube]]:
    """`kube(sandbox)`, or `kube(sandbox, "controller")`: a client that is closed after the test."""
    with ExitStack() as stack:

        def connect(sandbox: Sandbox, user: str = "admin") -> Kube:
            return stack.enter_context(closing(Kube(sandbox.folder.kubeconfig(user))))

        yield connect


def _is_served(cluster: Kube) -> bool:
    try:
        cluster.list("karpenter.sh/v1", "NodeClaim")
    except RequestError:
        return False
    return True
