"""Node auto-provisioning on real components: NodeClaims by stack updates, Karpenter's nodes, scale-down, kills,
destroy."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from demo.stage import Stage, declare
from plimsoll.sandbox import Sandbox
from tests.awaiting import await_condition
from tests.e2e.cluster.conditions import condition, is_ready
from tests.e2e.cluster.controller import Controller, controller
from tests.e2e.cluster.kube import Kube
from tests.e2e.cluster.sandboxes import up_sandbox

pytestmark = pytest.mark.e2e

API = "plimsoll.dev/v1alpha1"
CLAIM = ("karpenter.sh/v1", "NodeClaim")
TYPE = "Standard_NC24ads_A100_v4"
BROKEN = "sandbox.plimsoll.dev/fail"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("provisioned")


@pytest.fixture(scope="module")
def sandbox(sandbox_home: Path) -> Iterator[Sandbox]:
    yield from up_sandbox("provisioned", karpenter=True)


@pytest.fixture(scope="module")
def stage(sandbox: Sandbox, folder: Path) -> Stage:
    """The environment of the sandbox, declared by `pulumi up`."""
    stage = Stage.on(sandbox, folder)
    declare(stage, "sandbox-nap")
    return stage


@pytest.fixture
def cluster(kube: Callable[..., Kube], sandbox: Sandbox, stage: Stage) -> Kube:
    return kube(sandbox)


def workspace(name: str, replicas: int) -> dict[str, Any]:
    return {
        "apiVersion": API,
        "kind": "Workspace",
        "metadata": {"name": name, "namespace": "inference"},
        "spec": {
            "queue": "inference",
            "resource": {"instanceType": TYPE},
            "inference": {"preset": {"name": "phi-4-mini-instruct"}, "replicas": replicas},
        },
    }


def claims_of(cluster: Kube, name: str) -> list[dict[str, Any]]:
    """NodeClaims of a Workspace that are not being deleted."""
    found = cluster.list(*CLAIM, selector=f"plimsoll.dev/workspace={name}")
    return [claim for claim in found if "deletionTimestamp" not in claim["metadata"]]


def uids_of(cluster: Kube, name: str) -> set[str]:
    """UIDs of all NodeClaims of a Workspace, also of those that are being deleted."""
    return {claim["metadata"]["uid"] for claim in cluster.list(*CLAIM, selector=f"plimsoll.dev/workspace={name}")}


def pods_ready(cluster: Kube, name: str) -> int:
    deployment = cluster.get("apps/v1", "Deployment", name, "inference") or {}
    return int(deployment.get("status", {}).get("readyReplicas") or 0)


def remove(cluster: Kube, name: str) -> None:
    cluster.delete(API, "Workspace", name, "inference")
    await_condition(lambda: not cluster.list(*CLAIM, selector=f"plimsoll.dev/workspace={name}"), 120)
    # The cluster collects the pod of a node that went without answering within two minutes.
    await_condition(lambda: cluster.get("apps/v1", "Deployment", name, "inference") is None, 150)


def nodes_of(cluster: Kube, workspace: str) -> set[str]:
    """The nodes that NodeClaims of the Workspace name."""
    return {claim["status"]["nodeName"] for claim in claims_of(cluster, workspace) if "nodeName" in claim["status"]}


def test_provision_and_scale_down(stage: Stage, cluster: Kube, sandbox: Sandbox, folder: Path) -> None:
    """3 NodeClaims of the instance type, nodes with GFD labels, the workload; then 3 to 1 replicas with `pulumi up`."""
    with controller(sandbox, folder):
        await_condition(lambda: len(claims_of(cluster, "chat")) == 3, 120, "three NodeClaims")
        for claim in claims_of(cluster, "chat"):
            (types,) = (
                item["values"]
                for item in claim["spec"]["requirements"]
                if item["key"] == "node.kubernetes.io/instance-type"
            )
            assert types == [TYPE]
        await_condition(lambda: pods_ready(cluster, "chat") == 3, 120, "the workload runs")
        # Karpenter removes its taint from the last node before it writes the node's name to the NodeClaim.
        nodes = await_condition(lambda: len(names := nodes_of(cluster, "chat")) == 3 and names, 120, "three nodes")
        for name in nodes:
            node = cluster.get("v1", "Node", name)
            assert node is not None
            assert node["metadata"]["labels"]["nvidia.com/gpu.product"] == "NVIDIA-A100-80GB-PCIe"
        pods = [pod for pod in cluster.list("v1", "Pod", "inference") if "deletionTimestamp" not in pod["metadata"]]
        placed = {pod["spec"]["nodeName"]: pod["metadata"]["uid"] for pod in pods}
        assert placed.keys() == nodes
        status = cluster.get(API, "Workspace", "chat", "inference")
        await_condition(
            lambda: (
                condition(cluster.get(API, "Workspace", "chat", "inference"), "WorkloadReady").get("status") == "True"
            )
        )
        assert status is not None
        path = "plimsoll:workspaces.chat.inference.replicas"
        stage.run("pulumi", "config", "set", "--stack", "sandbox-nap", "--path", path, "1")
        stage.run("pulumi", "up", "--yes", "--skip-preview", "--stack", "sandbox-nap")
        await_condition(lambda: len(claims_of(cluster, "chat")) == 1, 120, "two NodeClaims go")
        await_condition(lambda: len(cluster.list(*CLAIM, selector="plimsoll.dev/workspace=chat")) == 1, 120, "they end")
        await_condition(lambda: len(cluster.list("v1", "Pod", "inference")) == 1, 120, "one pod is left")
        [claim], [pod] = claims_of(cluster, "chat"), cluster.list("v1", "Pod", "inference")
        assert pod["metadata"]["uid"] == placed[claim["status"]["nodeName"]], "the pod of the node that stays, stays"


def test_scale_down_by_kubectl_deletes_unready_nodes_first(
    stage: Stage, cluster: Kube, sandbox: Sandbox, folder: Path
) -> None:
    with controller(sandbox, folder):
        cluster.apply(workspace("pick", 3))
        await_condition(lambda: sum(map(is_ready, claims_of(cluster, "pick"))) == 3, 120, "three ready NodeClaims")
        victim = sorted(claims_of(cluster, "pick"), key=lambda claim: claim["metadata"]["name"])[0]
        node = victim["status"]["nodeName"]

        def known() -> list[str]:
            found = cluster.get(API, "Workspace", "pick", "inference") or {}
            return list((found.get("status") or {}).get("workerNodes") or ())

        await_condition(lambda: node in known(), message="the controller knows the node")
        cluster.patch("v1", "Node", node, {"metadata": {"annotations": {BROKEN: "true"}}})

        def broken() -> bool:
            found = cluster.get("v1", "Node", node)
            return condition(found, "Ready").get("status") == "False"

        await_condition(broken, 120, "the node is not ready")

        await_condition(lambda: node not in known(), 120, "the controller has seen it")
        patch = orjson.dumps({"spec": {"inference": {"replicas": 2}}}).decode()
        stage.run("kubectl", "patch", "workspace", "pick", "-n", "inference", "--type", "merge", "-p", patch)
        await_condition(lambda: len(claims_of(cluster, "pick")) == 2, 120, "one NodeClaim goes")
        assert victim["metadata"]["name"] not in {claim["metadata"]["name"] for claim in claims_of(cluster, "pick")}
        remove(cluster, "pick")


def test_a_killed_controller_loses_nothing_and_creates_nothing_twice(
    cluster: Kube, sandbox: Sandbox, folder: Path
) -> None:
    """SIGKILL while the update runs; the next run, as another host, converges."""
    with controller(sandbox, folder) as first:
        await_condition(lambda: claims_of(cluster, "chat"), 120)
        cluster.apply(workspace("killed", 12))
        await_condition(lambda: claims_of(cluster, "killed"), 120, "the first NodeClaims")
        first.kill()
    before = uids_of(cluster, "killed")
    elsewhere = folder / "another-host"
    elsewhere.mkdir()
    with controller(sandbox, elsewhere, hostname="another-host") as second:
        await_condition(lambda: len(claims_of(cluster, "killed")) == 12, 120, "twelve NodeClaims")
        await_condition(lambda: pods_ready(cluster, "killed") == 12, 180, "the workload runs")
        found = uids_of(cluster, "killed")
        assert len(found) == 12, "none was created twice"
        assert before <= found, "none was replaced"
        assert second.process.poll() is None
        remove(cluster, "killed")


def has_lease(of: Controller) -> bool:
    return "acquired the Lease" in of.text()


def test_two_controllers_have_one_writer(cluster: Kube, sandbox: Sandbox, folder: Path) -> None:
    with controller(sandbox, folder) as first, controller(sandbox, folder) as second:
        cluster.apply(workspace("twice", 2))
        await_condition(lambda: len(claims_of(cluster, "twice")) == 2, 120)
        await_condition(lambda: pods_ready(cluster, "twice") == 2, 120)
        assert len(uids_of(cluster, "twice")) == 2
        leader, waiting = sorted((first, second), key=has_lease, reverse=True)
        assert (has_lease(leader), has_lease(waiting)) == (True, False)
        assert leader.stop() == 0
        patch = {"spec": {"inference": {"replicas": 1}}}
        cluster.patch(API, "Workspace", "twice", patch, "inference")
        await_condition(lambda: len(claims_of(cluster, "twice")) == 1, 120, "the other loop took over")
        assert has_lease(waiting)
        remove(cluster, "twice")


def test_run_once_settles(stage: Stage, cluster: Kube) -> None:
    stage.run("plimsoll", "run", "--once", user="controller")
    plan = orjson.loads(stage.run("plimsoll", "plan", "--output", "json"))
    assert not plan["create"] and not plan["delete"] and not plan["update"]


def test_destroy_deletes_everything_and_the_foundation_is_protected(stage: Stage, cluster: Kube) -> None:
    message = stage.run(
        "pulumi", "destroy", "--yes", "--skip-preview", "--stack", "sandbox-nap-foundation", expect=None
    )
    assert "plimsoll destroy" in message
    assert cluster.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", "workspaces.plimsoll.dev")
    stage.run("plimsoll", "destroy", "--yes")
    assert cluster.list(*CLAIM) == []
    assert cluster.get("v1", "Namespace", "inference") is None
    assert cluster.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", "workspaces.plimsoll.dev") is None
    stacks = orjson.loads(stage.run("pulumi", "stack", "ls", "--json"))
    assert stacks == []
