"""What the labels and allocatable resources of one node say of its devices, and where they contradict each other."""

from typing import Any

import pytest

from plimsoll.cluster.profiles import DiscrepancyReason, read_discovery
from plimsoll.model.cluster import Division
from tests.builders import gpu_labels

PRODUCT, REPLICAS, STRATEGY = "nvidia.com/gpu.product", "nvidia.com/gpu.replicas", "nvidia.com/gpu.sharing-strategy"
MIXED = {"nvidia.com/mig.strategy": "mixed"}
SLICES = {"nvidia.com/mig-1g.10gb.count": "7", "nvidia.com/mig-1g.10gb.memory": "9728"}


def findings(labels: dict[str, str], **amounts: Any) -> set[DiscrepancyReason]:
    allocatable = {f"nvidia.com/{name.replace('_', '-', 1)}": amount for name, amount in amounts.items()}
    return {finding.reason for finding in read_discovery(labels, allocatable).findings}


@pytest.mark.parametrize(
    ("labels", "division", "announced", "shareable"),
    [
        (gpu_labels(count=8), Division.WHOLE, 8, True),
        (gpu_labels(count=2) | {REPLICAS: "4", STRATEGY: "time-slicing"}, Division.TIME_SLICING, 8, False),
        (gpu_labels(count=2) | {REPLICAS: "4", STRATEGY: "mps"}, Division.MPS, 8, False),
        (gpu_labels("A100-SHARED"), Division.TIME_SLICING, 1, False),
        (gpu_labels("A100-MIG-1g.10gb", 7, 9728), Division.MIG, 7, False),
        (gpu_labels() | MIXED, Division.WHOLE, 1, True),
    ],
)
def test_devices_are_divided_as_labels_say(
    labels: dict[str, str], division: Division, announced: int, shareable: bool
) -> None:
    found = read_discovery(labels, {})
    assert found.gpus is not None
    assert (found.gpus.division, found.gpus.announced, found.shareable) == (division, announced, shareable)


@pytest.mark.parametrize(
    ("labels", "allocatable", "shareable"),
    [
        (MIXED | SLICES, {}, False),
        ({}, {"nvidia.com/mig-1g.10gb": "7"}, False),
        ({}, {"nvidia.com/mig-1g.10gb": "0"}, True),
        (MIXED, {"nvidia.com/gpu": "1"}, True),
        ({"node-role.kubernetes.io/mig-enabled": "true"}, {}, False),
        ({"node-role.kubernetes.io/mig-enabled": "false"} | MIXED | SLICES, {}, False),
        ({"nvidia.com/mig.config": "all-1g.10gb", "nvidia.com/mig.config.state": "pending"}, {}, False),
        ({"nvidia.com/mig.config": "all-disabled", "nvidia.com/mig.config.state": "success"}, {}, True),
    ],
)
def test_kai_places_no_share_on_a_node_with_slices(
    labels: dict[str, str], allocatable: dict[str, str], shareable: bool
) -> None:
    """A node counts as one with MIG by KAI's label for it, else by allocatable slices."""
    assert read_discovery(gpu_labels() | labels, allocatable).shareable is shareable


@pytest.mark.parametrize(
    ("labels", "amounts", "found"),
    [
        ({}, {"gpu": 1}, set()),
        ({}, {"gpu": 50}, {DiscrepancyReason.MORE_ALLOCATABLE}),
        ({REPLICAS: "1"}, {"gpu": 50}, {DiscrepancyReason.MORE_ALLOCATABLE}),
        ({REPLICAS: "50"}, {"gpu": 50}, set()),
        ({REPLICAS: "4"}, {"gpu": 3}, {DiscrepancyReason.FEWER_ALLOCATABLE}),
        ({"nvidia.com/gpu.count": "8"}, {"gpu": 7}, {DiscrepancyReason.FEWER_ALLOCATABLE}),
        ({"nvidia.com/gpu.count": "8"} | MIXED | SLICES, {"gpu": 7, "mig_1g.10gb": 7}, set()),
        (MIXED | SLICES, {"gpu": 0, "mig_1g.10gb": 6}, {DiscrepancyReason.FEWER_ALLOCATABLE}),
        (MIXED, {"gpu": 0, "mig_1g.10gb": 7}, {DiscrepancyReason.UNLABELLED_SLICES}),
        ({PRODUCT: "A100-SHARED"}, {"gpu": 1}, {DiscrepancyReason.REPLICAS_CONTRADICT}),
        ({"nvidia.com/gpu.memory": "much"}, {"gpu": 1}, {DiscrepancyReason.INVALID_LABEL}),
        ({"nvidia.com/mig.config.state": "failed"}, {"gpu": 1}, {DiscrepancyReason.MIG_CHANGING}),
    ],
)
def test_contradictions_are_findings(labels: dict[str, str], amounts: dict[str, int], found: set[Any]) -> None:
    assert findings(gpu_labels() | labels, **amounts) == found


def test_a_node_that_states_nothing_of_gpus_is_no_contradiction() -> None:
    assert not findings({}, gpu=8)
    assert not read_discovery({}, {"cpu": "8"}).devices


def test_replicas_of_slices_share_the_slice() -> None:
    [_, slices] = read_discovery(gpu_labels() | MIXED | SLICES | {"nvidia.com/mig-1g.10gb.replicas": "2"}, {}).devices
    assert (slices.count, slices.announced, slices.memory_mib) == (7, 14, 9728)
