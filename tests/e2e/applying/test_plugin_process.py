"""The plugin as a process of the engine: the writer reports its interrupt, and no plugin process remains."""

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from plimsoll.apply import Applier, ApplySettings, LeaseLostError, Outcome, UpdateInterruptedError
from plimsoll.apply.engine import is_running
from plimsoll.sandbox import Sandbox
from tests.awaiting import await_condition
from tests.e2e.applying.capacity import (
    NODE_CLAIM,
    QUICK,
    a_claim,
    a_writer,
    checkpoint,
    clearing_claims,
    creating,
    locks,
    names,
    pre_started,
    settings_for,
)
from tests.e2e.applying.writer import writer_process
from tests.e2e.chaos.proxy import Proxy, kubeconfig_through, proxying
from tests.e2e.cluster.kube import Kube

pytestmark = pytest.mark.e2e


@pytest.fixture
def proxy(claims_sandbox: Sandbox) -> Iterator[Proxy]:
    with proxying(claims_sandbox) as proxy:
        yield proxy


@pytest.fixture
def settings(claims_sandbox: Sandbox, proxy: Proxy, tmp_path: Path) -> ApplySettings:
    """Of a writer whose requests, and its plugins', go through the proxy."""
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(kubeconfig_through(proxy, claims_sandbox.kubeconfig)))
    return settings_for(claims_sandbox, tmp_path, shards=1, kubeconfig=kubeconfig)


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
        return below if all(each.name() == "pulumi-resource-kubernetes" for each in below) else []

    (plugin,) = await_condition(found, message="a plugin")
    return int(plugin.pid)


def is_connected(plugin: int) -> bool:
    """Whether its engine has connected to it. A plugin that cannot tell its port ends by itself."""
    found = psutil.Process(plugin).net_connections("tcp")
    ports = {each.laddr.port for each in found if each.status == psutil.CONN_LISTEN}
    return any(each.status == psutil.CONN_ESTABLISHED and each.laddr.port in ports for each in found)


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
    settings: ApplySettings, proxy: Proxy, cluster: Kube, prefix: str, cut: Callable[[Applier], None]
) -> Callable[[], Outcome]:
    """Interrupts a Plan of ten creations while the plugin waits for the answers to six of them, and returns the
    outcome."""
    held = {f"{prefix}{index}" for index in range(4, 10)}
    proxy.silences = lambda request: request.writes and request.path.rpartition("/")[2] in held
    plan = creating(*(a_claim(f"{prefix}{index}") for index in range(10)))
    with a_writer(settings) as writer, ThreadPoolExecutor(1) as thread:
        pre_started(writer)
        applying = thread.submit(writer.apply, plan)
        await_condition(lambda: len(claims(cluster, prefix)) == 10, message="a delta in the middle")
        cut(writer)
        applying.exception(timeout=120)
    proxy.silences = lambda _: False
    return applying.result


def test_an_interrupt_is_reported_even_if_the_plugin_aborted_requests(
    settings: ApplySettings, proxy: Proxy, cluster: Kube
) -> None:
    result = cut_short(settings, proxy, cluster, "broken-", Applier.interrupt)
    assert locks(settings) == []
    with pytest.raises(UpdateInterruptedError):
        result()
    assert len(recorded(settings)) < 10, "the plugin has given up what it waited for"
    with a_writer(settings) as writer:
        assert {each.key.name for each in writer.resources()} == claims(cluster, "broken-")
        writer.drain()


def recorded(settings: ApplySettings) -> list[str]:
    """The NodeClaims in the state that the engine left."""
    resources = checkpoint(settings, settings.stack_name(0))["resources"]
    return [each["id"] for each in resources if each["type"] == "kubernetes:karpenter.sh/v1:NodeClaim"]


def test_a_lost_lease_is_reported_even_if_the_plugin_aborted_requests(
    settings: ApplySettings, proxy: Proxy, cluster: Kube
) -> None:
    path = ("coordination.k8s.io/v1", "Lease", settings.lease.name)

    def take_lease(_: Applier) -> None:
        thief: dict[str, Any] = {"spec": {"holderIdentity": "thief_1_x"}}
        cluster.patch(*path, thief, QUICK.namespace)

    result = cut_short(settings, proxy, cluster, "lease-", take_lease)
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
        await_condition(lambda: is_connected(plugin), message="a plugin that has told its port")
        os.kill(engine, signal.SIGSTOP)  # it would notice, and end its plugin
        victim.kill()
        os.kill(engine, signal.SIGKILL)
        victim.wait()
    assert is_running(plugin), "nobody has ended it yet"
    with a_writer(settings) as writer:
        assert not is_running(plugin)
        assert names(writer.apply(creating(a_claim("next-0"))).created) == ["next-0"]
        writer.drain()


@pytest.mark.parametrize("busy", [False, True], ids=["pre-started", "in an update"])
def test_nothing_is_left_of_a_killed_writer(
    settings: ApplySettings, proxy: Proxy, cluster: Kube, tmp_path: Path, busy: bool
) -> None:
    """Its engine notices, ends, and ends its plugin; without a next writer, nobody else would."""
    plan = creating(a_claim("killed-0")) if busy else creating()
    if busy:
        proxy.silences = lambda request: request.writes and request.path.rpartition("/")[2] == "killed-0"
    with writer_process(settings, plan, tmp_path / "victim") as victim:
        if busy:
            await_condition(lambda: claims(cluster, "killed-"), message="an update in the middle")

        def processes() -> list[psutil.Process]:
            below = psutil.Process(victim.pid).children(recursive=True)
            return below if any(each.name() == "pulumi-resource-kubernetes" for each in below) else []

        started = await_condition(processes, message="an engine with its plugin")
        victim.kill()
        victim.wait()
    proxy.silences = lambda _: False
    await_condition(lambda: not any(is_running(each.pid) for each in started), 120, message="no process of it")
    assert locks(settings) == []
    with a_writer(settings) as writer:
        assert {each.key.name for each in writer.resources()} == claims(cluster, "killed-")
        writer.drain()
