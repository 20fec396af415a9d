"""Demand together with DaemonSets and pods without GPUs, on real components: Karpenter creates exactly the planned
nodes."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from plimsoll.components.specs import GpuDiscoverySpec
from plimsoll.labels import REQUEST
from plimsoll.model.api import CAPACITY_GATE
from plimsoll.model.karpenter import NodePoolSpec
from plimsoll.sandbox import Sandbox
from plimsoll.stacks import node_overlays, shared_devices
from tests.awaiting import await_condition
from tests.e2e.cluster.controller import controller
from tests.e2e.cluster.kube import Kube, Manifest
from tests.e2e.demand.environment import (
    CLAIM,
    POOL,
    TOLERATION,
    add_pool,
    add_shares,
    await_another_look,
    bind,
    claims_of,
    declare_demand,
    demands,
    gated,
    nodes_of,
    remove_added,
    remove_shares,
    triggers,
)

pytestmark = pytest.mark.e2e

SMALL, LARGE = "g5.12xlarge", "g5.48xlarge"
"""48 CPUs with 4 GPUs, 192 CPUs with 8."""
SHARING = {"half-0": "halves", "half-1": "halves", "half-2": "halves", "slice": "slices"}
"""NodePools of pods that request devices which are parts of GPUs."""
ALIKE = ("alike-0", "alike-1", "alike-2")
"""Pods that request replicas with the name of whole GPUs."""
DAEMON_SET = ("apps/v1", "DaemonSet")
OVERLAY = ("karpenter.sh/v1alpha1", "NodeOverlay")


@pytest.fixture
def cluster(kube: Callable[..., Kube], demand_sandbox: Sandbox) -> Iterator[Kube]:
    cluster = kube(demand_sandbox)
    yield cluster
    declare_demand(cluster, "trigger-pod", sharedDevices=None)
    cluster.delete(*DAEMON_SET, "agent", "kube-system")
    for name in ("batch", *SHARING, *ALIKE):
        cluster.delete("v1", "Pod", name)
    remove_added(cluster, "GPUDemand")


def pod_spec(cpu: str, **selector: str) -> dict[str, Any]:
    resources = {"requests": {"cpu": cpu}}
    return {
        "nodeSelector": selector,
        "tolerations": [TOLERATION],
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "main", "image": "registry.k8s.io/pause:3.9", "resources": resources}],
    }


def add_daemon_set(cluster: Kube, cpu: str, **selector: str) -> None:
    labels = {"app": "agent"}
    template = {"metadata": {"labels": labels}, "spec": pod_spec(cpu, **selector)}
    cluster.create(
        {
            "apiVersion": DAEMON_SET[0],
            "kind": DAEMON_SET[1],
            "metadata": {"name": "agent", "namespace": "kube-system"},
            "spec": {"selector": {"matchLabels": labels}, "template": template},
        }
    )


def types_of(cluster: Kube, pool: str) -> list[str]:
    """The instance types that Karpenter launched for a NodePool."""
    claims = cluster.list(*CLAIM, selector=f"karpenter.sh/nodepool={pool}")
    return sorted(each["metadata"]["labels"].get("node.kubernetes.io/instance-type", "") for each in claims)


def agents_on(cluster: Kube, node: str) -> list[str]:
    pods = cluster.list("v1", "Pod", "kube-system", selector="app=agent")
    return [pod["metadata"]["name"] for pod in pods if pod["spec"].get("nodeName") == node]


def untainted(cluster: Kube, pool: str) -> bool:
    """Whether pods without tolerations may stay on the nodes."""
    nodes = cluster.list("v1", "Node", selector=f"karpenter.sh/nodepool={pool}")
    return not any(node["spec"].get("taints") for node in nodes)


def serve(cluster: Kube, pool: str, share: str, nodes: int) -> str:
    """Waits until the pool has this many nodes, and binds the share to the node without a share; returns its name."""
    taken = {pod["spec"].get("nodeName") for pod in cluster.list("v1", "Pod", "default")}
    await_condition(lambda: len(nodes_of(cluster, pool)) == nodes, 120, f"{nodes} nodes of {pool}")
    await_condition(lambda: not gated(cluster), 120, "the pod is let go")
    await_condition(lambda: untainted(cluster, pool), 120, "Karpenter takes its taint from the new node")
    (node,) = [name for name in nodes_of(cluster, pool) if name not in taken]
    bind(cluster, share, node)
    await_condition(lambda: not triggers(cluster), 120, "its trigger goes")
    return node


def test_nodes_have_room_for_daemon_sets_and_pods_without_gpus(
    cluster: Kube, demand_sandbox: Sandbox, tmp_path: Path
) -> None:
    """A share that would fit a small node alone needs a large one together with an agent of 10 CPUs. If other pods fill
    a node that has free GPUs, another node is requested."""
    declare_demand(cluster, "trigger-pod")
    add_daemon_set(cluster, "10", tier="watched")
    add_pool(cluster, "watched", f"{SMALL} {LARGE}", tier="watched")
    add_pool(cluster, "bare", f"{SMALL} {LARGE}", tier="bare")
    shares = ["watched-0", "watched-1", "bare-0"]
    with controller(demand_sandbox, tmp_path):
        add_shares(cluster, ["watched-0"], cpu="45", tier="watched")
        first = serve(cluster, "watched", "watched-0", 1)
        assert types_of(cluster, "watched") == [LARGE]
        await_condition(lambda: agents_on(cluster, first), 120, "the agent runs there")
        batch = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "batch", "namespace": "default"}}
        cluster.create(batch | {"spec": pod_spec("100", tier="watched")})
        await_condition(lambda: node_of(cluster, "batch") == first, 120)
        add_shares(cluster, ["watched-1"], cpu="45", tier="watched")
        second = serve(cluster, "watched", "watched-1", 2)
        await_condition(lambda: agents_on(cluster, second), 120)
        add_shares(cluster, ["bare-0"], cpu="45", tier="bare")
        serve(cluster, "bare", "bare-0", 1)
        assert types_of(cluster, "bare") == [SMALL]
        made = {pool: claims_of(cluster, pool) for pool in ("watched", "bare")}
        await_another_look(cluster)
        assert {pool: claims_of(cluster, pool) for pool in made} == made, "no other NodeClaim is ever made"
        assert types_of(cluster, "watched") == [LARGE, LARGE]
        await_condition(lambda: len(demands(cluster, "Completed")) == 2, 120)
    remove_shares(cluster, shares)


def test_a_daemon_set_leaves_room_for_fewer_pods(cluster: Kube, demand_sandbox: Sandbox, tmp_path: Path) -> None:
    """Two pods of 20 CPUs fit 48 CPUs; with an agent of 10 CPUs only one fits."""
    declare_demand(cluster, "trigger-pod")
    add_daemon_set(cluster, "10", tier="agents")
    add_pool(cluster, "agents", SMALL, tier="agents")
    add_pool(cluster, "alone", SMALL, tier="alone")
    with controller(demand_sandbox, tmp_path):
        for tier, nodes in (("agents", 2), ("alone", 1)):
            shares = [f"{tier}-{number}" for number in range(2)]
            add_shares(cluster, shares, fraction="0.25", cpu="20", tier=tier)
            await_condition(lambda: len(nodes_of(cluster, tier)) == nodes, 120, f"{nodes} nodes")  # noqa: B023
            await_condition(lambda: not gated(cluster), 120, "the pods are let go")
            await_condition(lambda: untainted(cluster, tier), 120)  # noqa: B023
            for number, name in enumerate(shares):
                bind(cluster, name, nodes_of(cluster, tier)[number % nodes])
            await_condition(lambda: not triggers(cluster), 120, "the triggers go")
            assert len(claims_of(cluster, tier)) == nodes
            remove_shares(cluster, shares)
        await_another_look(cluster)
        assert {tier: len(claims_of(cluster, tier)) for tier in ("agents", "alone")} == {"agents": 2, "alone": 1}


@pytest.mark.parametrize(
    ("resource", "instance_type", "labels"),
    [
        ("nvidia.com/gpu.shared", SMALL, {}),
        ("nvidia.com/mig-1g.10gb", "p4de.24xlarge", {"nvidia.com/mig.config": "all-1g.10gb"}),
    ],
)
def test_karpenter_creates_nodes_for_shared_devices_and_mig_slices(
    cluster: Kube, resource: str, instance_type: str, labels: dict[str, str]
) -> None:
    """Without the NodeOverlay no instance type lists the resource, and no node is created."""
    config = "sharing: {timeSlicing: {renameByDefault: true, resources: [{name: nvidia.com/gpu, replicas: 4}]}}"
    discovery = GpuDiscoverySpec.model_validate(
        {"migStrategy": "mixed", "config": {"map": {"shared": config}, "default": "shared"}}
    )
    devices = "slices" if labels else "shared"
    add_pool(cluster, devices, instance_type, **labels)
    pool = cluster.get(*POOL, devices)
    assert pool is not None
    template = pool["spec"]["template"]
    declared = {name: template["spec"][name] for name in ("nodeClassRef", "requirements")} | {"labels": labels}
    [(name, spec)] = node_overlays(discovery, {devices: NodePoolSpec.model_validate(declared)}).specs.items()
    asking = pod_spec("1", **{"karpenter.sh/nodepool": devices})
    asking["containers"][0]["resources"] = {"requests": {"cpu": "1"}, "limits": {resource: "2"}}
    batch = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "batch", "namespace": "default"}, "spec": asking}
    cluster.create(batch)
    await_condition(lambda: unschedulable(cluster, "batch"))
    await_another_look(cluster)
    assert types_of(cluster, devices) == []
    cluster.apply({"apiVersion": OVERLAY[0], "kind": OVERLAY[1], "metadata": {"name": name}, "spec": spec})
    try:
        await_condition(lambda: types_of(cluster, devices) == [instance_type], 120)
        await_condition(lambda: again_bound(cluster, batch, devices), 120, "the pod is bound")
    finally:
        cluster.delete(*OVERLAY, name)


def again_bound(cluster: Kube, pod: Manifest, pool: str) -> bool:
    """Whether the pod is bound. As a workload does, creates it again if it is gone: Kubernetes evicts a bound pod whose
    node it still sees with Karpenter's taint of nodes that are not registered."""
    if cluster.get("v1", "Pod", pod["metadata"]["name"]) is None:
        cluster.create(pod)
    return bound_to(cluster, pod["metadata"]["name"], pool)


def unschedulable(cluster: Kube, pod: str) -> bool:
    found = cluster.get("v1", "Pod", pod) or {}
    return any(each.get("reason") == "Unschedulable" for each in found.get("status", {}).get("conditions", ()))


def node_of(cluster: Kube, pod: str) -> str | None:
    """The node of a pod of the namespace default; None while it has none."""
    node: str | None = ((cluster.get("v1", "Pod", pod) or {}).get("spec") or {}).get("nodeName")
    return node


def bound_to(cluster: Kube, pod: str, pool: str) -> bool:
    """Whether the pod is bound to a node of the NodePool."""
    nodes = {each["metadata"]["name"] for each in cluster.list("v1", "Node", selector=f"karpenter.sh/nodepool={pool}")}
    return node_of(cluster, pod) in nodes


def open_to_requests(cluster: Kube, pool: str, **labels: str) -> NodePoolSpec:
    """Adds the requirement that trigger pods need to a NodePool, as the environment stack does."""
    template = (cluster.get(*POOL, pool) or {})["spec"]["template"]
    requirements = [*template["spec"]["requirements"], {"key": REQUEST, "operator": "Exists"}]
    cluster.patch(*POOL, pool, {"spec": {"template": {"spec": {"requirements": requirements}}}})
    declared = {"nodeClassRef": template["spec"]["nodeClassRef"], "requirements": requirements, "labels": labels}
    return NodePoolSpec.model_validate(declared)


def announce(cluster: Kube, node: str, amounts: dict[str, str]) -> None:
    """What a device plugin does."""
    cluster.patch("v1", "Node", node, {"status": {"capacity": amounts, "allocatable": amounts}}, "", "status")


def test_trigger_pods_request_nodes_for_shared_devices_and_mig_slices(
    cluster: Kube, demand_sandbox: Sandbox, tmp_path: Path
) -> None:
    """Without NodeOverlays. Three pods of 8 devices need two nodes of 16. The test simulates the device plugin, which
    announces the devices instead of whole GPUs."""
    config = "sharing: {timeSlicing: {renameByDefault: true, resources: [{name: nvidia.com/gpu, replicas: 4}]}}"
    discovery = GpuDiscoverySpec.model_validate(
        {"migStrategy": "mixed", "config": {"map": {"shared": config}, "default": "shared"}}
    )
    slices = {"nvidia.com/mig.config": "all-1g.10gb"}
    announced = {"halves": ("nvidia.com/gpu.shared", 16), "slices": ("nvidia.com/mig-1g.10gb", 56)}
    add_pool(cluster, "halves", SMALL)
    add_pool(cluster, "slices", "p4de.24xlarge", **slices)
    pools = {"halves": open_to_requests(cluster, "halves"), "slices": open_to_requests(cluster, "slices", **slices)}
    declare_demand(cluster, "trigger-pod", sharedDevices=shared_devices(discovery, pools).entries)
    with controller(demand_sandbox, tmp_path):
        for name, pool in SHARING.items():
            spec = pod_spec("1", **{"karpenter.sh/nodepool": pool})
            spec["containers"][0]["resources"] = {"requests": {"cpu": "1"}, "limits": {announced[pool][0]: "8"}}
            metadata = {"name": name, "namespace": "default"}
            cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
        for pool, nodes in (("halves", 2), ("slices", 1)):
            await_condition(lambda: len(nodes_of(cluster, pool)) == nodes, 120, f"{nodes} nodes of {pool}")  # noqa: B023
            await_condition(lambda: untainted(cluster, pool), 120)  # noqa: B023
            resource, count = announced[pool]
            for node in nodes_of(cluster, pool):
                announce(cluster, node, {resource: str(count), "nvidia.com/gpu": "0"})
        for name, pool in SHARING.items():
            await_condition(lambda: bound_to(cluster, name, pool), 120, f"{name} is bound")  # noqa: B023
        await_condition(lambda: not triggers(cluster), 120, "the triggers go")
        claims = [each for each in cluster.list(*CLAIM) if each["metadata"]["labels"]["karpenter.sh/nodepool"] in pools]
        assert not any("nvidia.com/gpu" in each["spec"]["resources"]["requests"] for each in claims)
        await_another_look(cluster)
        assert [len(claims_of(cluster, pool)) for pool in announced] == [2, 1]


def test_trigger_pods_request_nodes_for_replicas_with_the_name_of_whole_gpus(
    cluster: Kube, demand_sandbox: Sandbox, tmp_path: Path
) -> None:
    """Three pods of 6 devices need two nodes of 16. Karpenter would launch none for them: no type has 6 GPUs. The
    capacity gate holds each until its devices are free."""
    config = "sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}"
    discovery = GpuDiscoverySpec.model_validate({"config": {"map": {"shared": config}, "default": "shared"}})
    add_pool(cluster, "alike", SMALL)
    devices = shared_devices(discovery, {"alike": open_to_requests(cluster, "alike")}).entries
    declare_demand(cluster, "trigger-pod", sharedDevices=devices)
    with controller(demand_sandbox, tmp_path):
        for name in ALIKE:
            spec = pod_spec("1", **{"karpenter.sh/nodepool": "alike"})
            spec["schedulingGates"] = [{"name": CAPACITY_GATE}]
            spec["containers"][0]["resources"] = {"requests": {"cpu": "1"}, "limits": {"nvidia.com/gpu": "6"}}
            cluster.create(
                {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}
            )
        await_condition(lambda: len(nodes_of(cluster, "alike")) == 2, 120, "two nodes")
        await_condition(lambda: untainted(cluster, "alike"), 120)
        assert sorted(gated(cluster)) == [*ALIKE], "the nodes have 4 devices each"
        for node in nodes_of(cluster, "alike"):
            announce(cluster, node, {"nvidia.com/gpu": "16"})
        for name in ALIKE:
            await_condition(lambda: bound_to(cluster, name, "alike"), 120, f"{name} is bound")  # noqa: B023
        await_condition(lambda: not triggers(cluster), 120, "the triggers go")
        await_another_look(cluster)
        assert len(claims_of(cluster, "alike")) == 2
