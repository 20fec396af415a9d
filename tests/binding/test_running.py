"""`plimsoll bind` runs until it is stopped, its Lease is lost, or a binder of KAI appears, for which it looks every
minute."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from typer.testing import CliRunner

from plimsoll.apply import LeaseLostError
from plimsoll.bind import KaiBinderError, ShareBinder
from plimsoll.cli import app
from plimsoll.kube import Connection, ConnectionFailedError
from plimsoll.model.cluster import Node, Pod
from tests.binding.cluster import SETTINGS, a_gpu_node, a_share

DEPLOYMENTS = "/apis/apps/v1/deployments"
KAI = {
    "metadata": {"namespace": "kai-scheduler", "name": "binder"},
    "spec": {"template": {"spec": {"containers": [{"image": "example/kai-scheduler/binder:1"}]}}},
}
MINUTE = 60


class FakeCluster:
    """The binder's view and its apiserver, on the test's clock: each wait of the binder lasts as long as it may, or
    until the next change, after `changes_after` seconds. `on_wait` is called at its end."""

    server = "http://cluster"

    def __init__(self, *pods: Pod, changes_after: float = 1000.0) -> None:
        self.now = 0.0
        self.kai_since = 1e9
        self.looks: list[float] = []
        self.writes: list[str] = []
        self.refusals: list[Exception] = []
        self.on_wait: Callable[[], None] = lambda: None
        self.ended = False
        self._pods = pods
        self._changes_after = changes_after

    def clock(self) -> float:
        return self.now

    def request(self, method: str, path: str, body: Any = None, **_: Any) -> dict[str, Any]:
        if path != DEPLOYMENTS:
            self.writes += [path] if method != "GET" else []
            return {"metadata": {"resourceVersion": "9"}}
        self.looks.append(self.now)
        if self.refusals:
            raise self.refusals.pop(0)
        return {"items": [KAI] if self.now >= self.kai_since else []}

    def start(self) -> None:
        """It is watched."""

    wake = start

    def wait_synced(self, _: float) -> None:
        """It is synced."""

    def stop(self) -> None:
        self.ended = True

    def wait(self, idle: float, maximum: float, timeout: float) -> None:
        self.now += min(timeout, self._changes_after)
        assert self.now < 100 * MINUTE, "the binder is not ended"
        self.on_wait()

    def nodes(self) -> list[Node]:
        return [a_gpu_node()]

    def pods(self) -> list[Pod]:
        return list(self._pods)

    def note(self, pod: Pod, *, new: bool = False) -> None:
        """Nothing is bound in a view that never shows it."""


def binder_of(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> ShareBinder:
    monkeypatch.setattr("plimsoll.bind.binder.ClusterCache", lambda *_: cluster)
    return ShareBinder(cast(Connection, cluster), SETTINGS, cluster.clock)


@pytest.mark.parametrize("changes_after", [1000.0, 7.0, 59.0, 45.0])
def test_a_binder_of_kai_ends_it_within_a_minute_however_often_the_cluster_changes(
    changes_after: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = FakeCluster(changes_after=changes_after)
    cluster.kai_since = 5 * MINUTE + 1
    with pytest.raises(KaiBinderError, match="kai-scheduler/binder"):
        binder_of(cluster, monkeypatch).run()
    assert cluster.now <= cluster.kai_since + MINUTE
    pauses = [later - sooner for sooner, later in zip(cluster.looks[1:], cluster.looks[2:], strict=False)]
    assert set(pauses) == {MINUTE}
    assert cluster.ended


def test_it_does_not_start_beside_kai(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = FakeCluster(a_share("a"))
    cluster.kai_since = 0
    with pytest.raises(KaiBinderError):
        binder_of(cluster, monkeypatch).run()
    assert (cluster.writes, cluster.ended) == ([], False), "no watch was started"


def test_nothing_is_bound_until_it_is_known_that_kai_does_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = FakeCluster(a_share("a"))
    binder = binder_of(cluster, monkeypatch)

    def unreachable(_: float) -> None:
        assert cluster.writes == []
        cluster.kai_since = 0

    monkeypatch.setattr(binder.stopping, "sleep", unreachable)
    cluster.wait_synced = lambda _: cluster.refusals.append(ConnectionFailedError("unreachable"))  # type: ignore[method-assign]
    with pytest.raises(KaiBinderError):
        binder.run()
    assert cluster.writes == []


def test_a_binder_that_is_stopped_writes_nothing_more_and_raises_what_it_was_stopped_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = FakeCluster(a_share("a"))
    binder = binder_of(cluster, monkeypatch)

    def pods() -> list[Pod]:
        binder.stop(LeaseLostError("lost"))  # while a round plans
        return [a_share("a")]

    cluster.pods = pods  # type: ignore[method-assign]
    with pytest.raises(LeaseLostError):
        binder.run()
    assert (cluster.writes, cluster.ended) == ([], True)


@pytest.mark.parametrize("lost", [True, False])
def test_the_command_ends_with_an_error_when_its_lease_is_lost_and_without_one_when_it_is_stopped(
    lost: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cluster = FakeCluster()
    done: list[str] = []

    class FakeLease:
        def __init__(self, _connection: object, _settings: object, on_lost: Callable[..., None]) -> None:
            cluster.on_wait = lambda: on_lost(*[LeaseLostError("not renewed")] * lost)

        def acquire(self, *_: object) -> None:
            done.append("acquired")

        def release(self) -> None:
            done.append(f"released, ended: {cluster.ended}")

    monkeypatch.setattr("plimsoll.apply.Lease", FakeLease)
    monkeypatch.setattr("plimsoll.bind.refuse_beside_kai", lambda _: None)
    monkeypatch.setattr("plimsoll.cli.bind._stop_on_signal", lambda _: None)
    monkeypatch.setattr("plimsoll.bind.ShareBinder", lambda *_: binder_of(cluster, monkeypatch))
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        "{current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u, user: {}}],"
        " clusters: [{name: c, cluster: {server: 'http://127.0.0.1:9'}}]}"
    )
    result = CliRunner().invoke(app, ["bind", "--image", "a:1", "--kubeconfig", str(kubeconfig)])
    assert isinstance(result.exception, LeaseLostError) is lost
    assert lost or result.exit_code == 0
    assert done == ["acquired", "released, ended: True"]
