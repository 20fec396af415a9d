"""With the plugin as a process below the engine: an interrupted delta is told by its writer, and no plugin stays."""

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from plimsoll.apply import Applier, ApplySettings, LeaseLostError, Outcome, UpdateInterruptedError
from plimsoll.apply.engine import is_running
from plimsoll.sandbox import Sandbox
from tests.awaiting import await_condition
from tests.e2e.applying.capacity import (
    NODE_CLAIM,
    QUICK,
    a_claim,
    a_writer,
    clearing_claims,
    creating,
    locks,
    names,
    pre_started,
    settings_for,
)
from tests.e2e.applying.plugin import HOLDS_FROM, install_plugin
from tests.e2e.applying.writer import writer_process
from tests.e2e.cluster.kube import Kube

pytestmark = pytest.mark.e2e


@pytest.fixture
def settings(claims_sandbox: Sandbox, tmp_path: Path) -> ApplySettings:
    install_plugin(tmp_path / "pulumi")
    return settings_for(claims_sandbox, tmp_path, shards=1, provider="plugin")


@pytest.fixture
def cluster(claims_sandbox: Sandbox, kube: Callable[..., Kube]) -> Iterator[Kube]:
    yield from clearing_claims(kube(claims_sandbox))


def claims(cluster: Kube, prefix: str) -> set[str]:
    found = {each["metadata"]["name"] for each in cluster.list(*NODE_CLAIM)}
    return {name for name in found if name.startswith(prefix)}


def plugin_of(engine: int) -> int:
    """The process that the engine has below it, once it runs the plugin: there is no other."""

    def found() -> list[psutil.Process]:
        below = psutil.Process(engine).children(recursive=True)
        return below if all("tests.e2e.applying.plugin" in each.cmdline() for each in below) else []

    (plugin,) = await_condition(found, message="a plugin")
    return int(plugin.pid)


def test_objects_are_made_through_it_and_it_ends_with_its_engine(settings: ApplySettings, cluster: Kube) -> None:
    with a_writer(settings) as writer:
        pre_started(writer)
        (engine,) = writer.engines
        plugin = plugin_of(engine)
        assert names(writer.apply(creating(a_claim("through-0"))).created) == ["through-0"]
        pre_started(writer)
        assert not is_running(plugin)
        plugin = plugin_of(writer.engines[0])
    assert not is_running(plugin)
    assert claims(cluster, "through-") == {"through-0"}


def cut_short(
    settings: ApplySettings, cluster: Kube, prefix: str, cut: Callable[[Applier], None]
) -> Callable[[], Outcome]:
    """Cuts a delta of ten short when four of it are made, and returns what became of it."""
    plan = creating(*(a_claim(f"{prefix}{index}") for index in range(10)))
    with a_writer(settings) as writer, ThreadPoolExecutor(1) as thread:
        pre_started(writer)
        applying = thread.submit(writer.apply, plan)
        await_condition(lambda: len(claims(cluster, prefix)) == 4, message="a delta in the middle")
        cut(writer)
        applying.exception(timeout=60)
    assert locks(settings) == []
    return applying.result


def test_an_interrupted_delta_is_told_though_its_requests_were_broken_off(
    settings: ApplySettings, cluster: Kube, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(HOLDS_FROM, "5")
    result = cut_short(settings, cluster, "broken-", Applier.interrupt)
    with pytest.raises(UpdateInterruptedError):
        result()
    monkeypatch.delenv(HOLDS_FROM)
    with a_writer(settings) as writer:
        assert {each.key.name for each in writer.resources()} == claims(cluster, "broken-")
        assert len(claims(cluster, "broken-")) == 4
        writer.drain()


def test_a_lost_lease_is_told_though_requests_were_broken_off(
    settings: ApplySettings, cluster: Kube, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(HOLDS_FROM, "5")
    path = ("coordination.k8s.io/v1", "Lease", settings.lease.name)

    def take_lease(_: Applier) -> None:
        thief: dict[str, Any] = {"spec": {"holderIdentity": "thief_1_x"}}
        cluster.patch(*path, thief, QUICK.namespace)

    result = cut_short(settings, cluster, "lease-", take_lease)
    with pytest.raises(LeaseLostError):
        result()
    cluster.delete(*path, QUICK.namespace)


def test_a_killed_engine_leaves_no_plugin(settings: ApplySettings) -> None:
    with a_writer(settings) as writer:
        pre_started(writer)
        (engine,) = writer.engines
        plugin = plugin_of(engine)
        assert os.getpgid(plugin) != engine, "the engine gives it a process group of its own"
        os.kill(engine, signal.SIGKILL)
        await_condition(lambda: not is_running(plugin), message="no plugin without its engine")


def test_what_a_killed_writer_and_its_engine_left_is_ended_by_the_next(
    settings: ApplySettings, cluster: Kube, tmp_path: Path
) -> None:
    def engines_of(writer: int) -> list[int]:
        """Those with a plugin below them. Others come and go."""
        found = []
        for each in psutil.Process(writer).children():
            with suppress(psutil.NoSuchProcess):
                if each.name() == "pulumi" and each.children():
                    found.append(each.pid)
        return found

    with writer_process(settings, creating(), tmp_path / "victim") as victim:
        await_condition(lambda: locks(settings), message="a pre-started engine")
        (engine,) = await_condition(lambda: engines_of(victim.pid), message="an engine with its plugin")
        plugin = plugin_of(engine)
        victim.kill()
        os.kill(engine, signal.SIGKILL)
        victim.wait()
    assert is_running(plugin), "nobody has ended it yet"
    with a_writer(settings) as writer:
        assert not is_running(plugin)
        assert names(writer.apply(creating(a_claim("next-0"))).created) == ["next-0"]
        writer.drain()
