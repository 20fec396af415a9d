"""Accelerators of other vendors, by the resources of their device plugins and the labels of their discovery."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll.cluster.ledger import OtherAccelerators, other_accelerators
from plimsoll.cost import Prices, savings
from plimsoll.model import Reason, Verdict
from plimsoll.observe.files import snapshot_from_files
from plimsoll.plan import validate
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


@pytest.mark.parametrize(
    ("labels", "resource", "vendor", "product"),
    [
        ({"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM"}, "amd.com/gpu", "AMD", "AMD_Instinct_MI300X_OAM"),
        ({}, "amd.com/gpu", "AMD", ""),
        ({"gpu.intel.com/product": "Max_1100"}, "gpu.intel.com/xe", "Intel", "Max_1100"),
        (
            {"karpenter.k8s.aws/instance-accelerator-name": "trainium"},
            "aws.amazon.com/neuroncore",
            "AWS",
            "trainium",
        ),
        (
            {"cloud.google.com/gke-tpu-accelerator": "tpu-v5"},
            "google.com/tpu",
            "Google",
            "tpu-v5",
        ),
    ],
)
def test_devices_with_product_and_what_is_free(
    tmp_path: Path, labels: dict[str, str], resource: str, vendor: str, product: str
) -> None:
    pods = (a_pod("p", **{resource: "3"}), a_pod("done", "Succeeded", **{resource: "1"}))
    (one,) = found(tmp_path, a_node(labels, **{resource: "8"}), *pods)
    assert (one.vendor, one.resource, one.product) == (vendor, resource, product)
    assert (one.allocatable, one.used, one.free, one.pods) == (8, 3, 5, ("team/p",))


def test_gpus_of_nvidia_and_networks_are_none_of_them(tmp_path: Path) -> None:
    assert not found(tmp_path, a_node({}, **{"nvidia.com/gpu": "8", "rdma/hca": "1", "amd.com/gpu": "0"}))


def test_they_are_listed_and_their_nodes_are_no_saving(tmp_path: Path) -> None:
    idle = a_node({"amd.com/gpu.product-name": "MI300X"}, **{"amd.com/gpu": "8"})
    assert found(tmp_path, idle)
    file = str(tmp_path / "cluster.yaml")
    assert "8 amd.com/gpu (MI300X)" in plimsoll("gpus", "-f", file).stdout
    (shown,) = json.loads(plimsoll("gpus", "-f", file, "-o", "json").stdout)["otherAccelerators"]
    assert (shown["node"], shown["free"]) == ("gpu-1", 8)
    assert not any(group.removable for group in savings(snapshot_from_files([file]), Prices({})).groups)


@pytest.mark.parametrize("resource", ["amd.com/gpu", "gpu.intel.com/xe", "aws.amazon.com/neuron", "google.com/tpu"])
@pytest.mark.parametrize("of", ["preset", "template"])
def test_their_nodes_are_refused_to_workspaces_by_name(tmp_path: Path, resource: str, of: str) -> None:
    """Discovery of NVIDIA's GPUs will never reach them: to wait for it is no advice."""
    container = {"name": "main", "image": "server", "resources": {"limits": {resource: "8"}}}
    preset, template = {"name": "phi-4-mini-instruct"}, {"spec": {"containers": [container]}}
    workspace = {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "Workspace",
        "metadata": {"name": "chat", "namespace": "team", "uid": "chat"},
        "spec": {
            "resource": {"labelSelector": {"matchLabels": {"pool": "theirs"}}},
            "inference": {"preset": preset} if of == "preset" else {"template": template},
        },
    }
    file = tmp_path / "cluster.yaml"

    def verdict(**allocatable: str) -> Verdict:
        file.write_text(yaml.safe_dump_all([a_node({"pool": "theirs"}, **allocatable), workspace]))
        (found,) = validate(snapshot_from_files([str(file)]))
        return found

    refused = verdict(**{resource: "8"})
    assert refused.reason is Reason.NO_USABLE_NODES
    assert f"8 {resource} of " in refused.message
    assert verdict(**{resource: "0"}).reason is Reason.GPU_LABELS_INVALID
