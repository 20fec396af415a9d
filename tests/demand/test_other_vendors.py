"""Pods that request whole GPUs of AMD and Intel by the resources of their device plugins."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll.cluster.nodes import index_of
from plimsoll.cluster.pools import PoolProfiles, Room, SeenNodes, profile_facts, why_left
from plimsoll.cluster.profiles import Source
from plimsoll.cluster.queues import gpus_held, queue_usage
from plimsoll.labels import INSTANCE_TYPE, NODEPOOL, WORKSPACE
from plimsoll.model.api import Environment
from plimsoll.model.cluster import Node, Pod, ResourceQuota
from plimsoll.model.karpenter import NodeOverlay
from plimsoll.packing import GPU_MILLI
from plimsoll.plan.classes import RefusalReason
from plimsoll.plan.demand import DemandPlan, DemandPlanner
from plimsoll.plan.limits import NamespaceBudget
from plimsoll.plan.requests import NodeRequest
from plimsoll.plan.view import ClusterView
from tests.builders import (
    a_node_pool,
    a_node_profile,
    a_node_with,
    a_queue,
    a_snapshot,
    a_waiting_pod,
    an_environment,
)
from tests.command import plimsoll
from tests.demand.plans import on_new, on_nodes, only, planned, refused, requests_of, types

AMD, XE, I915 = "amd.com/gpu", "gpu.intel.com/xe", "gpu.intel.com/i915"
TYPE = "Standard_ND96isr_MI300X_v5"
OPEN = {"key": "plimsoll.dev/request", "operator": "Exists"}
POOL = a_node_pool("theirs", (TYPE,), requirements=[OPEN], group="karpenter.kwok.sh")
UNLISTED = "Standard_ND96_MI250_v5"
UNKNOWN = a_node_pool("theirs", (UNLISTED,), requirements=[OPEN])


def environment(provisioner: str = "trigger-pod", **spec: Any) -> Environment:
    return an_environment(demand={"provisioner": provisioner}, **spec)


def asking(name: str, resource: str = AMD, count: int = 1, **more: Any) -> Pod:
    pod = a_waiting_pod(name, **{"scheduler": "default-scheduler", "cpu": "1", **more})
    resources = {"requests": {"cpu": "1"}, "limits": {resource: str(count)}}
    return pod.model_copy(update={"containers": ({"name": "main", "resources": resources},)})


def declared(resource: str = AMD, count: int = 8, pool: str = "theirs", kind: str = TYPE) -> Any:
    return a_node_profile(pool, kind, allocatable={resource: str(count), "cpu": "90", "memory": "1800Gi"})


def a_node_of_theirs(name: str = "n1", resource: str = AMD, count: int = 8, **labels: str) -> Node:
    own = {NODEPOOL: "theirs", INSTANCE_TYPE: TYPE, "amd.com/gpu.product-name": "MI300X", **labels}
    return a_node_with(name, own, {resource: str(count)}, cpu="96", host_memory="1800Gi")


def learned(node: Node) -> Any:
    """The NodeProfile that the controller writes of the node."""
    (report,) = SeenNodes(index_of((node,)), ()).learned()
    return a_node_profile("theirs", TYPE, learned=report.learned.model_dump(by_alias=True))


def plan(*objects: Any, settings: Environment | None = None, **more: Any) -> DemandPlan:
    return planned(*objects, environment=settings or environment(), **more)


@pytest.mark.parametrize("resource", [AMD, XE, I915])
@pytest.mark.parametrize(("pods", "each", "nodes"), [(1, 2, 1), (4, 2, 1), (5, 2, 2), (3, 5, 3), (1, 8, 1)])
def test_nodes_of_a_declared_profile_are_requested(resource: str, pods: int, each: int, nodes: int) -> None:
    found = plan(POOL, declared(resource), *(asking(f"pod-{number}", resource, each) for number in range(pods)))
    assert types(found) == [TYPE] * nodes
    assert {(node.resource, node.gpus) for node in found.nodes} == {(resource, 8)}
    assert len(on_new(found)) == pods
    # Karpenter counts no such devices on the type, and would wait for them in vain.
    requested = NodeRequest.of(found.nodes[0]).requests("nvidia.com/gpu")
    assert set(requested) == {"cpu", "memory"} or set(requested) == {"cpu"}


def test_nodes_are_requested_by_what_was_learned_when_none_is_left() -> None:
    found = plan(POOL, learned(a_node_of_theirs()), asking("pod", AMD, 2))
    assert types(found) == [TYPE]
    assert found.nodes[0].kind == "MI300X"


def test_nodes_of_types_in_the_catalog_are_requested() -> None:
    """What the type has besides GPUs is known, too."""
    pool = a_node_pool("theirs", ("Standard_NG32ads_V620_v1",), requirements=[OPEN], group="karpenter.azure.com")
    found = plan(pool, *(asking(f"pod-{number}", AMD) for number in range(2)), asking("large", AMD, 2))
    assert [(node.resource, node.gpus) for node in found.nodes] == [(AMD, 1)] * 2
    assert set(refused(found)) == {"uid-large"}
    (profile,) = PoolProfiles(a_snapshot(pool, environment=environment())).shapes
    assert (profile.source, profile.node_cpu_milli < 32001) == (Source.CATALOG, True)


def test_free_gpus_are_used_first() -> None:
    busy = asking("busy", AMD, 5).model_copy(update={"node_name": "n1", "phase": "Running"})
    node, pods = a_node_of_theirs(), [asking("fits", AMD, 3), asking("beyond", AMD, 2, priority=-1)]
    found = plan(POOL, node, busy, *pods)
    assert on_nodes(found) == {"uid-fits": "n1"}
    assert on_new(found) == {"uid-beyond"}


def test_a_requested_node_suffices_in_the_next_round() -> None:
    pods = [asking(f"pod-{number}", AMD, 4) for number in range(2)]
    first = plan(POOL, declared(), *pods)
    assert not plan(POOL, declared(), *pods, requested=requests_of(first.nodes)).nodes


NOBODY = "no node or NodeProfile of a NodePool with the requirement"


@pytest.mark.parametrize(
    ("objects", "why"),
    [
        pytest.param((), NOBODY, id="no NodePool"),
        pytest.param((UNKNOWN,), NOBODY, id="nobody says what it has"),
        pytest.param((a_node_pool("theirs", (TYPE,)), declared()), NOBODY, id="its nodes may be shared by requests"),
        pytest.param((POOL.model_copy(update={"labels": {WORKSPACE: "ws"}}), declared()), NOBODY, id="of a Workspace"),
        pytest.param((UNKNOWN, declared(pool="other", kind=UNLISTED)), NOBODY, id="of another NodePool"),
        pytest.param((UNKNOWN, declared(count=0, kind=UNLISTED)), NOBODY, id="none of them"),
        pytest.param(
            (POOL, declared(), a_node_pool("aws", ("g4ad.xlarge",), group="karpenter.k8s.aws")),
            "Karpenter counts amd.com/gpu on the instance types of NodePool aws",
            id="seen by Karpenter on AWS",
        ),
        pytest.param(
            (POOL, declared(), a_node_pool("aks", (TYPE,), group="karpenter.azure.com")),
            "Karpenter counts amd.com/gpu on the instance types of NodePool aks",
            id="seen by Karpenter on Azure",
        ),
        pytest.param(
            (POOL, declared(), NodeOverlay.read({"metadata": {"name": "o"}, "spec": {"capacity": {AMD: "8"}}})),
            "by NodeOverlay o",
            id="listed by a NodeOverlay",
        ),
    ],
)
def test_else_they_are_left_to_the_autoscaler(objects: tuple[Any, ...], why: str) -> None:
    found = plan(*objects, asking("pod", AMD, 2))
    assert not found.nodes
    assert set(only(found).whole_gpu_pods) == {"uid-pod"}
    assert why in why_left(a_snapshot(*objects, environment=environment()), AMD)


AWS, AZURE = "karpenter.k8s.aws", "karpenter.azure.com"
V620 = a_node_pool("v620", ("Standard_NG32ads_V620_v1",), requirements=[OPEN], group=AZURE)


@pytest.mark.parametrize(
    ("group", "requirement", "counted"),
    [
        (AZURE, {"key": f"{AZURE}/sku-family", "operator": "In", "values": ["D"]}, False),
        (AZURE, {"key": f"{AZURE}/sku-family", "operator": "In", "values": ["D", "N"]}, True),
        (AZURE, {"key": f"{AZURE}/sku-series", "operator": "NotIn", "values": ["NDisr_v5"]}, True),
        (AZURE, {"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]}, False),
        (AWS, {"key": f"{AWS}/instance-category", "operator": "In", "values": ["c", "m", "r"]}, False),
        (AWS, {"key": f"{AWS}/instance-category", "operator": "In", "values": ["g"]}, True),
        (AWS, {"key": f"{AWS}/instance-generation", "operator": "Gt", "values": ["2"]}, True),
        ("example.com", {"key": "kubernetes.io/arch", "operator": "Exists"}, False),
    ],
)
def test_a_node_pool_without_named_types_counts_by_what_it_allows(
    group: str, requirement: dict[str, Any], counted: bool
) -> None:
    """A NodePool of CPU nodes leaves the nodes with AMD's GPUs to be requested."""
    objects = (V620, a_node_pool("general-purpose", requirements=[requirement], group=group))
    why = why_left(a_snapshot(*objects, environment=environment()), AMD)
    assert ("NodePool general-purpose" in why) == counted == bool(why)
    assert bool(plan(*objects, asking("pod", AMD)).nodes) != counted


def test_why_names_the_devices_and_who_provides_nodes(tmp_path: Path) -> None:
    file = tmp_path / "pods.yaml"
    pods = [asking("amd", AMD, 2), asking("tpu", "google.com/tpu", 4)]
    manifests = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": pod.name, "namespace": "team", "uid": pod.uid},
            "spec": {"containers": list(pod.containers)},
            "status": {
                "phase": "Pending",
                "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
            },
        }
        for pod in pods
    ]
    file.write_text(yaml.safe_dump_all(manifests))

    def why(name: str) -> str:
        return plimsoll("why", "pod", f"team/{name}", "-f", str(file), "-o", "json").stdout

    assert f"2 {AMD}" in why("amd")
    assert "WholeGPUs" in why("amd")
    assert NOBODY in why("amd")
    assert "4 google.com/tpu: accelerators for which no capacity is planned" in why("tpu")


def test_the_resource_of_the_environment_means_whole_gpus_whatever_its_vendor() -> None:
    found = plan(POOL, declared(), asking("pod", AMD, 2), settings=environment(gpuResource=AMD))
    assert (found.nodes, set(only(found).whole_gpu_pods)) == ((), {"uid-pod"})


@pytest.mark.parametrize("resource", [AMD, XE])
def test_every_provisioner_but_one_requests_them(resource: str) -> None:
    """ProvisioningRequests are for Cluster Autoscaler, which has no NodePools, and no label by which a node is one
    request's."""
    objects = (POOL, declared(resource), asking("pod", resource))
    for provisioner in ("none", "trigger-pod", "capacity-buffer"):
        assert types(plan(*objects, settings=environment(provisioner))) == [TYPE]
    settings = environment("provisioning-request")
    found = plan(*objects, settings=settings)
    assert (found.nodes, set(only(found).whole_gpu_pods)) == ((), {"uid-pod"})
    assert "set it to trigger-pod or capacity-buffer" in why_left(a_snapshot(*objects, environment=settings), resource)


@pytest.mark.parametrize(
    "other",
    [
        a_node_pool("aks", ("Standard_NG32ads_V620_v1",), group="karpenter.azure.com"),
        a_node_pool("aks", (TYPE,), group="karpenter.azure.com").model_copy(update={"replicas": 2}),
        a_node_pool("gcp", (), group="karpenter.k8s.gcp"),
    ],
    ids=["no type that it counts", "static", "no vendor that it counts"],
)
def test_node_pools_that_karpenter_does_not_scale_for_them_change_nothing(other: Any) -> None:
    """Nor does one from whose nodes no request has its own: its label would never be on them."""
    assert types(plan(POOL, declared(), other, asking("pod"))) == [TYPE]


def test_a_pod_that_no_node_has_room_for_is_refused() -> None:
    found = plan(POOL, declared(), asking("pod", AMD, 9))
    assert not found.nodes
    assert only(found).refused["uid-pod"].reason is RefusalReason.NO_NODE


def test_another_resource_is_refused_by_name() -> None:
    """Of two pools with a resource each, a pod that selects one of them and asks for the other's."""
    other = a_node_pool("xe", ("max",), requirements=[OPEN])
    profile = a_node_profile("xe", "max", allocatable={XE: "4", "cpu": "90", "memory": "1800Gi"})
    found = plan(POOL, declared(), other, profile, asking("pod", AMD, 1, selector={NODEPOOL: "xe"}))
    assert not found.nodes
    assert AMD in refused(found)["uid-pod"]


def test_shares_and_gpus_of_nvidia_do_not_use_them() -> None:
    pods = (a_waiting_pod("share", gpu_fraction="0.5"), asking("nvidia", "nvidia.com/gpu", 1))
    found = plan(POOL, declared(), a_node_of_theirs(), *pods)
    assert not found.nodes
    assert not on_nodes(found)


def test_the_limit_of_a_node_pool_counts_its_vendor() -> None:
    limited = a_node_pool(
        "theirs", (TYPE,), requirements=[OPEN], limits={AMD: "8", "nvidia.com/gpu": "0"}, group="karpenter.kwok.sh"
    )
    found = plan(limited, declared(), *(asking(f"pod-{number}", AMD, 8) for number in range(2)))
    assert len(found.nodes) == 1
    assert f"limits.{AMD}" in " ".join(refused(found).values())


def test_the_limit_of_the_environment_counts_all_vendors() -> None:
    room = Room({"gpus": 8}, {"gpus": 8})
    found = plan(POOL, declared(), *(asking(f"pod-{number}", AMD, 8) for number in range(2)), room=room)
    assert len(found.nodes) == 1
    assert "limits.gpus" in " ".join(refused(found).values())


@pytest.mark.parametrize(
    ("hard", "nodes"), [({AMD: "8"}, 1), ({AMD: "16"}, 2), ({XE: "0"}, 2), ({"nvidia.com/gpu": "0"}, 2)]
)
def test_a_resource_quota_bounds_pods_with_its_resource(hard: dict[str, str], nodes: int) -> None:
    """One that allows no more GPUs of NVIDIA leaves no pods with others out."""
    spec = {"hard": {f"requests.{name}": number for name, number in hard.items()}}
    pods = [asking(f"pod-{number}", AMD, 8) for number in range(2)]
    quota = ResourceQuota.read({"metadata": {"name": "gpus", "namespace": pods[0].namespace}, "spec": spec})
    snapshot = a_snapshot(POOL, declared(), *pods, quota, environment=environment())
    found = DemandPlanner().plan(snapshot, namespaces=NamespaceBudget(ClusterView(snapshot)))
    assert len(found.nodes) == nodes
    assert len(refused(found)) == 2 - nodes


@pytest.mark.parametrize(("resource", "admitted"), [(AMD, 1), (XE, 2)])
@pytest.mark.parametrize("known", [True, False])
def test_queues_count_what_kai_counts(resource: str, admitted: int, known: bool) -> None:
    """Of both vendors, KAI counts AMD's GPUs only."""
    queues = (a_queue("root", parent=""), a_queue("team", quota=4, limit=4))
    pods = [asking(f"pod-{n}", resource, 4, queue="team", scheduler="kai-scheduler") for n in range(2)]
    found = plan(*((POOL, declared(resource)) if known else ()), *queues, *pods)
    demand = only(found)
    kept_out = demand.refused if known else demand.kept_out
    assert len(kept_out) == 2 - admitted
    assert all(why.reason is RefusalReason.QUEUE for why in kept_out.values())


@pytest.mark.parametrize(
    ("asked", "held", "in_queue"),
    [
        ({AMD: 2, "nvidia.com/gpu": 1}, 3, 3),
        ({AMD: 2, XE: 1}, 3, 2),
        ({XE: 1, I915: 2, "nvidia.com/gpu": 4}, 7, 4),
        ({AMD: 2, "google.com/tpu": 4}, 2, 2),
        ({AMD: 2}, 2, 2),
    ],
)
def test_a_pod_with_gpus_of_several_vendors_counts_with_all(asked: dict[str, int], held: int, in_queue: int) -> None:
    resources = {"limits": {name: str(count) for name, count in asked.items()}}
    update = {"containers": ({"name": "main", "resources": resources},), "node_name": "n1", "phase": "Running"}
    pod = asking("pod", queue="team", scheduler="kai-scheduler").model_copy(update=update)
    snapshot = a_snapshot(a_queue("root", parent=""), a_queue("team"), pod, environment=environment())
    assert gpus_held(pod, None, snapshot.environment.spec) == held * GPU_MILLI
    assert queue_usage(snapshot).allocated["team"].gpu == in_queue * GPU_MILLI


def test_the_profile_says_where_the_devices_are_known_from() -> None:
    for objects, source in (((declared(),), Source.DECLARED), ((a_node_of_theirs(),), Source.LIVE)):
        facts = profile_facts(a_snapshot(POOL, *objects, environment=environment()), "theirs", TYPE)
        assert (facts.devices.name, facts.devices.source) == (AMD, source)


def test_no_labels_of_nvidia_are_asked_for() -> None:
    types_of_theirs = a_node_pool("theirs", (TYPE, "g4ad.xlarge"))
    assert not PoolProfiles(a_snapshot(types_of_theirs, environment=environment())).warnings
