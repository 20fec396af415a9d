"""Trigger pods for nodes with whole GPUs of AMD, from the request to the node."""

from typing import Any

import pytest

from plimsoll import labels
from plimsoll.cluster.catalog import AWS, AZURE
from plimsoll.model import Plan, SignalReason
from plimsoll.model.cluster import Node, Pod
from plimsoll.model.karpenter import NodeOverlay
from tests.builders import a_node_pool, a_node_profile
from tests.capacity_requests.cluster import TYPE, Cluster, at, demand_environment, node, pool, share_pod

AMD = "amd.com/gpu"
PROFILE = a_node_profile("gpu", TYPE, allocatable={AMD: "8", "cpu": "95", "memory": "1100Gi"})


def pods(count: int) -> list[Pod]:
    """Each asks for four GPUs of AMD."""
    found = []
    for number in range(count):
        pod = share_pod(f"pod-{number}", schedulerName="default-scheduler")
        resources = {"requests": {"cpu": "1"}, "limits": {AMD: "4"}}
        containers = ({"name": "main", "resources": resources},)
        found.append(pod.model_copy(update={"annotations": {}, "containers": containers}))
    return found


def a_cluster(count: int, **settings: Any) -> Cluster:
    open_pool = pool()
    open_pool.template_spec["requirements"].append({"key": labels.REQUEST, "operator": "Exists"})
    return Cluster(open_pool, PROFILE, *pods(count), environment=demand_environment(**settings))


def a_node_of_amd(trigger: str, gpus: int = 8) -> Node:
    plain = node(f"node-{trigger[-4:]}", at(30), gpus=0)
    own = {labels.NODEPOOL: "gpu", labels.INSTANCE_TYPE: TYPE, labels.REQUEST: trigger}
    return plain.model_copy(update={"labels": own, "allocatable": {**plain.allocatable, AMD: str(gpus)}})


def test_each_node_is_requested_once_and_without_its_gpus() -> None:
    """Karpenter counts no GPUs of AMD on such a type, and initializes no NodeClaim that requests them before the device
    plugin has announced them."""
    cluster = a_cluster(3)
    assert len(cluster.run_round(at(0)).creations) == 2
    for trigger in cluster.requested():
        (container,) = trigger["spec"]["containers"]
        assert set(container["resources"]["requests"]) == {"cpu", "memory"}
        assert trigger["spec"]["nodeSelector"][labels.REQUEST] == trigger["metadata"]["name"]
    assert cluster.run_round(at(1)).empty


def test_a_node_serves_its_request_once_its_gpus_are_announced() -> None:
    cluster = a_cluster(1)
    cluster.run_round(at(0))
    (name,) = (each["metadata"]["name"] for each in cluster.requested())
    cluster.objects.append(a_node_of_amd(name, gpus=0))
    early = cluster.run_round(at(31))
    assert not (early.creations or early.deletions or early.signals)
    cluster.objects[-1] = a_node_of_amd(name)
    ready = cluster.run_round(at(40))
    assert not ready.creations
    assert [each.reason for each in ready.signals] == [SignalReason.CAPACITY_READY]


def test_buffers_request_each_node_once_and_without_its_gpus() -> None:
    cluster = a_cluster(3, provisioner="capacity-buffer")
    found = cluster.run_round(at(0)).creations
    buffers = [each.manifest for each in found if each.manifest["kind"] == "CapacityBuffer"]
    templates = {each.key.name: each.manifest for each in found if each.manifest["kind"] == "PodTemplate"}
    assert [buffer["spec"]["replicas"] for buffer in buffers] == [1, 1]
    assert templates.keys() == {buffer["metadata"]["name"] for buffer in buffers}
    for name, template in templates.items():
        spec = template["template"]["spec"]
        assert set(spec["containers"][0]["resources"]["requests"]) == {"cpu", "memory"}
        assert spec["nodeSelector"][labels.REQUEST] == name
    assert cluster.run_round(at(1)).empty


def test_a_buffer_shrinks_once_the_gpus_of_its_node_are_announced() -> None:
    cluster = a_cluster(1, provisioner="capacity-buffer")
    found = cluster.run_round(at(0)).creations
    (name,) = (each.key.name for each in found if each.manifest["kind"] == "CapacityBuffer")
    cluster.objects.append(a_node_of_amd(name, gpus=0))
    early = cluster.run_round(at(31))
    assert not (early.creations or early.updates or early.deletions)
    cluster.objects[-1] = a_node_of_amd(name)
    ready = cluster.run_round(at(40))
    assert not ready.creations
    assert [each.manifest["spec"]["replicas"] for each in ready.updates] == [0]


def headroom_of(*objects: object, name: str = TYPE, gpus: int = 8) -> tuple[list[dict[str, Any]], Plan]:
    """The templates of the nodes that are kept, and the plan; nothing of it changes in the next round."""
    headroom = {"name": "warm", "nodePool": "gpu", "instanceType": name, "gpus": gpus, "nodes": 1}
    environment = demand_environment(provisioner="capacity-buffer", headroom=[headroom])
    cluster = Cluster(*objects, environment=environment)
    found = cluster.run_round(at(0))
    assert cluster.run_round(at(1)).empty
    made = [each.manifest["template"]["spec"] for each in found.creations if each.manifest["kind"] == "PodTemplate"]
    return made, found


@pytest.mark.parametrize("known", [PROFILE, a_node_of_amd("some")])
def test_no_headroom_is_kept_of_gpus_that_karpenter_does_not_count(known: object) -> None:
    """A CapacityBuffer without GPUs would not be filled again while pods use them, and with them no node would come."""
    made, found = headroom_of(pool(), known)
    assert not (made or found.creations)
    (warning,) = found.warnings
    assert "headroom warm" in warning
    assert f"count {AMD}" in warning
    assert headroom_of(pool())[0]


@pytest.mark.parametrize(
    ("group", "name", "resource", "gpus"),
    [
        (AWS, "g4ad.16xlarge", AMD, 4),
        (AZURE, "Standard_ND96isr_MI300X_v5", AMD, 8),
        (AZURE, "Standard_NG32ads_V620_v1", AMD, None),
        ("example.com", "g4ad.16xlarge", AMD, None),
        (AWS, "p5.48xlarge", labels.GPU_RESOURCE, 8),
    ],
)
def test_headroom_requests_the_gpus_that_karpenter_counts(
    group: str, name: str, resource: str, gpus: int | None
) -> None:
    """The catalog says what GPUs they are."""
    made, _ = headroom_of(a_node_pool("gpu", [name], group=group), name=name, gpus=gpus or 1)
    asked = [spec["containers"][0]["resources"]["limits"] for spec in made]
    assert asked == ([] if gpus is None else [{resource: str(gpus), "cpu": "100m"}])
    assert all(labels.REQUEST not in spec["nodeSelector"] for spec in made)


def test_headroom_requests_gpus_that_a_node_overlay_lists() -> None:
    intel = "gpu.intel.com/xe"
    overlay = NodeOverlay.read({"metadata": {"name": "max"}, "spec": {"capacity": {intel: "8"}}})
    profile = a_node_profile("gpu", TYPE, allocatable={intel: "8"})
    assert not headroom_of(pool(), profile)[0]
    (spec,) = headroom_of(pool(), profile, overlay)[0]
    assert spec["containers"][0]["resources"]["requests"][intel] == "8"
