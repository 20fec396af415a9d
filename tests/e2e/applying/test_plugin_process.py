"""With the plugin as a process of the engine: the writer reports its interrupt, and no plugin process remains."""

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
    """The plugin process of the engine, once it runs."""

    def found() -> list[psutil.Process]:
        below = psutil.Process(engine).children(recursive=True)
        return below if all("tests.e2e.applying.plugin" in each.cmdline() for each in below) else []

    (plugin,) = await_condition(found, message="a plugin")
    return int(plugin.pid)


def test_objects_are_created_through_the_plugin_which_ends_with_its_engine(
    settings: ApplySettings, cluster: Kube
) -> None:
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
    """Interrupts a Plan of ten creations after four of them, and returns the outcome."""
    plan = creating(*(a_claim(f"{prefix}{index}") for index in range(10)))
    with a_writer(settings) as writer, ThreadPoolExecutor(1) as thread:
        pre_started(writer)
        applying = thread.submit(writer.apply, plan)
        await_condition(lambda: len(claims(cluster, prefix)) == 4, message="a delta in the middle")
        cut(writer)
        applying.exception(timeout=60)
    assert locks(settings) == []
    return applying.result


def test_an_interrupt_is_reported_even_if_the_plugin_aborted_requests(
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


def test_a_lost_lease_is_reported_even_if_the_plugin_aborted_requests(
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


def test_the_next_writer_ends_plugins_of_a_killed_writer_and_engine(
    settings: ApplySettings, cluster: Kube, tmp_path: Path
) -> None:
    def engines_of(writer: int) -> list[int]:
        """Engines that have a plugin process."""
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
