"""Rules on claims and DeviceClasses."""

from typing import Any

import pytest

from tests.claims.objects import DRIVER, Manifest, a_claim, a_class, a_template, asked
from tests.policy_rules.manifests import broken

QUEUE: Manifest = {
    "apiVersion": "scheduling.run.ai/v2",
    "kind": "Queue",
    "metadata": {"name": "team"},
    "spec": {"resources": {"gpu": {"quota": 4, "limit": -1, "overQuotaWeight": 1}}},
}


def rules(*manifests: Manifest) -> list[tuple[str, str]]:
    """The rules of this family that are broken, with the field."""
    return [each for each in broken(*manifests) if each[0].startswith(("claim-", "device-class-"))]


def selecting(attribute: str) -> Manifest:
    return asked(1, f"device.attributes['{DRIVER}'].{attribute}")


@pytest.mark.parametrize("attribute", ["uuid == 'GPU-1'", "driverVersion.isGreaterThan(semver('580.0.0'))"])
def test_attributes_of_one_device_and_of_its_driver_are_found(attribute: str) -> None:
    rule = "claim-selects-any-node"
    exactly, first = "requests[0].exactly.selectors[0].cel.expression", "requests[0].firstAvailable[1].selectors[0]"
    assert rules(a_claim("c", selecting(attribute))) == [(rule, f"spec.devices.{exactly}")]
    assert rules(a_template("t", selecting(attribute))) == [(rule, f"spec.spec.devices.{exactly}")]
    either = {"firstAvailable": [{"name": "a", **asked(1)}, {"name": "b", **selecting(attribute)}]}
    assert rules(a_claim("c", either)) == [(rule, f"spec.devices.{first}.cel.expression")]


def test_attributes_of_a_type_are_no_finding() -> None:
    wanted = ("productName == 'NVIDIA L4'", "cudaComputeCapability.isGreaterThan(semver('8.0.0'))")
    assert not rules(a_claim("c", asked(1, *(f"device.attributes['{DRIVER}'].{each}" for each in wanted))))


@pytest.mark.parametrize(("labels", "found"), [({}, 1), ({"resource.kubernetes.io/admin-access": "true"}, 0)])
def test_admin_access_needs_a_label_of_the_namespace(labels: dict[str, str], found: int) -> None:
    namespace: dict[str, Any] = {
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team", "labels": labels},
    }  # fmt: skip
    claim = a_claim("c", asked(1, adminAccess=True))
    assert [rule for rule, _ in rules(namespace, claim)] == ["claim-admin-access"] * found
    assert not rules(claim)


def test_classes_that_queues_do_not_count_are_found() -> None:
    mig = a_class("mig.nvidia.com", f"device.driver == '{DRIVER}'")
    assert rules(QUEUE, mig, a_class()) == [("device-class-gpu-name", "metadata.name")]
    assert not rules(mig)
    assert not rules(QUEUE, a_class("dra.net", "device.driver == 'dra.net'"))


def test_two_classes_with_one_extended_resource_are_found() -> None:
    one, other = (a_class(name, extended_resource="nvidia.com/gpu") for name in ("a-gpu", "b-gpu"))
    assert rules(one, other) == [("device-class-resource-unique", "spec.extendedResourceName")]
    assert not rules(one, a_class("b-gpu", extended_resource="example.com/gpu"))


def a_pool_of_claims(labels: dict[str, str] | None = None) -> Manifest:
    template = {"metadata": {"labels": labels or {}}, "spec": {"requirements": []}}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "claimed"},
        "spec": {"template": template},
    }


def a_profile(driver: str) -> Manifest:
    spec = {"nodePool": "claimed", "instanceType": "g6.xlarge", "claimDevices": {"driver": driver}}
    return {"apiVersion": "plimsoll.dev/v1alpha1", "kind": "NodeProfile", "metadata": {"name": "l4"}, "spec": spec}


@pytest.mark.parametrize(
    ("driver", "labels", "found"),
    [
        (DRIVER, {}, 1),
        (DRIVER, {"nvidia.com/gpu.present": "false"}, 1),
        (DRIVER, {"nvidia.com/gpu.present": "true"}, 0),
        (DRIVER, {"feature.node.kubernetes.io/pci-10de.present": "true"}, 0),
        ("gpu.amd.com", {}, 0),
    ],
)
def test_node_pools_on_which_the_driver_of_nvidia_does_not_run_are_found(
    driver: str, labels: dict[str, str], found: int
) -> None:
    rule = ("node-pool-runs-claim-driver", "spec.template.metadata.labels[nvidia.com/gpu.present]")
    broken_here = [each for each in broken(a_profile(driver), a_pool_of_claims(labels)) if each[0] == rule[0]]
    assert broken_here == [rule] * found
    assert not [each for each in broken(a_pool_of_claims(labels)) if each[0] == rule[0]]


def a_node_class(sharing: str | None) -> Manifest:
    annotations = {} if sharing is None else {"karpenter.k8s.aws/nvidia-consumable-capacity": sharing}
    metadata = {"name": "gpu", "annotations": annotations}
    return {"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": metadata, "spec": {}}


def a_driver(mode: str) -> Manifest:
    container = {"name": "gpus", "image": "d:1", "env": [{"name": "CONSUMABLE_SHARES", "value": mode}]}
    template = {"spec": {"containers": [container]}}
    metadata = {"name": "driver", "namespace": "dra"}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata, "spec": {"template": template}}


def a_release(values: dict[str, Any], **spec: Any) -> Manifest:
    chart = {"spec": {"chart": "dra-driver-nvidia-gpu", "version": "0.5.0"}}
    return {
        "apiVersion": "helm.toolkit.fluxcd.io/v2",
        "kind": "HelmRelease",
        "metadata": {"name": "driver", "namespace": "dra"},
        "spec": {"chart": chart, "values": values, **spec},
    }


@pytest.mark.parametrize(
    ("sharing", "driver", "found"),
    [
        ("4", [a_driver("4")], 0),
        ("memory", [a_driver("4")], 1),
        (None, [a_driver("4")], 0),
        ("4", [a_driver("4"), a_driver("memory")], 0),
        ("4", [], 0),
        ("4", [a_release({})], 1),
        ("disabled", [a_release({})], 0),
        ("4", [a_release({"consumableShares": 4})], 0),
        ("4", [a_release({}, valuesFrom=[{"kind": "ConfigMap", "name": "more"}])], 0),
    ],
)
def test_karpenter_is_told_how_the_driver_shares_gpus(sharing: str | None, driver: list[Manifest], found: int) -> None:
    """Of a class without the annotation nothing is known: its nodes may have no GPUs."""
    rule = "node-class-shares-as-driver"
    field = "metadata.annotations[karpenter.k8s.aws/nvidia-consumable-capacity]"
    assert [each for each in broken(a_node_class(sharing), *driver) if each[0] == rule] == [(rule, field)] * found
