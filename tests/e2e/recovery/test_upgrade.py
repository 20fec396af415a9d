"""An upgrade in the middle of an update: the old release is killed between two operations of its engine, and a newer
one, from a wheel, goes on with its state."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psutil
import pytest
import yaml

from plimsoll.apply import LEASE_VERSION
from plimsoll.distribution import version
from plimsoll.sandbox import Sandbox
from tests.awaiting import await_condition
from tests.e2e.chaos.changes import API, CLAIM, NAMESPACE, claims_of, workspace
from tests.e2e.chaos.proxy import Proxy, Request, kubeconfig_through, proxying
from tests.e2e.cluster.conditions import is_ready
from tests.e2e.cluster.controller import Controller, another_release, controller
from tests.e2e.cluster.kube import Kube

pytestmark = pytest.mark.e2e

LONG = 240
"""Seconds: a controller starts, and a stack is updated."""
NEWER = "99.0.0"
LEASE = ("coordination.k8s.io/v1", "Lease", "plimsoll", "plimsoll-system")
TIMES = ("--lease-duration", "8", "--lease-renew-deadline", "7", "--lease-retry-period", "1")
REPLICAS = 8
DONE = 3
"""NodeClaims that the old release creates."""


@pytest.fixture
def cluster(recovery_sandbox: Sandbox) -> Iterator[Kube]:
    with closing(Kube(recovery_sandbox.kubeconfig)) as cluster:
        yield cluster


@pytest.fixture
def proxy(recovery_sandbox: Sandbox) -> Iterator[Proxy]:
    with proxying(recovery_sandbox) as proxy:
        yield proxy


class Few:
    """Refuses to create more NodeClaims than a few, as an apiserver that is too busy."""

    def __init__(self) -> None:
        self.asked: set[str] = set()

    def __call__(self, request: Request) -> int:
        if request.method != "PATCH" or "/nodeclaims/" not in request.path:
            return 0
        if len(self.asked) < DONE:
            self.asked.add(request.path)
        return 0 if request.path in self.asked else 429


def kill_with_engines(running: Controller) -> None:
    """As when a node loses power."""
    engines = psutil.Process(running.process.pid).children(recursive=True)
    running.kill()
    for each in engines:
        if each.is_running():
            each.kill()


def test_the_next_release_goes_on_in_the_middle_of_an_update(
    recovery_sandbox: Sandbox, cluster: Kube, proxy: Proxy, tmp_path: Path
) -> None:
    release = another_release(NEWER, tmp_path)
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(kubeconfig_through(proxy, recovery_sandbox.controller_kubeconfig)))
    options = ("--kubeconfig", str(kubeconfig), *TIMES)
    proxy.refuse = Few()
    with controller(recovery_sandbox, tmp_path, *options) as old:
        cluster.apply(workspace("upgraded", REPLICAS))
        await_condition(lambda: len(claims_of(cluster, "upgraded")) == DONE and proxy.refused, LONG, "a part of them")
        assert holder_version(cluster) == version()
        kill_with_engines(old)
    made = uids(cluster)
    assert len(made) == DONE
    proxy.refuse = lambda _: 0

    with controller(recovery_sandbox, tmp_path, *options, release=release) as new:
        await_condition(
            lambda: len(claims := claims_of(cluster, "upgraded")) == REPLICAS and all(map(is_ready, claims)),
            LONG,
            "all of them",
        )
        assert holder_version(cluster) == NEWER
        assert uids(cluster) > made, "those of the old release stay"
        cluster.apply(workspace("upgraded", 2))
        await_condition(lambda: len(claims_of(cluster, "upgraded")) == 2, LONG, "fewer replicas")
        cluster.delete(API, "Workspace", "upgraded", NAMESPACE)
        await_condition(lambda: not cluster.list(*CLAIM), 400, "nothing is left")
    assert "Traceback" not in old.text() + new.text()


def uids(cluster: Kube) -> set[str]:
    return {each["metadata"]["uid"] for each in claims_of(cluster, "upgraded")}


def holder_version(cluster: Kube) -> str:
    lease = cluster.get(*LEASE) or {}
    return str(lease["metadata"]["annotations"][LEASE_VERSION])
