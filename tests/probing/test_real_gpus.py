"""What NVML said of real GPUs (gpus/*.json, by driver 580), against the catalog and what is derived from names."""

import json
from pathlib import Path
from typing import Any

import pytest

from plimsoll.cluster.catalog import Catalog, discovery_labels
from plimsoll.cluster.profiles import slice_mib
from plimsoll.labels import GPU_COUNT

FOLDER = Path(__file__).parent / "gpus"
SEEN = {path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}
TYPES = {
    "h100": ["p5.48xlarge", "p5.4xlarge", "Standard_ND96isr_H100_v5", "a3-highgpu-8g"],
    "h200": ["p5e.48xlarge", "p5en.48xlarge", "Standard_ND96isr_H200_v5", "a3-ultragpu-8g"],
}


@pytest.mark.parametrize(("gpu", "name"), [(gpu, name) for gpu, names in TYPES.items() for name in names])
def test_nodes_of_the_catalog_have_the_labels_that_discovery_writes_for_the_gpu(gpu: str, name: str) -> None:
    """GFD: the product is NVML's name with dashes, the memory its total in MiB."""
    seen = SEEN[gpu]
    kind = Catalog.builtin().lookup(name)
    assert kind is not None
    major, minor = seen["computeCapability"]
    labels = discovery_labels(kind)
    del labels[GPU_COUNT]
    assert labels == {
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.product": seen["name"].replace(" ", "-"),
        "nvidia.com/gpu.memory": str(seen["memoryBytes"] >> 20),
        "nvidia.com/gpu.family": "hopper",
        "nvidia.com/gpu.compute.major": str(major),
        "nvidia.com/gpu.compute.minor": str(minor),
        "nvidia.com/gpu.replicas": "1",
    }


def profiles() -> list[Any]:
    found = [(gpu, each) for gpu, seen in SEEN.items() for each in seen["profiles"]]
    return [pytest.param(each, id=f"{gpu}-{each['name']}") for gpu, each in found]


@pytest.mark.parametrize("profile", profiles())
def test_a_slice_has_at_least_the_memory_that_its_profile_promises(profile: dict[str, Any]) -> None:
    assert slice_mib(profile["name"].removeprefix("MIG ")) <= profile["memorySizeMB"]


def test_the_memory_by_name_is_as_much_as_every_profile_has() -> None:
    """With a ninth more, a slice would be promised memory that it does not have."""
    spare = [
        each["memorySizeMB"] - slice_mib(each["name"].removeprefix("MIG "))
        for g in SEEN.values()
        for each in g["profiles"]
    ]
    assert min(spare) == 0


@pytest.mark.parametrize("seen", SEEN.values(), ids=SEEN)
def test_the_gpus_were_not_partitioned(seen: dict[str, Any]) -> None:
    assert seen["migMode"] == [0, 0]
