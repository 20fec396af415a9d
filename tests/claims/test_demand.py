"""Capacity for pods that claim GPUs: what they need, what nodes offer, and the nodes that are requested."""

from collections import Counter
from copy import deepcopy
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from plimsoll.cluster.pools import PoolProfiles
from plimsoll.model import Plan
from plimsoll.plan import plan as round_of
from plimsoll.plan import validate
from plimsoll.plan.classes import RefusalReason
from plimsoll.plan.demand import Demand, DemandPlan, DemandPlanner
from plimsoll.plan.requests import NodeRequest, any_registered
from plimsoll.plan.view import ClusterView
from tests.claims.objects import (
    DRIVER,
    L4,
    Manifest,
    a_claim,
    a_class,
    a_device,
    a_node,
    a_pod,
    a_slice,
    a_template,
    asked,
    gpus,
    snapshot_of,
)

FOUR, ONE = "g6.12xlarge", "g6.xlarge"
"""Instance types of the catalog with 4 and 1 L4."""
MEMORY = f"device.capacity['{DRIVER}'].memory"


def a_node_pool(name: str = "gpu", types: tuple[str, ...] = (FOUR,), *, open_request: bool = True) -> Manifest:
    requirements = [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": list(types)}]
    requirements += [{"key": "plimsoll.dev/request", "operator": "Exists"}] if open_request else []
    node_class = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    template = {"spec": {"requirements": requirements, "nodeClassRef": node_class}}
    return {
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}, "spec": {"template": template},
    }  # fmt: skip


def a_profile(instance_type: str = FOUR, pool: str = "gpu", *, learned: bool = False, **devices: Any) -> Manifest:
    found = {"driver": DRIVER, **devices}
    status = {"learned": {"node": "gone", "claimDevices": found}} if learned else {}
    declared = {} if learned else {"claimDevices": found}
    return {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "NodeProfile",
        "metadata": {"name": f"{pool}.{instance_type}".lower().replace("_", "-")},
        "spec": {"nodePool": pool, "instanceType": instance_type, **declared},
        "status": status,
    }


def an_environment(**demand: Any) -> Manifest:
    return {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "Environment",
        "metadata": {"name": "dev"},
        "spec": {"demand": {"provisioner": "trigger-pod", **demand}},
    }


@pytest.fixture
def plan(tmp_path: Path) -> Any:
    """Plans for the manifests, with an Environment and a class."""

    def planned(*manifests: Manifest, **demand: Any) -> DemandPlan:
        objects = [an_environment(**demand), *manifests]
        if not any(each["kind"] == "DeviceClass" for each in manifests):
            objects.append(a_class())
        return DemandPlanner().plan(snapshot_of(tmp_path, *objects))

    return planned


def pods(number: int, template: str = "one", **fields: Any) -> list[Manifest]:
    return [a_pod(f"pod-{each:03}", template, **fields) for each in range(number)]


def only(found: DemandPlan) -> Demand:
    (demand,) = found.demands
    return demand


def refusals(found: DemandPlan) -> set[str]:
    return {str(why) for demand in found.demands for why in demand.refused.values()}


POOL = (a_node_pool(), a_profile())


@pytest.mark.parametrize(
    ("number", "each", "nodes"), [(1, 1, 1), (4, 1, 1), (5, 1, 2), (2, 2, 1), (3, 2, 2), (2, 3, 2)]
)
def test_nodes_are_requested_for_whole_devices(plan: Any, number: int, each: int, nodes: int) -> None:
    found = plan(*POOL, a_template("one", asked(each)), *pods(number))
    assert [node.instance_type for node in found.nodes] == [FOUR] * nodes
    assert {node.resource for node in found.nodes} == {DRIVER}
    assert len(only(found).on_new) == number
    assert found.least_gpus == 4 * nodes


def test_free_devices_of_nodes_are_used_first(plan: Any) -> None:
    node, slices = a_node("n1", instance_type=FOUR), a_slice("n1", gpus(4))
    used = a_claim("used", asked(2), devices=[("n1", "gpu-0"), ("n1", "gpu-1")], pods=["other"])
    found = plan(*POOL, node, slices, used, a_template("one", asked(1)), *pods(3))
    assert [len(each) for each in only(found).on_nodes.values()] == [2]
    assert len(found.nodes) == 1


def test_what_was_learned_of_devices_outlives_the_last_node(plan: Any) -> None:
    learned = a_profile(
        learned=True, count=4, strings=L4,
        capacity={"memory": "23034Mi"},
    )  # fmt: skip
    wanted = f"device.attributes['{DRIVER}'].productName == 'NVIDIA L4'"
    found = plan(a_node_pool(), learned, a_template("one", asked(1, wanted)), *pods(1))
    assert [node.instance_type for node in found.nodes] == [FOUR]


def test_the_catalog_completes_what_is_declared(plan: Any) -> None:
    wanted = (
        f"{MEMORY}.isGreaterThan(quantity('20Gi'))",
        f"device.attributes['{DRIVER}'].architecture == 'Ada Lovelace'",
        f"device.attributes['{DRIVER}'].cudaComputeCapability.isGreaterThan(semver('8.0.0'))",
    )
    found = plan(*POOL, a_template("one", asked(1, *wanted)), *pods(1))
    assert len(found.nodes) == 1


def test_a_selector_that_no_device_meets_is_told(plan: Any) -> None:
    found = plan(*POOL, a_template("one", asked(1, f"{MEMORY}.isGreaterThan(quantity('40Gi'))")), *pods(1))
    assert not found.nodes
    (refused,) = only(found).refused.values()
    assert refused.reason is RefusalReason.CLAIM
    assert "40Gi" in str(refused)


def test_an_attribute_that_the_profile_lacks_is_named(plan: Any) -> None:
    wanted = f"device.attributes['{DRIVER}'].productName == 'NVIDIA L4'"
    (why,) = refusals(plan(*POOL, a_template("one", asked(1, wanted)), *pods(1)))
    assert "productName" in why


@pytest.mark.parametrize(
    ("request_", "fields", "feature"),
    [
        (asked(1, adminAccess=True), {}, "adminAccess"),
        (asked(1, tolerations=[{"operator": "Exists"}]), {}, "tolerations"),
        (asked(2), {"constraints": [{"distinctAttribute": f"{DRIVER}/uuid"}]}, "distinctAttribute gpu.nvidia.com/uuid"),
        (asked(2), {"constraints": [{"distinctAttribute": f"{DRIVER}/type", "requests": ["r1"]}]}, "some of"),
        (asked(2), {"constraints": [{"matchAttribute": "resource.kubernetes.io/pcieRoot"}]}, "matchAttribute"),
        (asked(1, f"device.attributes['{DRIVER}'].uuid == 'GPU-1'"), {}, "attribute uuid"),
        (asked(1, f"device.attributes['{DRIVER}'].type.find('g.u') == 'gpu'"), {}, "find"),
        ({"firstAvailable": [{"name": "two", **asked(2)}, {"name": "one", **asked(1)}]}, {}, "firstAvailable"),
    ],
)
def test_what_is_not_planned_is_told_by_name(
    plan: Any, request_: Manifest, fields: dict[str, Any], feature: str
) -> None:
    found = plan(*POOL, a_template("one", request_, **fields), *pods(1))
    assert not found.nodes
    (why,) = refusals(found)
    assert "ClaimNotPlanned" in why
    assert feature in why


def test_an_attribute_that_is_the_same_on_each_device_matches(plan: Any) -> None:
    same = [{"matchAttribute": f"{DRIVER}/architecture"}]
    assert len(plan(*POOL, a_template("one", asked(2), constraints=same), *pods(2)).nodes) == 1


@pytest.mark.parametrize("constraint", ["distinctAttribute", "matchAttribute"])
@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("attribute", ["uuid", "architecture"])
def test_attributes_are_distinct_or_the_same_on_the_devices_of_a_claim(
    plan: Any, constraint: str, number: int, attribute: str
) -> None:
    """Also from zero, as a driver publishes a UUID of each device."""
    rule = [{constraint: f"{DRIVER}/{attribute}"}]
    template = a_template("one", asked(number), constraints=rule)
    node = a_node("n1", instance_type=FOUR), a_slice("n1", gpus(4))
    met = number == 1 or (attribute == "uuid") is (constraint == "distinctAttribute")
    found = plan(*node, template, *pods(2))
    assert sum(map(len, only(found).on_nodes.values())) == (2 if met else 0)
    profile = a_profile(learned=True, count=4, strings=L4, distinctAttributes=["uuid"])
    found = plan(a_node_pool(), profile, template, *pods(2))
    assert len(found.nodes) == met
    assert met or constraint in refusals(found).pop()


def test_the_devices_of_each_claim_are_distinct(plan: Any) -> None:
    """Two claims of a pod may have devices with the same attribute, and two requests of one claim may not."""
    rule = [{"distinctAttribute": f"{DRIVER}/architecture"}]
    node = a_node("n1", instance_type=FOUR), a_slice("n1", gpus(4))
    pod = a_pod("pod", "one")
    pod["spec"]["resourceClaims"].append({"name": "more", "resourceClaimTemplateName": "one"})
    assert only(plan(*node, a_template("one", asked(1), constraints=rule), pod)).on_nodes
    twice = a_template("one", asked(1), asked(1), constraints=rule)
    assert not only(plan(*node, twice, *pods(1))).on_nodes


def test_all_devices_are_all_of_a_node(plan: Any) -> None:
    node, slices = a_node("n1", instance_type=FOUR), a_slice("n1", gpus(4))
    used = a_claim("used", asked(1), devices=[("n1", "gpu-0")])
    everything = a_template("one", {"deviceClassName": DRIVER, "allocationMode": "All"})
    assert len(plan(*POOL, node, slices, used, everything, *pods(2)).nodes) == 2
    assert not plan(*POOL, node, slices, everything, *pods(1)).nodes


def test_the_first_alternative_that_devices_meet_counts(plan: Any) -> None:
    large = asked(1, f"{MEMORY}.isGreaterThan(quantity('40Gi'))")
    small = asked(1, f"{MEMORY}.isGreaterThan(quantity('10Gi'))")
    either = {"firstAvailable": [{"name": "large", **large}, {"name": "small", **small}]}
    assert len(plan(*POOL, a_template("one", either), *pods(5)).nodes) == 2


@pytest.mark.parametrize(
    ("first", "pods_on"),
    [
        ("Tesla T4", {"g4dn.12xlarge": 5}),  # two nodes, though one type may be cheaper
        ("NVIDIA L4", {FOUR: 4, "g4dn.12xlarge": 1}),  # the limit of the NodePool leaves one
        ("NVIDIA A100", {FOUR: 4, "g4dn.12xlarge": 1}),
    ],
)
def test_nodes_are_tried_in_the_order_of_the_alternatives(plan: Any, first: str, pods_on: dict[str, int]) -> None:
    """A pod takes the first alternative that can be had; another claim in the same plan has another order."""
    kinds = {FOUR: "NVIDIA L4", "g4dn.12xlarge": "Tesla T4"}
    pools = {name: a_node_pool(name[:4].strip("."), (name,)) for name in kinds}
    pools[FOUR]["spec"]["limits"] = {"cpu": "48"}
    profiles = [a_profile(name, name[:4].strip("."), strings={"productName": kinds[name]}) for name in kinds]
    order = [first, *(each for each in ("NVIDIA L4", "Tesla T4") if each != first)]
    several = [
        {"name": f"a{at}", **asked(1, f"device.attributes['{DRIVER}'].productName == '{each}'")}
        for at, each in enumerate(order)
    ]
    template = a_template("one", {"firstAvailable": several})
    found = plan(*pools.values(), *profiles, template, *pods(5))
    placed = Counter[str]()
    for node in found.nodes:
        placed[node.instance_type] += len(node.pods)
    assert placed == pods_on
    backwards = a_template("back", {"firstAvailable": several[::-1]})
    found = plan(*pools.values(), *profiles, template, backwards, *pods(1), a_pod("other", "back"))
    assert len(found.demands) == 2


def test_a_minimum_of_capacity_filters_whole_devices(plan: Any) -> None:
    def capacity(amount: str) -> Manifest:
        return asked(1, capacity={"requests": {"memory": amount}})

    assert plan(*POOL, a_template("one", capacity("20Gi")), *pods(1)).nodes
    (why,) = refusals(plan(*POOL, a_template("one", capacity("30Gi")), *pods(1)))
    assert "capacity memory of 30Gi" in why


def test_several_claims_of_a_pod_are_of_one_node(plan: Any) -> None:
    pod = a_pod("pod", "one")
    pod["spec"]["resourceClaims"].append({"name": "more", "resourceClaimTemplateName": "three"})
    found = plan(*POOL, a_template("one", asked(1)), a_template("three", asked(3)), pod, a_pod("second", "one"))
    assert len(found.nodes) == 2


def test_pods_that_share_a_claim_are_one_request_with_room_for_all(plan: Any) -> None:
    users = [a_pod(name, claim="shared", cpu="30") for name in ("a", "b")]
    found = plan(*POOL, a_claim("shared", asked(4)), *users)
    assert [node.cpu_milli for node in found.nodes] == []  # 60 CPUs are more than the 48 of the type
    users = [a_pod(name, claim="shared", cpu="20") for name in ("a", "b")]
    found = plan(*POOL, a_claim("shared", asked(4)), *users)
    assert [node.cpu_milli for node in found.nodes] == [40_000]
    (why,) = refusals(found)
    assert "shares the ResourceClaim shared with Pod a" in why


def test_a_pod_with_an_allocated_claim_can_only_run_there(plan: Any) -> None:
    claim = a_claim("mine", asked(1), devices=[("n1", "gpu-0")])
    node, slices = a_node("n1", instance_type=FOUR), a_slice("n1", gpus(4))
    found = plan(*POOL, node, slices, claim, a_pod("pod", claim="mine"))
    assert not found.nodes
    (why,) = refusals(found)
    assert "has devices already" in why


@pytest.mark.parametrize(
    ("manifests", "said"),
    [
        ([a_pod("pod", "none")], "ResourceClaimTemplate 'none'"),
        ([a_pod("pod", claim="none")], "ResourceClaim 'none'"),
        ([a_pod("pod", "one"), a_template("one", asked(1, of="none"))], "DeviceClass 'none'"),
        ([a_pod("pod", "one"), a_template("one", asked(1), namespace="other")], "in namespace 'team'"),
    ],
)
def test_objects_that_are_missing_are_named(plan: Any, manifests: list[Manifest], said: str) -> None:
    (why,) = only(plan(*POOL, *manifests)).refused.values()
    assert why.reason is RefusalReason.CLAIM, "not a request that cannot be read"
    assert said in str(why)


def test_claims_of_other_devices_are_no_demand_for_gpus(plan: Any) -> None:
    network = a_class("dra.net", "device.driver == 'dra.net'")
    assert not plan(*POOL, network, a_template("one", asked(1, of="dra.net")), *pods(1)).demands


def test_gpus_beside_devices_of_other_drivers_are_not_planned(plan: Any) -> None:
    network = a_class("dra.net", "device.driver == 'dra.net'")
    both = a_template("one", asked(1), asked(1, of="dra.net"))
    (why,) = refusals(plan(*POOL, network, a_class(), both, *pods(1)))
    assert "ClaimNotPlanned: GPUs beside devices of other drivers" in why


def test_nodes_of_a_device_plugin_serve_no_claims(plan: Any) -> None:
    (why,) = refusals(plan(a_node_pool(), a_template("one", asked(1)), *pods(1)))
    assert "no node that could serve it gets GPUs by claims" in why


def test_the_pool_must_let_each_request_have_its_own_node(plan: Any) -> None:
    found = plan(a_node_pool(open_request=False), a_profile(), a_template("one", asked(1)), *pods(1))
    assert not found.nodes
    assert any("plimsoll.dev/request" in warning for warning in only(found).warnings)


def test_a_provisioner_that_cannot_request_nodes_for_claims_says_so(plan: Any) -> None:
    found = plan(*POOL, a_template("one", asked(1)), *pods(1), provisioner="provisioning-request")
    assert not found.nodes
    (why,) = refusals(found)
    assert "ProvisioningRequest" in why


def round_at(second: int, folder: Path, *manifests: Manifest) -> Plan:
    """What is planned for CapacityBuffers."""
    environment = an_environment(provisioner="capacity-buffer")
    view = ClusterView(snapshot_of(folder, environment, a_class(), *POOL, *manifests))
    return round_of(view, validate(view), datetime(2026, 1, 1, 0, 0, second, tzinfo=UTC))


def test_a_capacity_buffer_requests_each_node_for_claims_without_them(tmp_path: Path) -> None:
    """Virtual pods of one buffer would share a node: they request no GPUs, and a label keeps them apart."""
    objects = (a_template("one", asked(4)), *pods(2))
    made = [deepcopy(each.manifest) for each in round_at(0, tmp_path, *objects).creations]
    templates = {each["metadata"]["name"]: each["template"]["spec"] for each in made if each["kind"] == "PodTemplate"}
    buffers = [each for each in made if each["kind"] == "CapacityBuffer"]
    assert [each["spec"]["replicas"] for each in buffers] == [1, 1]
    for name, spec in templates.items():
        (container,) = spec["containers"]
        assert set(container["resources"]["requests"]) == {"cpu", "memory"}
        assert "resourceClaims" not in spec
        assert spec["nodeSelector"]["plimsoll.dev/request"] == name
    assert {each["spec"]["podTemplateRef"]["name"] for each in buffers} == templates.keys()
    for each in made:
        each["metadata"] |= {
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "uid": f"{each['kind']}-{each['metadata']['name']}",
        }
    assert not round_at(1, tmp_path, *objects, *made).creations
    node = a_node("n1", instance_type=FOUR)
    node["metadata"]["creationTimestamp"] = "2026-01-01T00:00:02Z"
    node["metadata"]["labels"]["plimsoll.dev/request"] = buffers[0]["metadata"]["name"]
    assert round_at(3, tmp_path, *objects, *made, node).empty, "its devices are not published yet"
    registered = round_at(3, tmp_path, *objects, *made, node, a_slice("n1", gpus(4)))
    (update,) = registered.updates
    assert (update.key.name, update.manifest["spec"]["replicas"]) == (buffers[0]["metadata"]["name"], 0)
    assert not (registered.creations or registered.deletions)


@pytest.mark.parametrize("known", ["node", "profile"])
def test_no_headroom_is_kept_of_nodes_whose_gpus_are_claimed(tmp_path: Path, known: str) -> None:
    """A pod that stands for such a node could not request its GPUs."""
    headroom = {"name": "warm", "nodePool": "gpu", "instanceType": FOUR, "gpus": 4, "nodes": 1}
    environment = an_environment(provisioner="capacity-buffer", headroom=[headroom])
    node = [a_node("n1", instance_type=FOUR), a_slice("n1", gpus(4))]
    objects = node if known == "node" else [a_profile()]
    view = ClusterView(snapshot_of(tmp_path, environment, a_class(), a_node_pool(), *objects))
    found = round_of(view, validate(view), datetime(2026, 1, 1, tzinfo=UTC))
    assert not found.creations
    assert any("headroom warm" in warning and "claim" in warning for warning in found.warnings)


def test_whole_gpus_of_a_class_use_free_devices_as_before(plan: Any) -> None:
    """An ordinary pod and a pod with a claim compete for the same devices, if a DeviceClass serves `nvidia.com/gpu`."""
    pod = a_pod("whole")
    del pod["spec"]["resourceClaims"]
    pod["spec"]["priority"] = 10
    pod["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "4", "cpu": "1"}}
    node, slices = a_node("n1", instance_type=FOUR), a_slice("n1", gpus(4))
    objects = (*POOL, node, slices, a_template("one", asked(1)), *pods(1), pod)
    served = a_class(extended_resource="nvidia.com/gpu")
    assert len(plan(*objects, served).nodes) == 1
    assert not plan(*objects).nodes
    pod["spec"]["containers"][0]["resources"] = {"limits": {"amd.com/gpu": "4", "cpu": "1"}}
    assert not plan(*objects, served).nodes, "the class serves another resource"


def test_claims_may_be_observed_or_left_alone(plan: Any) -> None:
    objects = (*POOL, a_template("one", asked(1)), *pods(1))
    (why,) = refusals(plan(*objects, claims="observe"))
    assert "spec.demand.claims" in why
    assert not plan(*objects, claims="off").demands


def test_capacity_for_claims_stands_down_where_karpenter_plans_them(plan: Any) -> None:
    claim = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": "gpu-abc", "annotations": {"karpenter.sh/requested-dra-drivers": DRIVER}},
        "spec": {},
    }
    found = plan(*POOL, a_template("one", asked(1)), *pods(1), claim)
    assert not found.nodes
    (why,) = refusals(found)
    assert "NodeClaim gpu-abc" in why


def test_unlike_devices_of_a_node_are_no_supply(plan: Any) -> None:
    mixed = [*gpus(1), a_device("gpu-1", {**L4, "productName": "NVIDIA T4"})]
    node, slices = a_node("n1", instance_type=FOUR), a_slice("n1", mixed)
    assert len(plan(*POOL, node, slices, a_template("one", asked(1)), *pods(1)).nodes) <= 1


def test_requested_nodes_are_supply_and_ask_for_no_extended_resource(plan: Any, tmp_path: Path) -> None:
    objects = (*POOL, a_template("one", asked(1)), *pods(5))
    first = plan(*objects)
    requests = [NodeRequest.of(node) for node in first.nodes]
    assert {frozenset(each.requests("nvidia.com/gpu")) for each in requests} == {frozenset({"cpu", "memory"})}
    requested = [each.requested_node(f"request-{number}") for number, each in enumerate(requests)]
    snapshot = snapshot_of(tmp_path, an_environment(), a_class(), *objects)
    again = DemandPlanner().plan(snapshot, requested)
    assert not again.nodes
    assert sum(map(len, only(again).on_requested.values())) == 5


def test_the_trigger_pod_of_a_node_for_claims(tmp_path: Path) -> None:
    snapshot = snapshot_of(tmp_path, an_environment(), a_class(), *POOL, a_template("one", asked(4)), *pods(2))
    view = ClusterView(snapshot)
    created = round_of(view, validate(view), datetime(2026, 1, 1, tzinfo=UTC)).creations
    specs = [each.manifest["spec"] for each in created]
    assert [set(spec["containers"][0]["resources"]["requests"]) for spec in specs] == [{"cpu", "memory"}] * 2
    assert all("resourceClaims" not in spec for spec in specs)
    own = [each.manifest["metadata"]["name"] for each in created]
    assert [spec["nodeSelector"]["plimsoll.dev/request"] for spec in specs] == own


def test_a_node_has_registered_once_its_devices_are_published(tmp_path: Path) -> None:
    objects = [an_environment(), a_class(), *POOL, a_template("one", asked(4)), *pods(1)]
    view = ClusterView(snapshot_of(tmp_path, *objects))
    (made,) = round_of(view, validate(view), datetime(2026, 1, 1, tzinfo=UTC)).creations
    status = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}
    trigger = {**made.manifest, "status": status}
    trigger["metadata"] |= {"creationTimestamp": "2026-01-01T00:00:00Z", "uid": "trigger"}
    node = a_node("n1", instance_type=FOUR)
    node["metadata"] |= {"creationTimestamp": "2026-01-01T00:01:00Z"}
    node["metadata"]["labels"]["plimsoll.dev/request"] = trigger["metadata"]["name"]
    starting = snapshot_of(tmp_path, *objects, trigger, node)
    assert not any_registered(starting)
    view = ClusterView(starting)
    assert not round_of(view, validate(view), datetime(2026, 1, 1, 0, 1, tzinfo=UTC)).creations
    assert any_registered(snapshot_of(tmp_path, *objects, trigger, node, a_slice("n1", gpus(4))))


def test_an_error_on_a_free_device_ends_the_attempts_of_the_scheduler(plan: Any) -> None:
    """It evaluates the selector on all nodes that the pod may use, so that no other node would help."""
    wanted = f"device.attributes['{DRIVER}'].serviceTier == 'gold'"
    golden = gpus(1, {**L4, "serviceTier": "gold"})
    nodes = (a_node("plain", instance_type=FOUR), a_slice("plain", gpus(1)))
    also = (a_node("golden", instance_type=ONE), a_slice("golden", golden))
    template = a_template("one", asked(1, wanted))
    (why,) = refusals(plan(*nodes, *also, template, *pods(1)))
    assert "serviceTier" in why
    assert only(plan(*also, template, *pods(1))).on_nodes


VENDORS = {
    "gpu.amd.com": ("productName", "AMD_Instinct_MI300X_OAM", "AMD_Instinct_MI300X_OAM"),
    "gpu.intel.com": ("model", "Max 1100", "Max-1100"),
}
"""The attribute by which a driver names its product, and the name as attribute and as product."""


def test_a_profile_without_the_memory_of_its_gpus_is_told(tmp_path: Path) -> None:
    profile = a_profile("theirs", "theirs", count=4, strings={"productName": "NVIDIA L4"})
    found = PoolProfiles(snapshot_of(tmp_path, a_class(), a_node_pool("theirs", ("theirs",)), profile))
    assert not found.every
    assert any("capacity.memory in spec.claimDevices of NodeProfile theirs.theirs" in each for each in found.warnings)


@pytest.mark.parametrize("driver", VENDORS)
def test_gpus_of_other_vendors_are_demand_where_a_profile_declares_them(plan: Any, driver: str) -> None:
    """Their types are in no catalog: the profile says how many there are. Nodes of NVIDIA's GPUs serve none of them."""
    attribute, product, shown = VENDORS[driver]
    profile = a_profile("theirs", "theirs", count=4, strings={attribute: product}, capacity={"memory": "48Gi"})
    profile["spec"]["claimDevices"]["driver"] = driver
    profile["spec"]["allocatable"] = {"cpu": "64", "memory": "256Gi"}
    wanted = f"device.attributes['{driver}'].{attribute} == '{product}'"
    classes = (a_class(), a_class(driver, f"device.driver == '{driver}'"))
    template = a_template("one", asked(1, wanted, of=driver))
    theirs = (a_node_pool("theirs", ("theirs",)), profile)
    found = plan(*classes, *POOL, *theirs, template, *pods(5))
    assert [(node.node_pool, node.kind, node.gpus, node.resource) for node in found.nodes] == [
        ("theirs", shown, 4, driver)
    ] * 2
    alone = plan(*classes, *POOL, template, *pods(1))
    assert not alone.nodes
    assert {why.reason for why in only(alone).refused.values()} == {RefusalReason.CLAIM}
