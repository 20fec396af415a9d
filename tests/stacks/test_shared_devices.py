"""Shared devices of a stack without NodeOverlays: the Environment's setting and the label that NodePools leave open."""

from typing import Any

import pytest

from plimsoll.components.specs import ExistingGpuSoftware, GpuDiscoverySpec
from plimsoll.stacks import Settings, shared_devices, with_shared_devices
from tests.stacks.test_node_overlays import CLASS, EIGHT, FOUR, ONE, a_discovery, a_pool, gpu
from tests.stacks.test_settings import run_stack

OFF = {"nodeOverlays": False, "nvidiaDevicePlugin": {"enabled": False}, "gfd": {"mode": "off"}, "nfd": "off"}
OPEN = {"key": "plimsoll.dev/request", "operator": "Exists"}


@pytest.mark.parametrize("way", ["timeSlicing", "mps"])
def test_replicas_of_each_gpu(way: str) -> None:
    discovery = a_discovery(way=way, renameByDefault=True, resources=gpu(4))
    found = shared_devices(discovery, {"pool": a_pool(EIGHT, ONE, "own.large")})
    assert found.entries == [
        {
            "nodePool": "pool",
            "instanceTypes": sorted([EIGHT, ONE, "own.large"]),
            "resource": "nvidia.com/gpu.shared",
            "perGpu": 4,
        }
    ]
    assert not found.warnings


def test_slices_depend_on_the_memory_of_the_type() -> None:
    pool = a_pool("p4de.24xlarge", EIGHT, "own.large", **{"nvidia.com/mig.config": "all-1g.10gb"})
    found = shared_devices(GpuDiscoverySpec(mig_strategy="mixed"), {"pool": pool})
    assert [(each["instanceTypes"], each["perGpu"]) for each in found.entries] == [([EIGHT], 4), (["p4de.24xlarge"], 7)]
    assert "not in the catalog" in found.warnings[0]


def test_replicas_with_the_name_of_whole_gpus() -> None:
    found = shared_devices(a_discovery(resources=gpu(4)), {"pool": a_pool(ONE)})
    assert [(each["resource"], each["perGpu"]) for each in found.entries] == [("nvidia.com/gpu", 4)]
    assert not shared_devices(a_discovery(resources=gpu(1)), {"pool": a_pool(ONE)}).entries


def test_slices_with_the_name_of_whole_gpus() -> None:
    pool = a_pool("p4de.24xlarge", **{"nvidia.com/mig.config": "all-1g.10gb"})
    found = shared_devices(GpuDiscoverySpec(mig_strategy="single"), {"pool": pool})
    assert not found.entries, "a node announces whole GPUs until it is partitioned"
    assert "set migStrategy to mixed" in found.warnings[0]


@pytest.mark.parametrize(
    ("gate", "warned"),
    [(None, True), ({"namespaces": ["a"]}, True), ({"namespaces": ["a"], "wholeGpus": True}, False)],
)
def test_replicas_with_the_name_of_whole_gpus_need_the_capacity_gate(gate: dict[str, Any] | None, warned: bool) -> None:
    requirements = a_pool(FOUR).manifest()["template"]["spec"]["requirements"]
    values = {
        "layer": "environment",
        "environment": {"demand": {"provisioner": "trigger-pod"}},
        "gpuDiscovery": a_discovery(resources=gpu(4)).manifest() | OFF,
        "nodePools": {"gpu": {"nodeClassRef": CLASS, "requirements": requirements}},
        **({"capacityGate": gate} if gate else {}),
    }
    found, warnings = with_shared_devices(Settings.model_validate(values), values)
    assert [each["nodePool"] for each in found["environment"]["demand"]["sharedDevices"]] == ["gpu"]
    assert any("wholeGpus in plimsoll:capacityGate" in each for each in warnings) == warned


@pytest.mark.parametrize(
    ("changes", "provisioner", "requested"),
    [
        ({}, "trigger-pod", True),
        ({"nodeOverlays": True}, "trigger-pod", False),
        ({"enabled": False}, "trigger-pod", False),
        ({}, "none", False),
        ({}, "capacity-buffer", False),
    ],
)
def test_the_stack_sets_both_for_trigger_pods(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, bool], provisioner: str, requested: bool
) -> None:
    monkeypatch.setattr("plimsoll.stacks.environment.find_gpu_software", lambda **_: ExistingGpuSoftware())
    discovery = a_discovery(renameByDefault=True, resources=gpu(4)).manifest() | OFF | changes

    def values(*types: str) -> dict[str, Any]:
        pool = a_pool(*types).manifest()
        return {"nodeClassRef": CLASS, "requirements": pool["template"]["spec"]["requirements"]}

    made = run_stack(
        "prod",
        layer="environment",
        environment={"demand": {"provisioner": provisioner}},
        gpuDiscovery=discovery,
        nodePools={"gpu": {**values(FOUR), "name": "named"}},
    )
    (environment,) = (each["inputs"] for each in made if each["inputs"].get("kind") == "Environment")
    (pool,) = (each["inputs"] for each in made if each["inputs"].get("kind") == "NodePool")
    devices = environment["spec"]["demand"].get("sharedDevices", [])
    assert [(each["nodePool"], each["perGpu"]) for each in devices] == ([("named", 4)] if requested else [])
    assert (OPEN in pool["spec"]["template"]["spec"]["requirements"]) == requested
