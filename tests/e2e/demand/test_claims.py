"""Pods that claim GPUs (Dynamic Resource Allocation), from no nodes: Karpenter ignores claims, Plimsoll requests nodes,
the driver publishes their devices, and the scheduler allocates them and binds the pods."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from plimsoll.sandbox import Sandbox
from tests.awaiting import await_condition
from tests.e2e.cluster.controller import controller
from tests.e2e.cluster.dra_driver import DRIVER, Devices, dra_driver
from tests.e2e.cluster.kube import Kube
from tests.e2e.demand.environment import (
    API,
    CLAIM,
    TOLERATION,
    add_open_pool,
    await_another_look,
    claims_of,
    declare_demand,
    demands,
    remove_added,
    triggers,
)

pytestmark = pytest.mark.e2e

RESOURCE = "resource.k8s.io/v1"
TYPE = "m5.4xlarge"
"""16 CPU; no GPUs for Karpenter, as none is allocatable where pods get them by claims."""
L4 = Devices(4, {"productName": "NVIDIA L4", "type": "gpu", "architecture": "Ada Lovelace"}, "23034Mi", slices=2)
IS_GPU = f"device.driver == '{DRIVER}' && device.attributes['{DRIVER}'].type == 'gpu'"
IS_L4 = f"device.attributes['{DRIVER}'].productName == 'NVIDIA L4'"


@pytest.fixture
def cluster(kube: Callable[..., Kube], demand_sandbox: Sandbox) -> Iterator[Kube]:
    cluster = kube(demand_sandbox)
    yield cluster
    cluster.delete("apps/v1", "Deployment", "claiming")
    await_condition(lambda: not cluster.list(RESOURCE, "ResourceClaim", "default"), 120, "its pods and their claims go")
    remove_added(cluster, "GPUDemand", "NodeProfile")
    for name in ("one", "two"):
        cluster.delete(RESOURCE, "ResourceClaimTemplate", name)
    cluster.delete(RESOURCE, "DeviceClass", DRIVER)


def declare_class(cluster: Kube) -> None:
    spec = {"selectors": [{"cel": {"expression": IS_GPU}}]}
    cluster.apply({"apiVersion": RESOURCE, "kind": "DeviceClass", "metadata": {"name": DRIVER}, "spec": spec})


def declare_template(cluster: Kube, name: str, count: int) -> None:
    exactly = {"deviceClassName": DRIVER, "count": count, "selectors": [{"cel": {"expression": IS_L4}}]}
    spec = {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}}
    metadata = {"name": name, "namespace": "default"}
    cluster.apply({"apiVersion": RESOURCE, "kind": "ResourceClaimTemplate", "metadata": metadata, "spec": spec})


def declare_devices(cluster: Kube) -> None:
    devices = {
        "driver": DRIVER,
        "count": L4.number,
        "strings": dict(L4.attributes),
        "capacity": {"memory": L4.memory},
    }
    spec = {"nodePool": "claimed", "instanceType": TYPE, "claimDevices": devices}
    cluster.apply({"apiVersion": API, "kind": "NodeProfile", "metadata": {"name": f"claimed.{TYPE}"}, "spec": spec})


def deploy(cluster: Kube, replicas: int, template: str = "one") -> None:
    pod = {
        "nodeSelector": {"karpenter.sh/nodepool": "claimed"},
        "tolerations": [TOLERATION],
        "terminationGracePeriodSeconds": 0,
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": template}],
        "containers": [
            {
                "name": "main",
                "image": "registry.k8s.io/pause:3.9",
                "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "claims": [{"name": "gpu"}]},
            }
        ],
    }
    labels = {"app": "claiming"}
    cluster.apply(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "claiming", "namespace": "default"},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": pod},
            },
        }
    )


def bound(cluster: Kube) -> list[str]:
    """The node of each pod that has one and is not being deleted."""
    pods = cluster.list("v1", "Pod", "default", selector="app=claiming")
    return [
        pod["spec"]["nodeName"]
        for pod in pods
        if "nodeName" in pod["spec"] and "deletionTimestamp" not in pod["metadata"]
    ]


def learned(cluster: Kube) -> dict[str, Any]:
    profile = cluster.get(API, "NodeProfile", f"claimed.{TYPE}") or {}
    found: dict[str, Any] = profile.get("status", {}).get("learned", {}).get("claimDevices", {})
    return found


def test_pods_with_claims_get_nodes_from_zero_and_again_from_what_was_learned(
    cluster: Kube, demand_sandbox: Sandbox, tmp_path: Path
) -> None:
    """Five pods with a device each need two nodes of four. After scaling to zero, what was learned of devices serves
    two pods of two devices with one node."""
    declare_demand(cluster, "trigger-pod")
    declare_class(cluster)
    declare_template(cluster, "one", 1)
    declare_template(cluster, "two", 2)
    add_open_pool(cluster, "claimed", TYPE)
    declare_devices(cluster)
    with dra_driver(demand_sandbox.kubeconfig, {TYPE: L4}), controller(demand_sandbox, tmp_path):
        deploy(cluster, 5)
        await_condition(lambda: len(claims_of(cluster, "claimed")) == 2, 60, "two NodeClaims")
        await_condition(lambda: len(bound(cluster)) == 5, 60, "the scheduler allocates and binds")
        await_condition(lambda: not triggers(cluster), 60, "the triggers go")
        await_another_look(cluster)
        assert len(claims_of(cluster, "claimed")) == 2
        claims = cluster.list(*CLAIM, selector="karpenter.sh/nodepool=claimed")
        assert not any("nvidia.com/gpu" in each["spec"]["resources"]["requests"] for each in claims)
        await_condition(lambda: learned(cluster).get("count") == 4, 60, "the devices are learned")
        assert "uuid" not in learned(cluster)["strings"]

        deploy(cluster, 0)
        await_condition(lambda: not bound(cluster), 60, "the pods go")
        for claim in claims_of(cluster, "claimed"):
            cluster.delete(*CLAIM, claim)
        of_pool = "karpenter.sh/nodepool=claimed"
        await_condition(lambda: not cluster.list("v1", "Node", selector=of_pool), 60, "the NodePool is at zero")
        cluster.patch(API, "NodeProfile", f"claimed.{TYPE}", {"spec": {"claimDevices": None}})
        deploy(cluster, 2, "two")
        await_condition(lambda: len(bound(cluster)) == 2, 60, "the pods are bound again")
        await_condition(lambda: not triggers(cluster), 60, "the triggers go")
        assert len(claims_of(cluster, "claimed")) == 1
        await_condition(lambda: not demands(cluster, "Pending", "Scheduled"), 60, "no demand is left")


def test_pods_of_a_workspace_claim_the_gpus_of_new_nodes(
    cluster: Kube, demand_sandbox: Sandbox, tmp_path: Path
) -> None:
    """From no nodes: NodeClaims without an extended resource, a ResourceClaimTemplate beside the Deployment, and pods
    that the scheduler binds with all devices of their node. Everything goes with the Workspace."""
    declare_class(cluster)
    add_open_pool(cluster, "claimed", TYPE)
    declare_devices(cluster)
    container = {"name": "main", "image": "registry.k8s.io/pause:3.9"}
    template = {"metadata": {"labels": {"app": "claiming"}}, "spec": {"containers": [container]}}
    spec = {
        "resource": {"instanceType": TYPE, "devices": "claim"},
        "inference": {"template": template, "replicas": 2},
    }
    chat = {"apiVersion": API, "kind": "Workspace", "metadata": {"name": "chat", "namespace": "default"}, "spec": spec}
    with dra_driver(demand_sandbox.kubeconfig, {TYPE: L4}), controller(demand_sandbox, tmp_path):
        cluster.apply(chat)
        await_condition(lambda: len(set(bound(cluster))) == 2, 120, "each pod has a node")
        of_chat = "plimsoll.dev/workspace=chat"
        requests = [
            each["spec"].get("resources", {}).get("requests", {}) for each in cluster.list(*CLAIM, selector=of_chat)
        ]
        assert len(requests) == 2
        assert not any("nvidia.com/gpu" in each for each in requests)
        claims = cluster.list(RESOURCE, "ResourceClaim", "default")
        taken = [each["status"]["allocation"]["devices"]["results"] for each in claims]
        assert sorted(map(len, taken)) == [4, 4]
        cluster.delete(API, "Workspace", "chat")
        await_condition(lambda: not cluster.list(API, "Workspace"), 120, "the Workspace is gone")
        assert not cluster.list(RESOURCE, "ResourceClaimTemplate", "default")
        assert not cluster.list(*CLAIM, selector=of_chat)
