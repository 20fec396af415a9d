"""Nodes with GPUs of AMD and Intel, from no nodes: for pods that wait, and for a Workspace.

KWOK runs no device plugin: a test announces the devices of a node.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from plimsoll.sandbox import Sandbox
from tests.awaiting import await_condition
from tests.e2e.cluster.controller import controller
from tests.e2e.cluster.kube import Kube
from tests.e2e.demand.environment import (
    API,
    CLAIM,
    NAMESPACE,
    TOLERATION,
    add_open_pool,
    await_another_look,
    claims_of,
    declare_demand,
    remove_added,
    triggers,
)

pytestmark = pytest.mark.e2e

IMAGE = "registry.k8s.io/pause:3.9"
AMD, XE = "amd.com/gpu", "gpu.intel.com/xe"
PODS = ("instinct-a", "instinct-b")
TEAM = "inference"
OWN = f"plimsoll.dev/workspace-namespace={TEAM},plimsoll.dev/workspace=arc"


@pytest.fixture
def cluster(kube: Callable[..., Kube], demand_sandbox: Sandbox) -> Iterator[Kube]:
    cluster = kube(demand_sandbox)
    declare_demand(cluster, "trigger-pod")
    yield cluster
    for name in PODS:
        cluster.delete("v1", "Pod", name, NAMESPACE)
    remove_added(cluster, "GPUDemand", "NodeProfile")
    await_condition(lambda: not claims_of(cluster, "instinct"), 120, "the nodes of a test go")


def declare_devices(cluster: Kube, pool: str, instance_type: str, resource: str) -> None:
    add_open_pool(cluster, pool, instance_type)
    spec = {"nodePool": pool, "instanceType": instance_type, "allocatable": {resource: "4"}}
    cluster.apply({"apiVersion": API, "kind": "NodeProfile", "metadata": {"name": pool}, "spec": spec})


def announce(cluster: Kube, node: str, resource: str) -> None:
    """What a device plugin does."""
    amounts = {"capacity": {resource: "4"}, "allocatable": {resource: "4"}}
    cluster.patch("v1", "Node", node, {"status": amounts}, "", "status")


def registered(cluster: Kube, selector: str) -> list[str]:
    """Nodes of NodeClaims that Karpenter has registered."""
    found = [each.get("status") or {} for each in cluster.list(*CLAIM, selector=selector)]
    passed = {"type": "Registered", "status": "True"}.items()
    return [
        status["nodeName"]
        for status in found
        if "nodeName" in status and any(passed <= each.items() for each in status.get("conditions", ()))
    ]


def running(pods: list[dict[str, Any]]) -> list[str]:
    """The nodes of those that run."""
    return [pod["spec"]["nodeName"] for pod in pods if pod["status"].get("phase") == "Running"]


def test_pods_with_gpus_of_amd_get_one_node(cluster: Kube, demand_sandbox: Sandbox, tmp_path: Path) -> None:
    """Two pods with two GPUs each share a node with four. Karpenter knows none of these GPUs, and buys none."""
    declare_devices(cluster, "instinct", "m5.4xlarge", AMD)
    for name in PODS:
        container = {"name": "main", "image": IMAGE, "resources": {"limits": {AMD: "2"}}}
        spec = {
            "nodeSelector": {"karpenter.sh/nodepool": "instinct"},
            "tolerations": [TOLERATION],
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
        }
        metadata = {"name": name, "namespace": NAMESPACE}
        cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})

    def of_test() -> list[dict[str, Any]]:
        return [each for each in cluster.list("v1", "Pod", NAMESPACE) if each["metadata"]["name"] in PODS]

    with controller(demand_sandbox, tmp_path):
        (node,) = await_condition(lambda: registered(cluster, "karpenter.sh/nodepool=instinct"), 120, "a node")
        announce(cluster, node, AMD)
        await_condition(lambda: running(of_test()) == [node, node], 120, "both run there")
        await_condition(lambda: not triggers(cluster), 120, "the trigger goes")
        await_another_look(cluster)
        assert len(claims_of(cluster, "instinct")) == 1


def test_a_workspace_gets_a_node_with_gpus_of_intel(cluster: Kube, demand_sandbox: Sandbox, tmp_path: Path) -> None:
    """Its NodeClaim requests them, so that Karpenter initializes the node once they are announced."""
    declare_devices(cluster, "arc", "m5.xlarge", XE)
    template = {"spec": {"containers": [{"name": "server", "image": IMAGE}]}}
    spec = {"queue": TEAM, "resource": {"instanceType": "m5.xlarge"}, "inference": {"template": template}}
    metadata = {"name": "arc", "namespace": TEAM}
    with controller(demand_sandbox, tmp_path):
        cluster.apply({"apiVersion": API, "kind": "Workspace", "metadata": metadata, "spec": spec})
        (node,) = await_condition(lambda: registered(cluster, OWN), 120, "a node")
        (claim,) = cluster.list(*CLAIM, selector=OWN)
        assert claim["spec"]["resources"]["requests"][XE] == "4"
        assert "nvidia.com/gpu" not in claim["spec"]["resources"]["requests"]
        announce(cluster, node, XE)
        selected = "plimsoll.dev/workspace=arc"

        def served() -> list[dict[str, Any]]:
            found = cluster.list("v1", "Pod", TEAM, selected)
            return found if len(found) == 1 and running(found) == [node] else []

        (pod,) = await_condition(served, 120, "its pod runs there")
        assert pod["spec"]["containers"][0]["resources"]["limits"] == {XE: "4"}
        assert len(cluster.list(*CLAIM, selector=OWN)) == 1
        cluster.delete(API, "Workspace", "arc", TEAM)
        await_condition(lambda: not cluster.list(*CLAIM, selector=OWN), 120, "its node goes")
