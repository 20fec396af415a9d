"""An etcd is restored to an older revision under a running controller: what was written since is unknown to the
cluster, and what was deleted since is there again."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import yaml

from plimsoll.sandbox import Sandbox
from tests.awaiting import await_condition
from tests.e2e.chaos.changes import API, CLAIM, NAMESPACE, claims_of, workspace
from tests.e2e.chaos.proxy import Proxy, kubeconfig_through, proxying
from tests.e2e.cluster.conditions import is_ready
from tests.e2e.cluster.controller import Controller, controller
from tests.e2e.cluster.kube import Kube
from tests.e2e.cluster.restoring import back_up, start_from, stop_control_plane

pytestmark = pytest.mark.e2e

LONG = 240
"""Seconds: a controller starts, and a stack is updated."""
TIMES = ("--lease-duration", "8", "--lease-renew-deadline", "7", "--lease-retry-period", "1")


@pytest.fixture
def cluster(recovery_sandbox: Sandbox) -> Iterator[Kube]:
    with closing(Kube(recovery_sandbox.kubeconfig)) as cluster:
        yield cluster


@pytest.fixture
def proxy(recovery_sandbox: Sandbox) -> Iterator[Proxy]:
    with proxying(recovery_sandbox) as proxy:
        yield proxy


@pytest.fixture
def running(recovery_sandbox: Sandbox, proxy: Proxy, tmp_path: Path) -> Iterator[Controller]:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(kubeconfig_through(proxy, recovery_sandbox.controller_kubeconfig)))
    with controller(recovery_sandbox, tmp_path, "--kubeconfig", str(kubeconfig), *TIMES) as running:
        yield running


def served(cluster: Kube, name: str, replicas: int) -> dict[str, str]:
    """Waits until the Workspace has this many ready NodeClaims; UID by name."""

    def found() -> dict[str, str]:
        claims = claims_of(cluster, name)
        done = len(claims) == replicas and all(map(is_ready, claims))
        return {each["metadata"]["name"]: each["metadata"]["uid"] for each in claims} if done else {}

    return await_condition(found, LONG, f"{name}: {replicas}")


def test_what_came_back_is_kept_and_what_was_lost_is_made_once(
    recovery_sandbox: Sandbox, cluster: Kube, proxy: Proxy, running: Controller, tmp_path: Path
) -> None:
    for name in ("kept", "going"):
        cluster.apply(workspace(name, 1))
    kept, going = served(cluster, "kept", 1), served(cluster, "going", 1)
    backup = back_up(recovery_sandbox, cluster, tmp_path / "etcd")
    cluster.delete(API, "Workspace", "going", NAMESPACE)
    cluster.apply(workspace("lost", 2))
    lost = served(cluster, "lost", 2)
    await_condition(lambda: not claims_of(cluster, "going"), LONG, "the node is released")

    stop_control_plane(recovery_sandbox)
    start_from(recovery_sandbox, backup, cluster, workspace("lost", 2))
    proxy.trust()
    assert served(cluster, "going", 1) == going, "declared again, by the older etcd"
    assert served(cluster, "kept", 1) == kept
    cluster.apply(workspace("lost", 2))  # as a GitOps tool does
    assert not served(cluster, "lost", 2).items() & lost.items(), "other objects"
    cluster.apply(workspace("kept", 2))
    assert served(cluster, "kept", 2).items() >= kept.items()
    assert running.process.poll() is None, "the same controller"
    for name in ("kept", "going", "lost"):
        cluster.delete(API, "Workspace", name, NAMESPACE)
    await_condition(lambda: not cluster.list(*CLAIM), 400, "nothing is left")
    assert "Traceback" not in running.text()
