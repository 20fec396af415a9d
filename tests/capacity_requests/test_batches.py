"""CapacityBuffers and ProvisioningRequests: one object for a group of equal nodes."""

from datetime import datetime
from typing import Any

import orjson
import pytest

from plimsoll import labels
from plimsoll.model.cluster import Node, Pod
from plimsoll.model.karpenter import NodeClaim
from plimsoll.model.meta import Condition, Taint
from tests.builders import a_node_pool, an_environment
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
    text,
)

HEADROOM = {"name": "warm", "nodePool": "gpu", "instanceType": TYPE, "gpus": 8, "nodes": 2}


def cluster(provisioner: str = "capacity-buffer", count: int = 33, **demand: Any) -> Cluster:
    pods = [share_pod(f"share-{number:03}") for number in range(count)]
    return Cluster(pool(), *pods, environment=demand_environment(provisioner, **demand))


def only(held: Cluster, kind: str) -> dict[str, Any]:
    (found,) = [manifest for (of, _), manifest in held.requests.items() if of == kind]
    return found


def ready_since(name: str, time: datetime) -> Node:
    ready = Condition(type="Ready", status="True", last_transition_time=text(time))
    return node(name, at(4)).model_copy(update={"conditions": (ready,)})


def test_equal_nodes_are_one_buffer() -> None:
    held = cluster()
    held.run_round(at(0))
    buffer, template = only(held, "CapacityBuffer"), only(held, "PodTemplate")
    assert buffer["spec"]["replicas"] == 3
    assert buffer["spec"]["podTemplateRef"]["name"] == template["metadata"]["name"]
    spec = template["template"]["spec"]
    assert spec["nodeSelector"] == {labels.INSTANCE_TYPE: TYPE, labels.NODEPOOL: "gpu"}
    requests = spec["containers"][0]["resources"]["requests"]
    fullest = int(requests["cpu"].removesuffix("m")) // 1000
    assert 11 <= fullest <= 16, "33 halves on three nodes of 8 GPUs"
    assert requests == {"nvidia.com/gpu": "8", "cpu": f"{fullest}000m", "memory": f"{fullest * 1024}Mi"}
    assert held.run_round(at(1)).empty
    assert held.phase() == "Scheduled"


def test_a_buffer_shrinks_as_its_nodes_register_and_is_deleted_with_the_last_pod() -> None:
    held = cluster()
    held.run_round(at(0))
    held.objects.append(node("n1", at(30)))
    (update,) = held.run_round(at(31)).updates
    assert update.manifest["spec"]["replicas"] == 2
    assert orjson.loads(update.manifest["metadata"]["annotations"]["plimsoll.dev/registered-nodes"]) == ["n1"]
    assert held.run_round(at(32)).empty, "a restart sees which node was counted"
    noted = only(held, "CapacityBuffer")["metadata"]["annotations"]
    noted["plimsoll.dev/came"] = noted.pop("plimsoll.dev/registered-nodes")
    assert held.run_round(at(32)).empty, "as noted by the previous version"
    held.objects += [node("n2", at(33)), node("n3", at(33))]
    held.run_round(at(34))
    assert only(held, "CapacityBuffer")["spec"]["replicas"] == 0
    assert held.phase() == "NodeReady"
    held.remove(Pod)
    plan = held.run_round(at(35))
    assert sorted(deletion.key.kind for deletion in plan.deletions) == ["CapacityBuffer", "PodTemplate"]


def test_a_registered_node_is_assigned_before_it_reports_ready() -> None:
    """Otherwise other demand would be planned onto it, and the oldest buffer would no longer be needed."""
    held = cluster(count=16)
    held.run_round(at(0))
    held.objects.append(share_pod("share-016"))
    held.run_round(at(2))
    joined = node("n1", at(30)).model_copy(update={"conditions": None})
    taint = Taint(key="karpenter.sh/unregistered", effect="NoExecute")
    held.objects.append(joined.model_copy(update={"taints": (taint,)}))
    assert held.run_round(at(31)).empty, "Karpenter has not taken it up"
    held.objects[-1] = joined
    plan = held.run_round(at(32))
    assert (len(plan.updates), plan.deletions, plan.creations) == (1, (), ())


def test_a_buffer_does_not_shrink_while_karpenter_would_count_its_idle_node_for_another_replica() -> None:
    """Karpenter simulates virtual pods on idle nodes, so a replica without a NodeClaim would never get one."""
    pods = [gated_pod(f"share-{number:03}") for number in range(33)]
    held = Cluster(pool(), *pods, environment=demand_environment("capacity-buffer"))
    held.run_round(at(0))
    held.objects += [claim("gpu-1", at(2), nodeName="n1"), node("n1", at(4))]
    plan = held.run_round(at(5))
    assert (plan.updates, plan.gate_removals, plan.next_deadline) == ((), (), at(30))
    held.objects += [claim(f"gpu-{number}", at(6), nodeName=f"n{number}") for number in (2, 3)]
    plan = held.run_round(at(7))
    assert [update.manifest["spec"]["replicas"] for update in plan.updates] == [2]
    assert plan.gate_removals
    held.objects.append(node("n2", at(8)))
    assert [update.manifest["spec"]["replicas"] for update in held.run_round(at(9)).updates] == [1]


def test_nodes_of_several_buffers_of_a_node_pool_are_released_together() -> None:
    """A pod released for the first node may be bound to the second one, whose buffer would then be filled again."""
    pods = [gated_pod(f"share-{number:03}") for number in range(33)]
    held = Cluster(pool(), *pods, environment=demand_environment("capacity-buffer"))
    held.run_round(at(0))
    held.objects += [claim(f"gpu-{number}", at(2), nodeName=f"n{number}") for number in (1, 2, 3)]
    held.objects.append(ready_since("n1", at(70)))
    plan = held.run_round(at(71))
    assert (plan.updates, plan.gate_removals, plan.next_deadline) == ((), (), at(100))
    waiting = list(held.objects)
    held.objects += [ready_since("n2", at(72)), ready_since("n3", at(73))]
    plan = held.plan(at(74))
    assert [update.manifest["spec"]["replicas"] for update in plan.updates] == [0]
    assert len(plan.gate_removals) == 33
    held.objects = waiting
    plan = held.run_round(at(101))
    assert [update.manifest["spec"]["replicas"] for update in plan.updates] == [2], "not for ever"
    assert plan.gate_removals


def test_a_reserved_node_is_not_noted_beside_one_that_registers_in_the_same_round() -> None:
    """The buffer shrinks by the node with a pod alone. The idle one is still expected to register."""
    pods = [gated_pod(f"share-{number:03}") for number in range(33)]
    held = Cluster(pool(), *pods, environment=demand_environment("capacity-buffer"))
    held.run_round(at(0))
    taker = share_pod("taker", "0.1", unschedulable=False)
    taker = taker.model_copy(update={"annotations": {labels.SELECTED_NODE: f"n2/{taker.uid}", **taker.annotations}})
    held.objects += [claim(f"gpu-{number}", at(2), nodeName=f"n{number}") for number in (1, 2)]
    held.objects += [node("n1", at(4)), node("n2", at(4)), taker]
    [update] = held.run_round(at(5)).updates
    assert orjson.loads(update.manifest["metadata"]["annotations"]["plimsoll.dev/registered-nodes"]) == ["n2"]
    assert update.manifest["spec"]["replicas"] == 2


def test_a_buffer_shrinks_with_its_demand() -> None:
    held = cluster()
    held.run_round(at(0))
    held.objects = [each for each in held.objects if not isinstance(each, Pod) or each.name < "share-010"]
    held.run_round(at(1))
    assert only(held, "CapacityBuffer")["spec"]["replicas"] == 1


def test_headroom_exists_only_if_it_is_declared() -> None:
    held = cluster(count=0, headroom=[HEADROOM])
    (template, buffer) = sorted(held.run_round(at(0)).creations, key=lambda each: -len(each.key.kind))[::-1]
    assert {buffer.key.kind, template.key.kind} == {"CapacityBuffer", "PodTemplate"}
    assert only(held, "CapacityBuffer")["spec"]["replicas"] == 2
    assert held.run_round(at(1)).empty
    held.objects.append(node("n1", at(30)))
    assert held.run_round(at(31)).empty, "it is filled again when somebody takes it"
    held.environment = demand_environment("capacity-buffer", headroom=[{**HEADROOM, "nodes": 3}])
    held.run_round(at(32))
    assert only(held, "CapacityBuffer")["spec"]["replicas"] == 3
    held.environment = demand_environment("capacity-buffer")
    assert len(held.run_round(at(33)).deletions) == 2


@pytest.mark.parametrize("provisioner", ["capacity-buffer", "provisioning-request"])
@pytest.mark.parametrize("owner_gone", [False, True])
def test_a_deleted_pod_template_is_created_again(provisioner: str, owner_gone: bool) -> None:
    """It tolerates what the pods tolerate that the nodes are for now."""
    taint = {"key": "sku", "value": "gpu", "effect": "NoSchedule"}
    tolerations = [{"key": "sku", "operator": "Exists"}]
    own = [share_pod(f"share-{number:03}", tolerations=tolerations) for number in range(3)]
    later = share_pod("later", tolerations=[*tolerations, {"key": "other", "operator": "Exists"}])
    held = Cluster(a_node_pool("gpu", [TYPE], taints=[taint]), *own, environment=demand_environment(provisioner))
    held.run_round(at(0))
    held.objects.append(later)
    assert held.run_round(at(1)).empty
    template = only(held, "PodTemplate")
    if owner_gone:
        held.objects = [each for each in held.objects if each not in own]
    del held.requests["PodTemplate", template["metadata"]["name"]]
    assert [each.key.kind for each in held.run_round(at(2)).creations] == ["PodTemplate"]
    again = only(held, "PodTemplate")
    assert again["metadata"]["name"] == template["metadata"]["name"]
    assert again["template"]["spec"]["containers"] == template["template"]["spec"]["containers"]
    assert tolerations[0] in again["template"]["spec"]["tolerations"]
    assert held.run_round(at(3)).empty


def test_a_deleted_pod_template_of_headroom_is_created_again() -> None:
    held = cluster(count=0, headroom=[HEADROOM])
    held.run_round(at(0))
    template = only(held, "PodTemplate")
    del held.requests["PodTemplate", template["metadata"]["name"]]
    plan = held.run_round(at(1))
    assert ([each.key.kind for each in plan.creations], plan.updates, plan.deletions) == (["PodTemplate"], (), ())
    assert only(held, "PodTemplate")["template"] == template["template"]
    assert held.run_round(at(2)).empty


def kept_nodes(held: Cluster, seconds: float) -> tuple[int, tuple[str, ...]]:
    """Replicas of the headroom, and the warnings of the round."""
    plan = held.run_round(at(seconds))
    (buffer,) = (each for each in held.requested("CapacityBuffer") if labels.HEADROOM in each["metadata"]["labels"])
    return buffer["spec"]["replicas"], plan.warnings


def limited(**limits: int) -> Cluster:
    demand = {"provisioner": "capacity-buffer", "headroom": [{**HEADROOM, "nodes": 3}]}
    return Cluster(pool(), environment=an_environment(demand=demand, limits=limits))


@pytest.mark.parametrize("limits", [{"gpus": 20}, {"nodes": 2}])
def test_headroom_stays_within_the_limits(limits: dict[str, int]) -> None:
    held = limited(**limits)
    replicas, (warning,) = kept_nodes(held, 0)
    assert replicas == 2
    assert all(text in warning for text in ("headroom warm: 2 of 3", f"limits.{next(iter(limits))}"))


def test_the_nodes_of_headroom_count_once() -> None:
    held = limited(gpus=16)
    kept_nodes(held, 0)
    held.objects.append(claim("gpu-aaaaa", at(10)))
    assert kept_nodes(held, 11)[0] == 2
    held.remove(NodeClaim)
    held.objects += [claim("gpu-aaaaa", at(10), nodeName="n1"), node("n1", at(30))]
    assert kept_nodes(held, 31)[0] == 2
    user: dict[str, Any] = {
        "nodeName": "n1",
        "containers": [{"name": "a", "resources": {"limits": {"nvidia.com/gpu": "8"}}}],
    }
    held.objects.append(share_pod("user", unschedulable=False, **user))
    assert kept_nodes(held, 32)[0] == 1


def test_headroom_leaves_the_room_that_demand_requests() -> None:
    held = limited(gpus=16)
    held.objects += [share_pod(f"share-{number}", "0.9") for number in range(8)]
    assert kept_nodes(held, 0)[0] == 1
    assert kept_nodes(held, 1)[0] == 1
    held.objects.append(claim("gpu-aaaaa", at(10)))
    assert kept_nodes(held, 11)[0] == 1
    held.remove(NodeClaim)
    held.objects += [claim("gpu-aaaaa", at(10), nodeName="n1"), node("n1", at(30))]
    assert kept_nodes(held, 31)[0] == 1


def test_headroom_tolerates_the_taints_of_its_node_pool() -> None:
    held = cluster(count=0, headroom=[HEADROOM])
    held.run_round(at(0))
    held.objects = [a_node_pool("gpu", [TYPE], taints=[{"key": "sku", "value": "gpu", "effect": "NoSchedule"}])]
    assert len(held.run_round(at(1)).deletions) == 2, "it is created again where the taints changed"
    held.run_round(at(2))
    tolerations = only(held, "PodTemplate")["template"]["spec"]["tolerations"]
    assert {"key": "sku", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"} in tolerations
    assert held.run_round(at(3)).empty


def test_headroom_of_a_node_pool_that_does_not_exist() -> None:
    held = cluster(count=0, headroom=[{**HEADROOM, "nodePool": "gone"}])
    (warning,) = held.run_round(at(0)).warnings
    assert "there is no NodePool gone" in warning


def test_a_provisioning_request_requests_all_nodes_at_once() -> None:
    held = cluster("provisioning-request")
    held.run_round(at(0))
    request = only(held, "ProvisioningRequest")
    (pods,) = request["spec"]["podSets"]
    assert pods["count"] == 3
    assert pods["podTemplateRef"]["name"] == only(held, "PodTemplate")["metadata"]["name"]
    held.objects.append(node("n1", at(30)))
    held.run_round(at(31))
    assert only(held, "ProvisioningRequest")["spec"] == request["spec"], "its spec can never change"
    held.remove(Pod)
    assert len(held.run_round(at(32)).deletions) == 2


@pytest.mark.parametrize("provisioner", ["capacity-buffer", "provisioning-request"])
def test_an_expired_request_is_replaced_by_another_object(provisioner: str) -> None:
    held = cluster(provisioner, deadlineSeconds=60, retrySeconds=10)
    held.run_round(at(0))
    assert len(held.run_round(at(61)).deletions) == 2
    held.run_round(at(72))
    assert {manifest["metadata"]["annotations"]["plimsoll.dev/attempt"] for manifest in held.requests.values()} == {"2"}
