"""What ResourceSlices and claims say of nodes: the devices that count, and which of them are free."""

from pathlib import Path

import pytest

from plimsoll.cluster.ledger import GpuAccount, gpu_ledger
from plimsoll.cluster.profiles import DiscrepancyReason, discovery_of
from tests.claims.objects import (
    DRIVER,
    Manifest,
    a_claim,
    a_class,
    a_device,
    a_node,
    a_pod,
    a_slice,
    asked,
    gpus,
    snapshot_of,
)


def account(folder: Path, *manifests: Manifest) -> GpuAccount:
    """Of the only node."""
    (found,) = gpu_ledger(snapshot_of(folder, *manifests)).accounts()
    return found


def test_a_node_has_the_gpus_that_its_driver_publishes(tmp_path: Path) -> None:
    found = account(tmp_path, a_node("node"), a_slice("node", gpus(4)))
    assert (found.kind, found.memory_mib, found.gpus, found.free_gpus) == ("NVIDIA-L4", 23034, 4, 4)
    assert found.driver == DRIVER
    assert not found.shareable  # KAI's annotations divide GPUs of a device plugin only
    assert not found.discrepancies


@pytest.mark.parametrize(
    ("slices", "counted"),
    [
        ([a_slice("node", gpus(2), of=2)], 0),
        ([a_slice("node", gpus(2), of=2), a_slice("node", [a_device("gpu-8")], number=1, of=2)], 3),
        ([a_slice("node", gpus(4)), a_slice("node", gpus(3), generation=2)], 3),
        ([a_slice("node", gpus(4)), a_slice("node", gpus(3), generation=2, of=2)], 0),
    ],
    ids=["a slice is missing", "two slices", "newer generation", "newer generation, incomplete"],
)
def test_only_complete_pools_of_the_highest_generation_count(
    tmp_path: Path, slices: list[Manifest], counted: int
) -> None:
    assert account(tmp_path, a_node("node"), *slices).gpus == counted


def test_allocated_devices_are_not_free_and_a_shared_claim_counts_once(tmp_path: Path) -> None:
    shared = a_claim("shared", asked(2), devices=[("node", "gpu-0"), ("node", "gpu-1")], pods=["a", "b"])
    users = [a_pod(name, claim="shared", node="node") for name in "ab"]
    found = account(tmp_path, a_node("node"), a_slice("node", gpus(4)), a_class(), shared, *users)
    assert (found.whole, found.free_gpus) == (2, 2)
    assert found.claims == (("team/shared", ("a", "b"), 2),)


def test_attributes_that_each_device_has_for_itself_are_known_as_distinct(tmp_path: Path) -> None:
    """Not those that two have in common, that one lacks, or that say how the node runs."""
    places = {"uuid": "GPU-0", "numaNode": 0, "pciBusID": "0", "driverVersion": "1"}, {"uuid": "GPU-1", "numaNode": 0}
    devices = [a_device(f"gpu-{at}", each) for at, each in enumerate(places)]
    snapshot = snapshot_of(tmp_path, a_node("node"), a_slice("node", devices))
    (gpus,) = discovery_of(snapshot.nodes[0]).devices
    assert gpus.claimable is not None
    assert gpus.claimable.distinct == (f"{DRIVER}/uuid",)


def test_admin_access_takes_nothing(tmp_path: Path) -> None:
    monitor = a_claim("monitor", asked(1, adminAccess=True), devices=[("node", "gpu-0")], admin=True)
    assert account(tmp_path, a_node("node"), a_slice("node", gpus(1)), monitor).free_gpus == 1


def test_a_tainted_device_is_not_free(tmp_path: Path) -> None:
    broken = a_device("gpu-0") | {"taints": [{"key": "broken", "effect": "NoSchedule"}]}
    noted = a_device("gpu-1") | {"taints": [{"key": "noted", "effect": "None"}]}
    assert account(tmp_path, a_node("node"), a_slice("node", [broken, noted])).free_gpus == 1


def test_the_claim_of_an_extended_resource_counts_once(tmp_path: Path) -> None:
    """The scheduler has made a claim for the pod, which requests `nvidia.com/gpu` as before."""
    pod = a_pod("p", claim="none", node="node")
    del pod["spec"]["resourceClaims"]
    pod["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
    made = a_claim("p-extended-resources-1", asked(), devices=[("node", "gpu-0")], pods=["p"])
    found = account(tmp_path, a_node("node"), a_slice("node", gpus(2)), made, pod)
    assert (found.whole, found.free_gpus) == (1, 1)


def test_gpus_that_a_plugin_and_slices_announce_count_once(tmp_path: Path) -> None:
    node = a_node("node", **{"nvidia.com/gpu": "2"})
    node["metadata"]["labels"] |= {
        "nvidia.com/gpu.product": "NVIDIA-L4",
        "nvidia.com/gpu.count": "2",
        "nvidia.com/gpu.memory": "23034",
    }
    claim = a_claim("c", asked(), devices=[("node", "gpu-0")])
    found = account(tmp_path, node, a_slice("node", gpus(2)), claim)
    assert (found.gpus, found.free_gpus, found.driver) == (2, 1, "")
    assert [each.reason for each in found.discrepancies] == [DiscrepancyReason.ANNOUNCED_TWICE]


def test_devices_of_other_drivers_are_no_gpus(tmp_path: Path) -> None:
    network = a_slice("node", [a_device("nic-0", {"rdma": True})], driver="dra.net")
    snapshot = snapshot_of(tmp_path, a_node("node"), network)
    assert discovery_of(snapshot.nodes[0]).devices == ()


def test_claims_of_other_devices_have_no_gpus(tmp_path: Path) -> None:
    """Of a claim of both, only its GPUs are counted."""
    network = a_slice("node", [a_device(f"nic-{at}", {"rdma": True}) for at in range(2)], driver="dra.net")
    own, both = a_claim("own", asked()), a_claim("both", asked(), devices=[("node", "gpu-0")])
    own["status"] = {"allocation": {"devices": {"results": [of_network("nic-0")]}}}
    both["status"]["allocation"]["devices"]["results"].append(of_network("nic-1"))
    found = account(tmp_path, a_node("node"), a_slice("node", gpus(2)), network, own, both)
    assert found.claims == (("team/both", (), 1),)
    assert found.free_gpus == 1


def of_network(device: str) -> dict[str, str]:
    return {"request": "r0", "driver": "dra.net", "pool": "node", "device": device}


@pytest.mark.parametrize(
    ("driver", "attributes", "product", "vendor"),
    [
        ("gpu.amd.com", {"type": "amdgpu", "productName": "AMD_Instinct_MI300X_OAM"}, "AMD_Instinct_MI300X_OAM", "amd"),
        ("gpu.intel.com", {"model": "A770", "family": "Arc"}, "A770", "intel"),
    ],
)
def test_gpus_of_other_vendors_are_seen(
    tmp_path: Path, driver: str, attributes: dict[str, str], product: str, vendor: str
) -> None:
    found = account(tmp_path, a_node("node"), a_slice("node", [a_device("card0", attributes)], driver=driver))
    assert (found.kind, found.device.vendor, found.free_gpus) == (product, vendor, 1)
