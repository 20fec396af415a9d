"""Accelerators of other vendors, by the resources of their device plugins and the labels of their discovery."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll.cluster.ledger import GpuAccount, OtherAccelerators, gpu_ledger, other_accelerators
from plimsoll.cost import Prices, cluster_cost, savings
from plimsoll.model import Reason, Verdict
from plimsoll.observe.files import snapshot_from_files
from plimsoll.plan import validate
from plimsoll.report import Metrics
from plimsoll.ui.view import NodeRows
from tests.command import plimsoll

Manifest = dict[str, Any]


def a_node(labels: dict[str, str], **allocatable: str) -> Manifest:
    status = {
        "allocatable": {"cpu": "96", "memory": "180Gi", "pods": "110", **allocatable},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gpu-1", "labels": labels}, "status": status}


def a_pod(name: str, phase: str = "Running", **limits: str) -> Manifest:
    container = {"name": "main", "image": "server", "resources": {"limits": limits}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "team", "uid": name},
        "spec": {"nodeName": "gpu-1", "containers": [container]},
        "status": {"phase": phase},
    }


def found(folder: Path, *manifests: Manifest) -> tuple[OtherAccelerators, ...]:
    file = folder / "cluster.yaml"
    file.write_text(yaml.safe_dump_all(manifests))
    return other_accelerators(snapshot_from_files([str(file)]))


def accounts(folder: Path, *manifests: Manifest) -> dict[str, GpuAccount]:
    file = folder / "cluster.yaml"
    file.write_text(yaml.safe_dump_all(manifests))
    return {each.node.name: each for each in gpu_ledger(snapshot_from_files([str(file)])).accounts()}


@pytest.mark.parametrize(
    ("labels", "resource", "vendor", "product", "memory_mib"),
    [
        (
            {"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM", "amd.com/gpu.vram": "192G"},
            "amd.com/gpu",
            "amd",
            "AMD_Instinct_MI300X_OAM",
            196608,
        ),
        ({"beta.amd.com/gpu.product-name.MI210": "8", "amd.com/gpu.vram": "many"}, "amd.com/gpu", "amd", "MI210", None),
        ({f"beta.amd.com/gpu.product-name.{name}": "4" for name in ("a", "b")}, "amd.com/gpu", "amd", "", None),
        ({}, "amd.com/gpu", "amd", "", None),
        (
            {
                "gpu.intel.com/product": "Max_1100",
                "gpu.intel.com/device.count": "8",
                "gpu.intel.com/memory.max": f"{8 * 48 * 2**30}",
            },
            "gpu.intel.com/xe",
            "intel",
            "Max_1100",
            49152,
        ),
        ({}, "gpu.intel.com/i915", "intel", "", None),
        ({"karpenter.k8s.aws/instance-accelerator-name": "trainium"}, "aws.amazon.com/neuron", "aws", "trainium", None),
        ({"cloud.google.com/gke-tpu-accelerator": "tpu-v5"}, "google.com/tpu", "google", "tpu-v5", None),
    ],
)
def test_devices_with_product_and_what_is_free(
    tmp_path: Path, labels: dict[str, str], resource: str, vendor: str, product: str, memory_mib: int | None
) -> None:
    pods = (a_pod("p", **{resource: "3"}), a_pod("done", "Succeeded", **{resource: "1"}))
    account = accounts(tmp_path, a_node(labels, **{resource: "8"}), *pods)["gpu-1"]
    device = account.device
    assert (device.vendor, device.resource, device.product, device.memory_mib) == (
        vendor,
        resource,
        product,
        memory_mib,
    )
    assert (account.gpus, account.whole, account.free_gpus, account.users) == (8, 3, 5, ("team/p",))
    assert not (account.shareable or account.discrepancies)


def test_gpus_of_intel_that_their_plugin_shares(tmp_path: Path) -> None:
    """Its option `-shared-dev-num` announces each several times."""
    node = a_node({"gpu.intel.com/device.count": "4"}, **{"gpu.intel.com/i915": "12"})
    account = accounts(tmp_path, node)["gpu-1"]
    assert (account.device.count, account.device.replicas, account.gpus) == (4, 3, 12)


def test_neuron_devices_are_in_use_by_their_cores(tmp_path: Path) -> None:
    node = a_node({}, **{"aws.amazon.com/neuron": "16", "aws.amazon.com/neuroncore": "32"})
    pods = (a_pod("core", **{"aws.amazon.com/neuroncore": "3"}), a_pod("chip", **{"aws.amazon.com/neuron": "1"}))
    account = accounts(tmp_path, node, *pods)["gpu-1"]
    assert (account.gpus, account.whole, account.users) == (16, 3, ("team/chip", "team/core"))
    assert not found(tmp_path, node)


def test_gpus_of_nvidia_count_where_a_node_has_both(tmp_path: Path) -> None:
    node = a_node({}, **{"nvidia.com/gpu": "2", "amd.com/gpu": "4"})
    pods = (a_pod("nv", **{"nvidia.com/gpu": "1"}), a_pod("am", **{"amd.com/gpu": "3"}))
    account = accounts(tmp_path, node, *pods)["gpu-1"]
    assert (account.device.vendor, account.gpus, account.whole) == ("nvidia", 2, 1)
    (other,) = found(tmp_path, node, *pods)
    assert (other.resource, other.free) == ("amd.com/gpu", 1)


def test_other_accelerators_are_listed(tmp_path: Path) -> None:
    node = a_node({}, **{"nvidia.com/gpu": "8", "rdma/hca": "1", "amd.com/gpu": "0", "habana.ai/gaudi": "8"})
    (other,) = found(tmp_path, node, a_pod("p", **{"habana.ai/gaudi": "2"}))
    assert (other.vendor, other.resource, other.allocatable, other.free) == ("Intel", "habana.ai/gaudi", 8, 6)


@pytest.mark.parametrize(
    ("resource", "labels", "product"),
    [
        ("amd.com/cpx_nps4", {"amd.com/gpu.product-name": "MI300X"}, "MI300X"),
        ("amd.com/cpx_nps4", {"beta.amd.com/gpu.product-name.MI300X": "8"}, "MI300X"),
        ("gpu.intel.com/tiles", {"gpu.intel.com/product": "Max_1550"}, "Max_1550"),
        ("habana.ai/gaudi", {"gpu.intel.com/product": "Max_1550"}, ""),
    ],
)
def test_parts_and_others_have_the_product_of_their_vendor_only(
    tmp_path: Path, resource: str, labels: dict[str, str], product: str
) -> None:
    (other,) = found(tmp_path, a_node(labels, **{resource: "64"}))
    assert other.product == product


@pytest.mark.parametrize("resource", ["amd.com/gpu", "amd.com/cpx_nps4", "habana.ai/gaudi", "nvidia.com/mig-1g.10gb"])
def test_pods_with_devices_keep_their_node(tmp_path: Path, resource: str) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump_all([a_node({}, **{resource: "8"}), a_pod("p", **{resource: "2"})]))
    said = json.loads(plimsoll("why", "node", "gpu-1", "-f", str(file), "-o", "json").stdout)
    assert f"team/p (2 {resource})" in json.dumps(said)


def test_an_impossible_number_is_none(tmp_path: Path) -> None:
    assert not found(tmp_path, a_node({}, **{"amd.com/cpx_nps4": "-1"}))


def test_pages_costs_and_audits_count_their_nodes(tmp_path: Path) -> None:
    labels = {"amd.com/gpu.product-name": "MI300X", "node.kubernetes.io/instance-type": "mi300x"}
    environment = {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "Environment",
        "metadata": {"name": "test"},
        "spec": {"catalog": {"prices": {"mi300x": 48}}},
    }
    by_name = accounts(
        tmp_path, environment, a_node(labels, **{"amd.com/gpu": "8"}), a_pod("p", **{"amd.com/gpu": "6"})
    )
    file = str(tmp_path / "cluster.yaml")
    snapshot = snapshot_from_files([file])
    (row,) = NodeRows().update(snapshot, Prices.of(snapshot))
    assert (row.product, row.gpus, row.used) == ("MI300X", 8, 6)
    assert cluster_cost(by_name.values(), Prices.of(snapshot)).idle == 12
    summary = json.loads(plimsoll("audit", "-f", file, "-o", "json").stdout)["summary"]
    assert (summary["nodes"], summary["gpus"], summary["idleGpus"]) == (1, 8, 2)
    metrics = Metrics()
    metrics.seen(snapshot, datetime(2026, 11, 1, tzinfo=UTC), by_name.values())
    value = metrics.registry.get_sample_value
    assert value("plimsoll_gpus", {"state": "used", "vendor": "amd"}) == 6
    assert value("plimsoll_gpus", {"state": "used", "vendor": "nvidia"}) == 0


def test_they_are_listed_and_nodes_in_use_are_no_saving(tmp_path: Path) -> None:
    idle = a_node({"amd.com/gpu.product-name": "MI300X"}, **{"amd.com/gpu": "8"})
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump_all([idle, a_pod("p", **{"amd.com/gpu": "1"})]))
    assert "7 amd.com/gpu free" in plimsoll("gpus", "-f", str(file)).stdout
    (shown,) = json.loads(plimsoll("gpus", "-f", str(file), "-o", "json").stdout)["nodes"]
    assert (shown["name"], shown["vendor"], shown["resource"]) == ("gpu-1", "amd", "amd.com/gpu")
    assert (shown["freeGPUs"], shown["pods"]) == (7, ["team/p"])
    assert not any(group.removable for group in savings(snapshot_from_files([str(file)]), Prices({})).groups)


def verdict(folder: Path, node: Manifest, requests: dict[str, str] | None = None, *, preset: bool = False) -> Verdict:
    """Of a Workspace that selects the node, with a template that requests these devices, or with a preset."""
    container = {"name": "main", "image": "server", "resources": {"limits": requests or {}}}
    template = {"template": {"spec": {"containers": [container]}}}
    workspace = {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "Workspace",
        "metadata": {"name": "chat", "namespace": "team", "uid": "chat"},
        "spec": {
            "resource": {"labelSelector": {"matchLabels": {"pool": "theirs"}}},
            "inference": {"preset": {"name": "phi-4-mini-instruct"}} if preset else template,
        },
    }
    file = folder / "cluster.yaml"
    file.write_text(yaml.safe_dump_all([node, workspace]))
    (found,) = validate(snapshot_from_files([str(file)]))
    return found


THEIRS = {"pool": "theirs"}


@pytest.mark.parametrize("resource", ["amd.com/gpu", "gpu.intel.com/xe", "aws.amazon.com/neuron", "google.com/tpu"])
def test_presets_are_refused_their_nodes_by_name(tmp_path: Path, resource: str) -> None:
    """Discovery of NVIDIA's GPUs will never reach them: to wait for it is no advice."""
    refused = verdict(tmp_path, a_node(THEIRS, **{resource: "8"}), preset=True)
    assert refused.reason is Reason.NO_USABLE_NODES
    assert f"8 {resource}" in refused.message
    assert verdict(tmp_path, a_node(THEIRS, **{resource: "0"}), preset=True).reason is Reason.GPU_LABELS_INVALID


@pytest.mark.parametrize("resource", ["amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe"])
@pytest.mark.parametrize("asked", ["", "8", "4"])
def test_templates_run_on_nodes_of_amd_and_intel(tmp_path: Path, resource: str, asked: str) -> None:
    found = verdict(tmp_path, a_node(THEIRS, **{resource: "8"}), {resource: asked} if asked else None)
    assert (found.accepted, found.device_resource, found.node_names) == (True, resource, ("gpu-1",))
    shown = json.loads(plimsoll("plan", "-f", str(tmp_path / "cluster.yaml"), "--output", "json").stdout)
    (container,) = shown["create"][0]["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["limits"] == {resource: asked or "8"}


@pytest.mark.parametrize(
    ("resource", "asked", "said"),
    [
        ("amd.com/gpu", {"nvidia.com/gpu": "8"}, "requests nvidia.com/gpu"),
        ("nvidia.com/gpu", {"amd.com/gpu": "8"}, "requests amd.com/gpu"),
        ("gpu.intel.com/xe", {"amd.com/gpu": "8"}, "requests amd.com/gpu"),
        ("amd.com/gpu", {"amd.com/gpu": "9"}, "8 amd.com/gpu allocatable, 9 requested"),
        ("aws.amazon.com/neuron", {"aws.amazon.com/neuron": "8"}, "no Workspace can request"),
        ("google.com/tpu", {}, "no Workspace can request"),
    ],
)
def test_templates_are_refused_devices_that_they_do_not_request(
    tmp_path: Path, resource: str, asked: dict[str, str], said: str
) -> None:
    labels = {"nvidia.com/gpu.product": "NVIDIA-L4", "nvidia.com/gpu.count": "8", "nvidia.com/gpu.memory": "23034"}
    node = a_node(THEIRS | (labels if resource == "nvidia.com/gpu" else {}), **{resource: "8"})
    refused = verdict(tmp_path, node, asked)
    assert refused.reason is Reason.NO_USABLE_NODES
    assert said in refused.message


def test_shared_gpus_of_intel_are_refused(tmp_path: Path) -> None:
    node = a_node(THEIRS | {"gpu.intel.com/device.count": "4"}, **{"gpu.intel.com/i915": "12"})
    assert verdict(tmp_path, node).reason is Reason.NO_USABLE_NODES
