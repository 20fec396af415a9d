"""NodeOverlays of a stack: the devices of each instance type with the declared sharing of GPUs."""

from typing import Any

import pytest
import yaml

from plimsoll.components.specs import ExistingGpuSoftware, GpuDiscoverySpec
from plimsoll.errors import PlimsollError
from plimsoll.model.karpenter import NodePoolSpec
from plimsoll.stacks import node_overlays
from tests.stacks.test_settings import run_stack

CLASS = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
EIGHT, FOUR, ONE = "p4d.24xlarge", "g5.12xlarge", "g5.xlarge"


def a_pool(*types: str, **labels: str) -> NodePoolSpec:
    wanted = [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": list(types)}]
    return NodePoolSpec.model_validate({"nodeClassRef": CLASS, "requirements": wanted, "labels": labels})


def a_discovery(mig: str | None = None, way: str = "timeSlicing", **sharing: Any) -> GpuDiscoverySpec:
    text = yaml.safe_dump({"version": "v1", "sharing": {way: sharing}})
    return GpuDiscoverySpec.model_validate(
        {"migStrategy": mig, "config": {"map": {"shared": text, "plain": "version: v1"}, "default": "shared"}}
    )


def gpu(replicas: int, **more: Any) -> list[dict[str, Any]]:
    return [{"name": "nvidia.com/gpu", "replicas": replicas, **more}]


@pytest.mark.parametrize("way", ["timeSlicing", "mps"])
def test_each_number_of_gpus_has_an_overlay(way: str) -> None:
    discovery = a_discovery(way=way, renameByDefault=True, resources=gpu(4))
    found = node_overlays(discovery, {"pool": a_pool(EIGHT, ONE, FOUR)})
    capacities = {
        tuple(each["requirements"][1]["values"]): each["capacity"]["nvidia.com/gpu.shared"]
        for each in found.specs.values()
    }
    assert capacities == {(EIGHT,): "32", (FOUR,): "16", (ONE,): "4"}
    assert all(each["requirements"][0]["values"] == ["pool"] for each in found.specs.values())
    assert not found.warnings


@pytest.mark.parametrize(
    "text",
    ["a: [", "text", "sharing: text", "sharing: {mps: text}", "sharing: {mps: {resources: [{name: g, replicas: x}]}}"],
)
def test_a_configuration_that_cannot_be_read_is_named(text: str) -> None:
    discovery = GpuDiscoverySpec.model_validate({"config": {"map": {"shared": text}, "default": "shared"}})
    with pytest.raises(PlimsollError, match=r"gpuDiscovery\.config\.map\.shared"):
        node_overlays(discovery, {"pool": a_pool(ONE)})


def test_a_renamed_resource_counts() -> None:
    discovery = a_discovery(resources=gpu(2, rename="nvidia.com/slice"))
    [spec] = node_overlays(discovery, {"pool": a_pool(ONE)}).specs.values()
    assert spec["capacity"] == {"nvidia.com/slice": "2"}


@pytest.mark.parametrize(
    ("discovery", "labels"),
    [
        (a_discovery(resources=gpu(4)), {}),
        (GpuDiscoverySpec(mig_strategy="single"), {"nvidia.com/mig.config": "all-1g.5gb"}),
    ],
    ids=["replicas", "slices"],
)
def test_replicas_with_the_name_of_whole_gpus_are_a_warning(
    discovery: GpuDiscoverySpec, labels: dict[str, str]
) -> None:
    found = node_overlays(discovery, {"pool": a_pool(EIGHT, **labels)})
    assert not found.specs
    assert "nvidia.com/gpu" in found.warnings[0]


def test_one_slice_for_a_whole_gpu_is_none_to_warn_of() -> None:
    """With the strategy single, it is announced as nvidia.com/gpu, as the GPU would be."""
    pool = a_pool(EIGHT, **{"nvidia.com/mig.config": "all-7g.40gb"})
    found = node_overlays(GpuDiscoverySpec(mig_strategy="single"), {"pool": pool})
    assert not found.specs
    assert not found.warnings


def test_replicas_of_slices() -> None:
    discovery = a_discovery("mixed", renameByDefault=True, resources=[{"name": "nvidia.com/mig-1g.5gb", "replicas": 2}])
    pool = a_pool(EIGHT, **{"nvidia.com/mig.config": "all-1g.5gb"})
    [spec] = node_overlays(discovery, {"pool": pool}).specs.values()
    assert spec["capacity"] == {"nvidia.com/mig-1g.5gb.shared": "112"}


@pytest.mark.parametrize("devices", [2, [0, 1]])
def test_replicas_of_some_devices_of_a_node_are_a_warning(devices: Any) -> None:
    found = node_overlays(a_discovery(resources=gpu(4, devices=devices)), {"pool": a_pool(FOUR)})
    assert not found.specs
    assert "some devices" in found.warnings[0]


def test_a_pool_chooses_its_configuration() -> None:
    discovery = a_discovery(renameByDefault=True, resources=gpu(4))
    assert not node_overlays(discovery, {"pool": a_pool(ONE, **{"nvidia.com/device-plugin.config": "plain"})}).specs


def test_an_unknown_type_is_a_warning() -> None:
    found = node_overlays(a_discovery(renameByDefault=True, resources=gpu(4)), {"pool": a_pool("own.large")})
    assert not found.specs
    assert "catalog" in found.warnings[0]


@pytest.mark.parametrize(
    ("instance_type", "profile", "resource", "count"),
    [
        (EIGHT, "1g.5gb", "mig-1g.5gb", 56),
        (EIGHT, "3g.20gb", "mig-3g.20gb", 16),
        ("p4de.24xlarge", "1g.10gb", "mig-1g.10gb", 56),
        ("p4de.24xlarge", "2g.20gb", "mig-2g.20gb", 24),
        ("p4de.24xlarge", "1g.20gb", "mig-1g.20gb", 32),
        ("p5.48xlarge", "7g.80gb", "mig-7g.80gb", 8),
        ("p4de.24xlarge", "1g.10gb.me", "mig-1g.10gb.me", 8),
        ("p4de.24xlarge", "1g.10gb-me", "mig-1g.10gb-me", 56),
    ],
)
def test_mig_profiles_of_a_pool(instance_type: str, profile: str, resource: str, count: int) -> None:
    pool = a_pool(instance_type, **{"nvidia.com/mig.config": f"all-{profile}"})
    [spec] = node_overlays(GpuDiscoverySpec(mig_strategy="mixed"), {"pool": pool}).specs.values()
    assert spec["capacity"] == {f"nvidia.com/{resource}": str(count)}
    assert not node_overlays(GpuDiscoverySpec(mig_strategy="single"), {"pool": pool}).specs
    assert not node_overlays(GpuDiscoverySpec(mig_strategy="none"), {"pool": pool}).specs


def test_the_stack_declares_overlays_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plimsoll.stacks.environment.find_gpu_software", lambda **_: ExistingGpuSoftware())
    for wanted, names in ((True, ["plimsoll-gpu-0"]), (False, [])):
        discovery = a_discovery(renameByDefault=True, resources=gpu(4)).manifest() | {"nodeOverlays": wanted}
        discovery |= {"nvidiaDevicePlugin": {"enabled": False}, "gfd": {"mode": "off"}, "nfd": "off"}
        pool = a_pool(ONE).manifest()
        values = {"nodeClassRef": CLASS, "requirements": pool["template"]["spec"]["requirements"]}
        made = run_stack("prod", layer="environment", gpuDiscovery=discovery, nodePools={"gpu": values})
        overlays = [each for each in made if each["inputs"].get("kind") == "NodeOverlay"]
        assert [each["inputs"]["metadata"]["name"] for each in overlays] == names
        managers = [each["inputs"]["metadata"]["annotations"]["pulumi.com/patchFieldManager"] for each in overlays]
        assert managers == ["plimsoll-stack"] * len(names), "as all objects that a stack declares"
