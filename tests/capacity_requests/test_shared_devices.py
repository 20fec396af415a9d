"""Trigger pods for devices that are parts of GPUs: one node each, and no request for whole GPUs that the node will not
announce."""

from typing import Any

import pytest

from plimsoll import labels
from plimsoll.model import SignalReason
from plimsoll.model.api import Environment
from plimsoll.model.cluster import Node, Pod
from plimsoll.model.karpenter import NodePool
from plimsoll.model.meta import Placement
from plimsoll.plan.requests import NodeRequest
from tests.capacity_requests.cluster import (
    TYPE,
    Cluster,
    at,
    claim,
    demand_environment,
    gated_pod,
    node,
    pool,
    share_pod,
)

RESOURCE = "nvidia.com/mig-1g.5gb"


def an_open_pool() -> NodePool:
    plain = pool()
    spec = plain.template_spec
    spec["requirements"].append({"key": labels.REQUEST, "operator": "Exists"})
    return plain


def sharing() -> Environment:
    return demand_environment(sharedDevices=[{"nodePool": "gpu", "resource": RESOURCE, "perGpu": 7}])


def slices(count: int, **more: Any) -> list[Pod]:
    found = []
    for number in range(count):
        pod = share_pod(f"slice-{number:02}", schedulerName="default-scheduler", **more)
        resources = {"requests": {"cpu": "1"}, "limits": {RESOURCE: "1"}}
        found.append(
            pod.model_copy(update={"annotations": {}, "containers": ({"name": "main", "resources": resources},)})
        )
    return found


def a_partitioned_node(name: str, trigger: str, seconds: int = 30) -> Node:
    """A node as the device plugin announces it."""
    plain = node(name, at(seconds), gpus=0)
    return plain.model_copy(
        update={
            "labels": {**plain.labels, labels.REQUEST: trigger},
            "allocatable": {**plain.allocatable, RESOURCE: "56", "nvidia.com/gpu": "0"},
        }
    )


def replicas(count: int, first: int = 0) -> list[Pod]:
    """Pods that the capacity gate holds, for replicas that are named as whole GPUs are."""
    found = []
    for number in range(first, first + count):
        pod = gated_pod(f"replica-{number:02}")
        resources = {"requests": {"cpu": "1"}, "limits": {labels.GPU_RESOURCE: "1"}}
        changes = {"annotations": {}, "containers": ({"name": "main", "resources": resources},)}
        placement = Placement(node_selector=((labels.NODEPOOL, "gpu"),))
        found.append(pod.model_copy(update={**changes, "placement": placement}))
    return found


def test_each_trigger_pod_selects_its_own_value_of_the_open_label() -> None:
    cluster = Cluster(an_open_pool(), *slices(60), environment=sharing())
    assert len(cluster.run_round(at(0)).creations) == 2
    for trigger in cluster.requested():
        spec, name = trigger["spec"], trigger["metadata"]["name"]
        assert spec["nodeSelector"] == {labels.INSTANCE_TYPE: TYPE, labels.NODEPOOL: "gpu", labels.REQUEST: name}
        (container,) = spec["containers"]
        assert set(container["resources"]["requests"]) == {"cpu", "memory"}
        request = NodeRequest.from_annotations(trigger["metadata"]["annotations"])
        assert request is not None
        assert (request.gpus, request.resource) == (8, RESOURCE)
    assert cluster.run_round(at(1)).empty


@pytest.mark.parametrize("bound", [False, True])
def test_a_node_serves_the_trigger_pod_of_its_label_even_if_pods_run_there(bound: bool) -> None:
    """The scheduler may be faster than the controller."""
    cluster = Cluster(an_open_pool(), *slices(60), environment=sharing())
    cluster.run_round(at(0))
    first, second = (each["metadata"]["name"] for each in cluster.requested())
    cluster.objects.append(a_partitioned_node("node-b", second))
    if bound:
        cluster.objects = [
            each.model_copy(update={"node_name": "node-b", "conditions": (), "phase": "Running"})
            if isinstance(each, Pod) and each.name < "slice-30"
            else each
            for each in cluster.objects
        ]
    plan = cluster.run_round(at(31))
    assert not plan.creations
    assert not plan.deletions
    assert [(each.key.name, each.reason) for each in plan.signals] == [(second, SignalReason.CAPACITY_READY)]
    assert {each["metadata"]["name"] for each in cluster.requested()} == {first, second}


def test_a_node_of_another_request_serves_no_trigger_pod() -> None:
    cluster = Cluster(an_open_pool(), *slices(1), environment=sharing())
    cluster.run_round(at(0))
    full = a_partitioned_node("other", "somebody-elses")
    cluster.objects.append(full.model_copy(update={"allocatable": {**full.allocatable, RESOURCE: "0"}}))
    plan = cluster.run_round(at(31))
    assert plan.empty
    assert not plan.signals


@pytest.mark.parametrize("registered", [True, False])
def test_a_trigger_pod_has_no_name_that_an_existing_node_has_in_its_label(registered: bool) -> None:
    """It would select that node, and Karpenter would create none."""
    full = a_partitioned_node("full", "somebody-elses")
    full = full.model_copy(update={"allocatable": {**full.allocatable, RESOURCE: "0"}})
    objects = (an_open_pool(), full, *slices(1))

    def requested(*more: Any) -> list[str]:
        cluster = Cluster(*objects, *more, environment=sharing())
        cluster.run_round(at(60))
        return [each["metadata"]["name"] for each in cluster.requested()]

    (first,) = requested()
    plain = full if registered else claim("gpu-a", at(5))
    (second,) = requested(plain.model_copy(update={"name": "a", "labels": {**plain.labels, labels.REQUEST: first}}))
    assert second != first


def test_a_node_claim_without_a_request_has_no_free_devices() -> None:
    """Only the request says which devices its node will announce."""
    cluster = Cluster(an_open_pool(), *slices(1), claim("gpu-x", at(5)), environment=sharing())
    assert len(cluster.run_round(at(6)).creations) == 1


def test_a_node_without_its_shared_devices_is_late() -> None:
    """Whole GPUs do not count, because the node never announces them."""
    cluster = Cluster(an_open_pool(), *slices(1), environment=sharing())
    cluster.run_round(at(0))
    (name,) = (each["metadata"]["name"] for each in cluster.requested())
    made = claim("gpu-x", at(5), nodeName="node-x", conditions=[{"type": "Ready", "status": "True"}])
    cluster.objects += [made, a_partitioned_node("node-x", name)]
    cluster.run_round(at(31))
    (stage,) = cluster.status().node_claims
    assert stage.stage == "Ready"


def test_gates_of_pods_with_replicas_are_removed_once_their_node_is_ready() -> None:
    """Although Karpenter has created no NodeClaim for another trigger pod yet, which selects a node of its own."""
    environment = demand_environment(sharedDevices=[{"nodePool": "gpu", "resource": labels.GPU_RESOURCE, "perGpu": 2}])
    cluster = Cluster(an_open_pool(), *replicas(16), environment=environment)
    cluster.run_round(at(0))
    (name,) = (each["metadata"]["name"] for each in cluster.requested())
    cluster.objects += replicas(16, first=16)
    assert len(cluster.run_round(at(1)).creations) == 1
    plain = node("node-a", at(4), gpus=16)
    ready = plain.model_copy(update={"labels": {**plain.labels, labels.REQUEST: name}})
    cluster.objects += [claim("gpu-a", at(2), nodeName="node-a"), ready]
    plan = cluster.run_round(at(5))
    assert [(each.key.name, each.reason) for each in plan.signals] == [(name, SignalReason.CAPACITY_READY)]
    assert len(plan.gate_removals) == 16
