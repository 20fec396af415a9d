"""Two controllers of one cluster: they wait for the Environment, one is active, and the other takes over in time."""

import json
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from demo.stage import Stage
from plimsoll.sandbox import Sandbox
from plimsoll.sandbox.processes import LOOPBACK, hold_port, port_of
from tests.awaiting import await_condition
from tests.e2e.cluster.conditions import condition
from tests.e2e.cluster.controller import Controller, controller
from tests.e2e.cluster.kube import Kube, Manifest
from tests.e2e.cluster.sandboxes import up_sandbox

pytestmark = pytest.mark.e2e

API = "plimsoll.dev/v1alpha1"
LEASE = ("coordination.k8s.io/v1", "Lease", "plimsoll", "plimsoll-system")
DURATION = 8.0
"""Seconds that a test can wait for, and in which a slow machine renews the Lease."""
TIMES = ("--lease-duration", str(DURATION), "--lease-renew-deadline", "7", "--lease-retry-period", "1")


class Served(Controller):
    """A controller with its health endpoints."""

    def __init__(self, sandbox: Sandbox, folder: Path, *options: str, hostname: str = "") -> None:
        self._held = [hold_port(), hold_port()]
        self._metrics, self._probes = map(port_of, self._held)
        ports = ("--metrics-port", str(self._metrics), "--health-probe-port", str(self._probes))
        super().__init__(sandbox, folder, *ports, *TIMES, *options, hostname=hostname)

    def get(self, path: str) -> tuple[int, str]:
        """Status and body of a response; status 0 if there is no response."""
        port = self._metrics if path == "/metrics" else self._probes
        try:
            with urllib.request.urlopen(f"http://{LOOPBACK}:{port}{path}", timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    @property
    def told(self) -> dict[str, Any]:
        """What it says of itself; empty without a response, as while it starts again."""
        status, text = self.get("/readyz")
        return dict(json.loads(text)) if status else {}

    @property
    def state(self) -> str:
        return str(self.told.get("state", ""))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("controllers")


@pytest.fixture(scope="module")
def sandbox(sandbox_home: Path) -> Iterator[Sandbox]:
    yield from up_sandbox("controllers", karpenter=False)


@pytest.fixture(scope="module")
def stage(sandbox: Sandbox, folder: Path) -> Stage:
    """A cluster with only the foundation."""
    stage = Stage.on(sandbox, folder)
    stage.run("pulumi", "stack", "init", "sandbox-foundation")
    stage.run("pulumi", "up", "--yes", "--skip-preview", "--stack", "sandbox-foundation")
    return stage


@pytest.fixture(scope="module")
def pair(stage: Stage, sandbox: Sandbox, folder: Path) -> Iterator[list[Served]]:
    """Two controllers, as on two hosts."""
    with ExitStack() as stack:
        pair = []
        for name in ("left", "right"):
            (folder / name).mkdir()
            pair.append(Served(sandbox, folder / name, hostname=name))
            stack.callback(pair[-1].stop)
        yield pair


@pytest.fixture
def cluster(kube: Callable[..., Kube], sandbox: Sandbox, stage: Stage) -> Kube:
    return kube(sandbox)


def environment(name: str) -> Manifest:
    return {"apiVersion": API, "kind": "Environment", "metadata": {"name": name}, "spec": {}}


def workspace(name: str) -> Manifest:
    return {
        "apiVersion": API,
        "kind": "Workspace",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "resource": {"labelSelector": {"matchLabels": {"pool": "none"}}},
            "inference": {"preset": {"name": "phi-4"}},
        },
    }


def verdict_of(cluster: Kube, name: str) -> bool:
    found = condition(cluster.get(API, "Workspace", name, "default"), "ResourceReady")
    return bool(found.get("reason"))


def holder(cluster: Kube) -> str:
    lease = cluster.get(*LEASE)
    return str((lease or {}).get("spec", {}).get("holderIdentity") or "")


def lease_time(cluster: Kube, field: str) -> datetime:
    return datetime.fromisoformat((cluster.get(*LEASE) or {})["spec"][field])


def roles(pair: list[Served]) -> dict[str, Served]:
    """The controllers by their role, once one is active and one is on standby."""

    def found() -> dict[str, Served]:
        by_role = {each.state: each for each in pair}
        return by_role if by_role.keys() == {"Active", "Standby"} else {}

    return await_condition(found, 120, "one active, one standby")


def waits_for(one: Served, environment: str) -> bool:
    return is_in(one, "Standby", environment)


def is_in(one: Served, state: str, environment: str) -> bool:
    """By one answer: another one may be of another state, or of none."""
    told = one.told
    return told.get("state") == state and told["environment"] == environment


def _without_environment(one: Served) -> bool:
    return one.state == "NoEnvironment"


def test_without_an_environment_they_wait_ready_and_take_no_lease(pair: list[Served], cluster: Kube) -> None:
    for each in pair:
        await_condition(partial(_without_environment, each), 120, "a controller without an Environment")
        assert each.get("/readyz")[0] == each.get("/healthz")[0] == 200
        assert "waiting for the Environment" in each.text()
    assert cluster.get(*LEASE) is None


def test_one_of_them_takes_the_one_lease(pair: list[Served], cluster: Kube) -> None:
    cluster.apply(environment("prod"))
    cluster.apply(workspace("first"))
    found = roles(pair)
    await_condition(lambda: verdict_of(cluster, "first"), 120, "a verdict")
    leases = [each["metadata"]["name"] for each in cluster.list(*LEASE[:2])]
    assert [name for name in leases if name.startswith("plimsoll")] == ["plimsoll"]
    assert holder(cluster).split("_")[0] == ("left" if found["Active"] is pair[0] else "right")
    assert found["Standby"].told["leaseHolder"] == holder(cluster)


def test_metrics_name_the_environment_and_the_cluster(pair: list[Served], cluster: Kube) -> None:
    uid = (cluster.get("v1", "Namespace", "kube-system") or {})["metadata"]["uid"]
    labels = f'cluster="{uid}",environment="prod"'
    found = roles(pair)
    assert f"plimsoll_lease_held{{{labels}}} 1.0" in found["Active"].get("/metrics")[1]
    assert f'plimsoll_lease_held{{cluster="{uid}"}} 0.0' in found["Standby"].get("/metrics")[1]


def test_a_replaced_environment_restarts_the_controller(pair: list[Served], cluster: Kube) -> None:
    cluster.delete(API, "Environment", "prod")
    cluster.apply(environment("renamed"))
    active = await_condition(
        lambda: [each for each in pair if is_in(each, "Active", "renamed")],
        120,
        "a controller of the new Environment",
    )
    assert len(active) == 1
    cluster.apply(workspace("second"))
    await_condition(lambda: verdict_of(cluster, "second"), 120, "a verdict under the new Environment")
    (other,) = (each for each in pair if each is not active[0])
    await_condition(lambda: waits_for(other, "renamed"), 120, "the standby waits for the new Environment, too")


def test_the_standby_acts_when_the_lease_has_expired(pair: list[Served], cluster: Kube) -> None:
    found = roles(pair)
    cluster.apply(workspace("third"))
    await_condition(lambda: verdict_of(cluster, "third"), 120, "a verdict")
    found["Active"].kill()
    renewed = lease_time(cluster, "renewTime")
    cluster.apply(workspace("fourth"))
    await_condition(lambda: verdict_of(cluster, "fourth"), DURATION + 120, "a verdict of the successor")
    taken = (lease_time(cluster, "acquireTime") - renewed).total_seconds()
    assert taken >= DURATION, "the killed one may write until then"
    assert found["Standby"].state == "Active"


def test_a_stopped_controller_exits_with_0_and_releases_the_lease(pair: list[Served], cluster: Kube) -> None:
    (active,) = (each for each in pair if each.process.poll() is None)
    assert active.stop() == 0
    assert holder(cluster) == ""


def test_a_controller_that_waits_for_an_environment_ends_at_once(cluster: Kube, sandbox: Sandbox, folder: Path) -> None:
    cluster.delete(API, "Environment", "renamed")
    (folder / "late").mkdir()
    with controller(sandbox, folder / "late", *TIMES) as running:
        await_condition(lambda: "waiting for the Environment" in running.text(), 120, "a controller that waits")
        assert running.stop() == 0


def run(stage: Stage, *command: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Runs as the admin, with variables that name another backend and no usable cluster."""
    environ: dict[str, Any] = {**stage.environs["admin"], "PULUMI_BACKEND_URL": "file:///nowhere", **variables}
    return subprocess.run(
        command, cwd=stage.project, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )


def test_destroy_names_missing_stacks_and_changes_nothing(
    stage: Stage, sandbox: Sandbox, cluster: Kube, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    done = run(
        stage, "plimsoll", "destroy", "--yes", "--environment", "prod", "--backend", f"file://{tmp_path / 'empty'}"
    )
    assert done.returncode == 1
    assert "no stack prod-foundation" in done.stderr
    assert cluster.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", "workspaces.plimsoll.dev")


def test_destroy_uses_the_cluster_and_backend_of_its_options_and_verifies_the_result(
    stage: Stage, sandbox: Sandbox, cluster: Kube, tmp_path: Path
) -> None:
    for name in ("first", "second", "third", "fourth"):
        cluster.delete(API, "Workspace", name, "default")
    options = {
        "--backend": stage.environs["admin"]["PULUMI_BACKEND_URL"],
        "--kubeconfig": stage.environs["admin"]["KUBECONFIG"],
        "--passphrase-file": stage.environs["admin"]["PULUMI_CONFIG_PASSPHRASE_FILE"],
        "--environment": "prod",
        "--foundation": "sandbox-foundation",
    }
    done = run(
        stage, "plimsoll", "destroy", "--yes", *(part for pair in options.items() for part in pair),
        KUBECONFIG="/nowhere", PULUMI_CONFIG_PASSPHRASE="wrong", PULUMI_CONFIG_PASSPHRASE_FILE="/nowhere",
        PLIMSOLL_WORK_FOLDER=str(tmp_path / "work"),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "there was no stack prod\n" in done.stdout
    assert "destroyed: the stack sandbox-foundation" in done.stdout
    assert cluster.get("v1", "Namespace", "plimsoll-system") is None
    assert cluster.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", "workspaces.plimsoll.dev") is None
