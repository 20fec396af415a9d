"""Nodes where the volumes are, with kube-scheduler, Karpenter and the controller of PersistentVolumes: a claim that is
bound, and one whose volume is provisioned where its first pod is placed."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from plimsoll.sandbox import Sandbox
from tests.awaiting import await_condition
from tests.e2e.cluster.controller import controller
from tests.e2e.cluster.kube import Kube, Manifest
from tests.e2e.demand.environment import (
    API,
    CLAIM,
    NAMESPACE,
    POOL,
    TOLERATION,
    add_pool,
    declare_demand,
    remove_added,
    triggers,
)
from tests.placement.rules import ZONE

pytestmark = pytest.mark.e2e

STORED: Final = "stored"
"""NodePool, StorageClass and Workspace."""
SERVED: Final = "inference"
"""Namespace of the Workspace."""
TYPE: Final = "Standard_NC24ads_A100_v4"
SHARED: Final = "nvidia.com/gpu.shared"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
PLACES: Final = {"bound": "zone-b", "waiting": "zone-a"}
"""Zones of the claims of shares, and of their pods, by name."""


@pytest.fixture
def cluster(kube: Callable[..., Kube], demand_sandbox: Sandbox) -> Iterator[Kube]:
    cluster = kube(demand_sandbox)
    yield cluster
    declare_demand(cluster, "trigger-pod", sharedDevices=None)
    for name in PLACES:
        cluster.delete("v1", "Pod", name)
        cluster.delete("v1", "PersistentVolumeClaim", name)
    cluster.delete("v1", "PersistentVolumeClaim", STORED, SERVED)
    cluster.delete("storage.k8s.io/v1", "StorageClass", STORED)
    for volume in cluster.list("v1", "PersistentVolume"):
        cluster.delete("v1", "PersistentVolume", volume["metadata"]["name"])
    remove_added(cluster, "GPUDemand")


def a_volume(name: str, zone: str, claim: Manifest) -> Manifest:
    """A volume of the claim, in a zone."""
    terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}]
    meta = claim["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Ti"},
            "accessModes": ["ReadWriteOnce"],
            "csi": {"driver": "sandbox.plimsoll.dev", "volumeHandle": name},
            "storageClassName": claim["spec"]["storageClassName"],
            "claimRef": {"kind": "PersistentVolumeClaim", **{key: meta[key] for key in ("name", "namespace", "uid")}},
            "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
        },
    }


def add_claim(cluster: Kube, name: str, namespace: str = NAMESPACE, storage_class: str = "") -> Manifest:
    resources = {"requests": {"storage": "1Ti"}}
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": storage_class, "resources": resources}
    metadata = {"name": name, "namespace": namespace}
    return cluster.create({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec})


def add_bound_claim(cluster: Kube, name: str, zone: str, namespace: str = NAMESPACE) -> None:
    claim = add_claim(cluster, name, namespace)
    cluster.create(a_volume(f"{namespace}-{name}", zone, claim))
    await_condition(lambda: _phase(cluster, name, namespace) == "Bound", 120, f"claim {name} is bound")


def _phase(cluster: Kube, name: str, namespace: str) -> str:
    claim = cluster.get("v1", "PersistentVolumeClaim", name, namespace) or {}
    return str((claim.get("status") or {}).get("phase"))


def add_storage_class(cluster: Kube, zone: str) -> None:
    cluster.create(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": STORED},
            "provisioner": "sandbox.plimsoll.dev",
            "volumeBindingMode": "WaitForFirstConsumer",
            "allowedTopologies": [{"matchLabelExpressions": [{"key": ZONE, "values": [zone]}]}],
        }
    )


def provision(cluster: Kube, name: str) -> None:
    """What a provisioner of volumes does: makes one in the zone of the node that the scheduler has selected."""

    def node() -> Manifest | None:
        claim = cluster.get("v1", "PersistentVolumeClaim", name) or {}
        selected = (claim["metadata"].get("annotations") or {}).get(SELECTED_NODE)
        return cluster.get("v1", "Node", selected) if selected else None

    labels = await_condition(node, 120, f"the scheduler selects a node for {name}")["metadata"]["labels"]
    claim = cluster.get("v1", "PersistentVolumeClaim", name)
    assert claim is not None
    cluster.create(a_volume(f"provisioned-{name}", labels[ZONE], claim))


def mounting(claim: str) -> Manifest:
    """A pod's spec."""
    return {
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}],
        "containers": [{"name": "main", "image": "registry.k8s.io/pause:3.9"}],
    }


def add_share(cluster: Kube, name: str) -> None:
    """A pod that requests a part of a GPU and mounts the claim of its name."""
    spec = mounting(name) | {"nodeSelector": {"karpenter.sh/nodepool": STORED}, "tolerations": [TOLERATION]}
    spec["containers"][0]["resources"] = {"requests": {"cpu": "1"}, "limits": {SHARED: "2"}}
    metadata = {"name": name, "namespace": NAMESPACE}
    cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


@contextmanager
def a_workspace(cluster: Kube, claim: str) -> Iterator[None]:
    """A Workspace whose pod mounts the claim. Its node is gone when the context ends."""
    metadata = {"name": STORED, "namespace": SERVED}
    spec = {
        "queue": "inference",
        "resource": {"instanceType": TYPE},
        "inference": {"template": {"spec": mounting(claim)}},
    }
    cluster.apply({"apiVersion": API, "kind": "Workspace", "metadata": metadata, "spec": spec})
    yield
    cluster.delete(API, "Workspace", STORED, SERVED)
    await_condition(lambda: not cluster.list(*CLAIM, selector=f"plimsoll.dev/workspace={STORED}"), 120, "its node goes")


def zone_of(cluster: Kube, pods: list[Manifest]) -> str | None:
    """The zone of the node of the only pod; None while it has none."""
    if len(pods) != 1 or not (name := pods[0]["spec"].get("nodeName")):
        return None
    zone: str = (cluster.get("v1", "Node", name) or {})["metadata"]["labels"][ZONE]
    return zone


def share(cluster: Kube, name: str) -> list[Manifest]:
    found = cluster.get("v1", "Pod", name)
    return [found] if found else []


def announce_devices(cluster: Kube) -> bool:
    """What a device plugin does on the nodes that have come; whether they are all there. Before a node has lost its
    taints, Kubernetes may evict pods from it."""
    nodes = cluster.list("v1", "Node", selector=f"karpenter.sh/nodepool={STORED}")
    ready = [node["metadata"]["name"] for node in nodes if not node["spec"].get("taints")]
    for node in ready:
        amounts = {SHARED: "16", "nvidia.com/gpu": "0"}
        cluster.patch("v1", "Node", node, {"status": {"capacity": amounts, "allocatable": amounts}}, "", "status")
    return len(ready) == len(PLACES)


def test_new_nodes_are_where_the_volumes_are(cluster: Kube, demand_sandbox: Sandbox, tmp_path: Path) -> None:
    """Both shares would fit one node."""
    add_pool(cluster, STORED, "g5.12xlarge")
    template = (cluster.get(*POOL, STORED) or {})["spec"]["template"]["spec"]
    open_to = [
        {"key": ZONE, "operator": "In", "values": ["zone-a", "zone-b"]},
        {"key": "plimsoll.dev/request", "operator": "Exists"},
    ]
    requirements = {"requirements": [*template["requirements"], *open_to]}
    cluster.patch(*POOL, STORED, {"spec": {"template": {"spec": requirements}}})
    declare_demand(cluster, "trigger-pod", sharedDevices=[{"nodePool": STORED, "resource": SHARED, "perGpu": 4}])
    add_bound_claim(cluster, "bound", PLACES["bound"])
    add_bound_claim(cluster, STORED, "zone-b", SERVED)
    add_storage_class(cluster, PLACES["waiting"])
    add_claim(cluster, "waiting", storage_class=STORED)
    since = cluster.revision()
    with controller(demand_sandbox, tmp_path), a_workspace(cluster, STORED):
        for name in PLACES:
            add_share(cluster, name)
        await_condition(lambda: announce_devices(cluster), 120, "a node for each share")
        provision(cluster, "waiting")
        for name, zone in PLACES.items():
            assert await_condition(lambda: zone_of(cluster, share(cluster, name)), 120, name) == zone  # noqa: B023
        selector = f"plimsoll.dev/workspace={STORED}"
        served = await_condition(
            lambda: zone_of(cluster, cluster.list("v1", "Pod", SERVED, selector)), 120, "the Workspace's pod is bound"
        )
        assert served == "zone-b"
        await_condition(lambda: not triggers(cluster), 120, "the triggers go")
        # Those of earlier tests may still be deleted.
        made = [each for each in cluster.changes_since(since, *CLAIM, "", "") if each["type"] == "ADDED"]
        assert len(made) == len(PLACES) + 1, "no node was made in vain"
