"""Workspaces on nodes whose GPUs pods get by claims: they are validated on what is published."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from plimsoll.model import Reason
from plimsoll.plan import plan, validate
from tests.claims.objects import L4, Manifest, a_class, a_device, a_node, a_slice, gpus, snapshot_of
from tests.claims.test_demand import FOUR, a_node_pool, a_profile

SERVED = a_class(extended_resource="nvidia.com/gpu")
"""The class of NVIDIA's chart: pods may request whole GPUs as before."""


def a_workspace(**resource: Any) -> Manifest:
    container = {"name": "main", "image": "server", "resources": {"limits": {"nvidia.com/gpu": "4"}}}
    return {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "Workspace",
        "metadata": {"name": "chat", "namespace": "team", "uid": "uid-chat"},
        "spec": {
            "resource": {"labelSelector": {"matchLabels": {"pool": "claimed"}}, **resource},
            "inference": {"template": {"spec": {"containers": [container]}}},
        },
    }


def with_new_nodes(**spec: str) -> Manifest:
    """An Environment that has nodes provisioned."""
    return {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "Environment",
        "metadata": {"name": "dev"},
        "spec": {"nodeAutoProvisioning": "enabled", **spec},
    }


def nodes(*counts: int, attributes: dict[str, Any] | None = None) -> list[Manifest]:
    found = []
    for number, count in enumerate(counts):
        node = a_node(f"n{number}", instance_type=FOUR)
        node["metadata"]["labels"]["pool"] = "claimed"
        found += [node, a_slice(f"n{number}", gpus(count, attributes or L4))]
    return found


def test_existing_nodes_are_validated_on_their_slices(tmp_path: Path) -> None:
    snapshot = snapshot_of(tmp_path, SERVED, a_workspace(), *nodes(4, 4))
    (verdict,) = validate(snapshot)
    assert verdict.reason is Reason.ACCEPTED, verdict.message
    assert "4 x NVIDIA-L4" in verdict.message
    (made,) = plan(snapshot, (verdict,), datetime(2026, 1, 1, tzinfo=UTC)).creations
    (container,) = made.manifest["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": "4"}


@pytest.mark.parametrize(
    ("manifests", "reason", "said"),
    [
        ([SERVED, *nodes(4, 2)], Reason.NON_UNIFORM_NODES, "count"),
        ([a_class(), *nodes(4)], Reason.NO_USABLE_NODES, "extendedResourceName nvidia.com/gpu"),
        ([SERVED, *nodes(1)], Reason.NO_USABLE_NODES, "1 nvidia.com/gpu allocatable, 4 requested"),
    ],
)
def test_nodes_that_cannot_serve_are_refused(
    tmp_path: Path, manifests: list[Manifest], reason: Reason, said: str
) -> None:
    (verdict,) = validate(snapshot_of(tmp_path, a_workspace(), *manifests))
    assert verdict.reason is reason
    assert said in verdict.message


def test_node_claims_ask_for_no_extended_resource_there(tmp_path: Path) -> None:
    profile = a_profile(strings={"productName": "NVIDIA L4"})
    for objects, asked in (([profile], set()), ([], {"nvidia.com/gpu"})):
        snapshot = snapshot_of(
            tmp_path, with_new_nodes(), SERVED, a_node_pool(), a_workspace(instanceType=FOUR), *objects
        )
        created = plan(snapshot, validate(snapshot), datetime(2026, 1, 1, tzinfo=UTC)).creations
        (claim,) = [each.manifest for each in created if each.key.kind == "NodeClaim"]
        requests = claim["spec"].get("resources", {}).get("requests", {})
        assert {name for name in requests if "gpu" in name} == asked


def by_claim(template: Manifest | None = None, **resource: Any) -> Manifest:
    """A Workspace whose pods claim their GPUs."""
    made = a_workspace(devices="claim", **resource)
    container: Manifest = {"name": "main", "image": "server"}
    made["spec"]["inference"]["template"]["spec"] = template or {"containers": [container]}
    return made


def created(folder: Path, *manifests: Manifest) -> dict[str, Manifest]:
    """The objects that a Plan creates, by kind."""
    snapshot = snapshot_of(folder, *manifests)
    found = plan(snapshot, validate(snapshot), datetime(2026, 1, 1, tzinfo=UTC))
    return {each.key.kind: each.manifest for each in found.creations}


def test_pods_claim_the_gpus_of_their_node_by_a_template_beside_the_workload(tmp_path: Path) -> None:
    """No DeviceClass serves the extended resource there, and the pods request none."""
    made = created(tmp_path, a_class(), by_claim(), *nodes(4, 4))
    template = made["ResourceClaimTemplate"]
    assert template["metadata"]["namespace"] == "team"
    assert template["spec"]["spec"]["devices"]["requests"] == [
        {"name": "gpus", "exactly": {"deviceClassName": "gpu.nvidia.com", "allocationMode": "ExactCount", "count": 4}}
    ]
    spec = made["Deployment"]["spec"]["template"]["spec"]
    assert spec["resourceClaims"] == [{"name": "gpus", "resourceClaimTemplateName": template["metadata"]["name"]}]
    (container,) = spec["containers"]
    assert container["resources"] == {"claims": [{"name": "gpus"}]}


def test_the_container_that_names_the_claim_has_it(tmp_path: Path) -> None:
    helper, server = {"name": "helper", "image": "a"}, {"name": "main", "image": "b"}
    server["resources"] = {"claims": [{"name": "gpus"}]}  # type: ignore[assignment]
    made = created(tmp_path, a_class(), by_claim({"containers": [helper, server]}), *nodes(4))
    found = [each.get("resources") for each in made["Deployment"]["spec"]["template"]["spec"]["containers"]]
    assert found == [None, {"claims": [{"name": "gpus"}]}]


def test_a_template_follows_the_devices_of_the_nodes(tmp_path: Path) -> None:
    """Its spec cannot be changed: with other devices, there is another one, and the former is deleted."""
    objects = (a_class(), by_claim(), *nodes(4))
    first = created(tmp_path, *objects)
    former = first["ResourceClaimTemplate"]
    again = created(tmp_path, *objects, former, first["Deployment"])
    assert not again
    snapshot = snapshot_of(tmp_path, a_class(), by_claim(), *nodes(2), former, first["Deployment"])
    changed = plan(snapshot, validate(snapshot), datetime(2026, 1, 1, tzinfo=UTC))
    (new,) = [each.key.name for each in changed.creations]
    assert [each.key.name for each in changed.deletions] == [former["metadata"]["name"]] != [new]
    (update,) = changed.updates
    (named,) = update.manifest["spec"]["template"]["spec"]["resourceClaims"]
    assert named["resourceClaimTemplateName"] == new
    gone = snapshot_of(tmp_path, a_class(), *nodes(4), former, first["Deployment"])
    deleted = plan(gone, (), datetime(2026, 1, 1, tzinfo=UTC)).deletions
    assert {each.key.kind for each in deleted} == {"Deployment", "ResourceClaimTemplate"}


def test_a_static_node_pool_has_the_nodes_of_claims(tmp_path: Path) -> None:
    """Karpenter makes its nodes without a request of GPUs; the workload follows once devices are published."""
    environment = with_new_nodes(provisioner="static-nodepool")
    profile = a_profile(strings={"productName": "NVIDIA L4"})
    made = created(tmp_path, environment, a_class(), profile, a_node_pool(), by_claim(instanceType=FOUR))
    assert made.keys() == {"NodePool"}
    assert made["NodePool"]["spec"]["replicas"] == 1
    assert "nvidia.com/gpu" not in str({**made["NodePool"]["spec"]["template"]["spec"], "taints": []})


REQUESTS_GPUS = {"containers": [{"name": "main", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}
OTHER_CLASS = a_class("large", "device.driver == 'gpu.nvidia.com'")
PLUGIN = a_node("n0", instance_type=FOUR, **{"nvidia.com/gpu": "4"})
PLUGIN["metadata"]["labels"] |= {
    "pool": "claimed",
    "nvidia.com/gpu.product": "NVIDIA-L4",
    "nvidia.com/gpu.count": "4",
    "nvidia.com/gpu.memory": "23034",
}


@pytest.mark.parametrize(
    ("manifests", "reason", "said"),
    [
        ([a_class(), by_claim(REQUESTS_GPUS), *nodes(4)], Reason.INVALID_SPEC, "resource.devices is claim"),
        (
            [a_class(), by_claim({"containers": [{"name": "main"}], "resourceClaims": [{"name": "gpus"}]}), *nodes(4)],
            Reason.INVALID_SPEC,
            "rename it",
        ),
        ([OTHER_CLASS, by_claim(), *nodes(4)], Reason.NO_USABLE_NODES, "DeviceClass gpu.nvidia.com"),
        ([a_class(), by_claim(), PLUGIN], Reason.NO_USABLE_NODES, "device plugin"),
    ],
    ids=["extended resource", "claim of that name", "no class", "device plugin"],
)
def test_claims_that_no_pod_could_get_are_refused(
    tmp_path: Path, manifests: list[Manifest], reason: Reason, said: str
) -> None:
    (verdict,) = validate(snapshot_of(tmp_path, *manifests))
    assert verdict.reason is reason, verdict.message
    assert said in verdict.message


AMD = {"type": "amdgpu", "productName": "AMD_Instinct_MI300X_OAM"}


def on_amd(*manifests: Manifest) -> list[Manifest]:
    node = a_node("n0", instance_type="gpu-node")
    node["metadata"]["labels"]["pool"] = "claimed"
    devices = [a_device(f"card{number}", AMD, "196592Mi") for number in range(8)]
    of_amd = a_class("gpu.amd.com", "device.driver == 'gpu.amd.com'")
    return [of_amd, node, a_slice("n0", devices, driver="gpu.amd.com"), *manifests]


def test_a_template_claims_the_gpus_of_other_vendors(tmp_path: Path) -> None:
    made = created(tmp_path, *on_amd(by_claim()))
    (request,) = made["ResourceClaimTemplate"]["spec"]["spec"]["devices"]["requests"]
    assert (request["exactly"]["deviceClassName"], request["exactly"]["count"]) == ("gpu.amd.com", 8)


@pytest.mark.parametrize("name", [FOUR, "Standard_ND96isr_MI300X_v5", "Standard_ND96_MI250_v5"])
def test_new_nodes_are_of_types_of_other_vendors_too(tmp_path: Path, name: str) -> None:
    """Whether the catalog has the type, or knows by its name only whose GPUs it has."""
    devices: dict[str, Any] = {"driver": "gpu.amd.com", "count": 8, "strings": AMD, "capacity": {"memory": "196592Mi"}}
    of_amd = a_class("gpu.amd.com", "device.driver == 'gpu.amd.com'")
    given = [with_new_nodes(), of_amd, a_profile(name, **devices), a_node_pool(types=(name,))]
    made = created(tmp_path, *given, by_claim(instanceType=name))
    assert made.keys() == {"NodeClaim"}
    assert "amd.com/gpu" not in str(made["NodeClaim"]["spec"])
    preset = by_claim(instanceType=name)
    preset["spec"]["inference"] = {"preset": {"name": "phi-4-mini-instruct"}}
    for refused, said in ((preset, "gpu.amd.com"), (a_workspace(instanceType=name), "resource.devices to claim")):
        (verdict,) = validate(snapshot_of(tmp_path, *given, refused))
        assert said in verdict.message
        assert not verdict.accepted


def test_devices_that_are_declared_in_part_are_refused_by_what_is_missing(tmp_path: Path) -> None:
    """No catalog completes them, so that no class is known to select them."""
    profile, pool = a_profile("m5.4xlarge", strings={"productName": "NVIDIA L4"}), a_node_pool(types=("m5.4xlarge",))
    given = [with_new_nodes(), a_class(), profile, pool, by_claim(instanceType="m5.4xlarge")]
    (verdict,) = validate(snapshot_of(tmp_path, *given))
    assert verdict.reason is Reason.UNSUPPORTED_INSTANCE_TYPE, verdict.message
    assert f"spec.claimDevices of NodeProfile {profile['metadata']['name']}" in verdict.message
    assert "DeviceClass" not in verdict.message


def test_presets_are_refused_on_gpus_of_other_vendors(tmp_path: Path) -> None:
    workspace = by_claim()
    workspace["spec"]["inference"] = {"preset": {"name": "phi-4-mini-instruct"}}
    (verdict,) = validate(snapshot_of(tmp_path, *on_amd(workspace)))
    assert verdict.reason is Reason.NOT_SUPPORTED, verdict.message
    assert "gpu.amd.com" in verdict.message


def test_presets_claim_gpus_of_nvidia(tmp_path: Path) -> None:
    workspace = by_claim()
    workspace["spec"]["inference"] = {"preset": {"name": "phi-4-mini-instruct"}}
    made = created(tmp_path, a_class(), workspace, *nodes(4))
    spec = made["Deployment"]["spec"]["template"]["spec"]
    assert spec["containers"][0]["resources"]["claims"] == [{"name": "gpus"}]
    assert "nvidia.com/gpu" not in str(spec["containers"])


@pytest.mark.parametrize(
    ("objects", "said"),
    [
        ([a_class(), a_profile(strings={"productName": "NVIDIA L4"})], ""),
        ([OTHER_CLASS, a_profile(strings={"productName": "NVIDIA L4"})], "DeviceClass"),
        ([a_class()], "NodeProfile"),
        ([a_class(), a_profile(), a_workspace(instanceType=FOUR)], "resource.devices to claim"),
    ],
    ids=["profile", "no class", "nothing known", "not by claim"],
)
def test_new_nodes_are_of_types_whose_gpus_pods_get_as_they_ask(
    tmp_path: Path, objects: list[Manifest], said: str
) -> None:
    own = [] if objects[-1]["kind"] == "Workspace" else [by_claim(instanceType=FOUR)]
    manifests = [with_new_nodes(), *objects, a_node_pool(), *own]
    (verdict,) = validate(snapshot_of(tmp_path, *manifests))
    assert verdict.accepted is not bool(said), verdict.message
    assert said in verdict.message
    (found,) = created(tmp_path, *manifests).values() if not said else [{"spec": {}}]
    assert "nvidia.com/gpu" not in str(found["spec"])


CLASS_KEY = "gpu.nvidia.com.deviceclass.resource.k8s.io/devices"


@pytest.mark.parametrize(
    ("hard", "spec", "accepted"),
    [
        ({CLASS_KEY: "8"}, {}, True),
        ({CLASS_KEY: "7"}, {}, False),
        ({"requests.deviceclass.resource.kubernetes.io/gpu.nvidia.com": "7"}, {}, False),
        ({"count/resourceclaims.resource.k8s.io": "2"}, {}, True),
        ({"count/resourceclaims.resource.k8s.io": "1"}, {}, False),
        ({"gpu.amd.com.deviceclass.resource.k8s.io/devices": "0"}, {}, True),
        ({CLASS_KEY: "0"}, {"scopes": ["NotTerminating"]}, True),
    ],
)
@pytest.mark.parametrize("new", [True, False])
def test_no_node_is_bought_for_claims_that_a_quota_refuses(
    tmp_path: Path, hard: dict[str, str], spec: dict[str, Any], accepted: bool, new: bool
) -> None:
    """Two replicas on nodes with four devices: the template is created anyway, and no claim of it."""
    workspace = by_claim(instanceType=FOUR) if new else by_claim()
    workspace["spec"]["inference"]["replicas"] = 2
    given = [with_new_nodes(), a_profile(strings={"productName": "NVIDIA L4"}), a_node_pool()] if new else nodes(4, 4)
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "claims", "namespace": "team"},
        "spec": {"hard": hard, **spec},
    }
    manifests = [a_class(), *given, workspace, quota]
    (verdict,) = validate(snapshot_of(tmp_path, *manifests))
    assert verdict.accepted is accepted, verdict.message
    assert bool(created(tmp_path, *manifests)) is accepted
    if not accepted:
        assert verdict.reason is Reason.LIMIT_EXCEEDED
        assert f"ResourceQuota claims of namespace 'team' allows {next(iter(hard.values()))} of" in verdict.message


def test_claims_of_pods_that_wait_for_a_node_count_once(tmp_path: Path) -> None:
    """They exist, and count as used: a node that went is bought again. Those of others leave nothing."""
    quota: Manifest = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "claims", "namespace": "team"},
        "spec": {"hard": {CLASS_KEY: "4"}},
        "status": {"hard": {CLASS_KEY: "4"}, "used": {CLASS_KEY: "4"}},
    }
    own = by_claim(instanceType=FOUR)
    given = [with_new_nodes(), a_class(), a_profile(strings={"productName": "NVIDIA L4"}), a_node_pool(), own, quota]
    (verdict,) = validate(snapshot_of(tmp_path, *given))
    assert verdict.reason is Reason.LIMIT_EXCEEDED, verdict.message
    workload = created(tmp_path, a_class(), by_claim(), *nodes(4))["Deployment"]
    workload["status"] = {"replicas": 1}
    workload["metadata"]["labels"]["plimsoll.dev/environment"] = "dev"
    assert "NodeClaim" in created(tmp_path, *given, workload)
