"""`plimsoll gpus` shows the ledger of manifests."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from plimsoll.cli import app
from plimsoll.labels import GPU_GROUP, RESERVED_GPU
from plimsoll.model.kai import NAMESPACE
from plimsoll.text import counted

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {
        "name": "n1",
        "labels": {
            "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB",
            "nvidia.com/gpu.count": "2",
            "nvidia.com/gpu.memory": "81920",
        },
    },
    "status": {"allocatable": {"nvidia.com/gpu": "2", "cpu": "8", "memory": "64Gi"}},
}
RESERVATION = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "r",
        "namespace": NAMESPACE,
        "labels": {GPU_GROUP: "g"},
        "annotations": {RESERVED_GPU: "GPU-1"},
    },
    "spec": {"nodeName": "n1", "containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]},
}
SHARE = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "a",
        "namespace": "team",
        "labels": {GPU_GROUP: "g"},
        "annotations": {"gpu-memory": "20480"},
    },
    "spec": {"nodeName": "n1", "containers": [{"name": "c"}]},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "cluster.yaml").write_text(yaml.safe_dump_all([NODE, RESERVATION, SHARE]))
    return tmp_path


def test_json_has_each_group_in_mib(folder: Path) -> None:
    done = CliRunner().invoke(app, ["gpus", "-f", str(folder), "--output", "json"])
    assert done.exit_code == 0, done.output
    (node,) = json.loads(done.stdout)["nodes"]
    assert (node["name"], node["freeGPUs"], node["freeMilli"]) == ("n1", 1, [749.939, 1000])
    (group,) = node["groups"]
    assert (group["usedMiB"], group["allocatedMiB"], group["releasingMiB"]) == (20480, 20480, 0)
    assert (group["gpu"], group["pods"]) == ("GPU-1", ["team/a"])


def a_node_of_parts(product: str, **allocatable: str) -> dict[str, Any]:
    labels = {"nvidia.com/gpu.product": product, "nvidia.com/gpu.memory": "40960"}
    given = {f"nvidia.com/{name}": count for name, count in allocatable.items()}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "parts", "labels": labels},
        "status": {"allocatable": given},
    }


def a_pod_of_parts(name: str, resource: str, count: int) -> dict[str, Any]:
    container = {"name": "c", "resources": {"limits": {f"nvidia.com/{resource}": count}}}
    metadata = {"name": name, "namespace": "team"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"nodeName": "parts", "containers": [container]},
    }


def test_parts_of_gpus_are_counted_by_resource(folder: Path) -> None:
    node = a_node_of_parts("A100", **{"gpu": "1", "gpu.shared": "8", "mig-1g.5gb": "7", "mig-2g.10gb": "0"})
    pods = [a_pod_of_parts("b", "gpu.shared", 2), a_pod_of_parts("a", "gpu.shared", 3)]
    (folder / "cluster.yaml").write_text(yaml.safe_dump_all([node, *pods]))
    done = CliRunner().invoke(app, ["gpus", "-f", str(folder), "--output", "json"])
    assert done.exit_code == 0, done.output
    (found,) = json.loads(done.stdout)["nodes"]
    assert (found["gpus"], found["freeGPUs"]) == (1, 1)
    assert [tuple(each.values()) for each in found["devices"]] == [
        ("nvidia.com/gpu.shared", 8, 5, ["team/a", "team/b"], 3),
        ("nvidia.com/mig-1g.5gb", 7, 0, [], 7),
    ]


def test_a_node_without_whole_gpus_is_shown_with_its_parts(folder: Path) -> None:
    parts = [a_node_of_parts("A100", **{"mig-1g.5gb": "7"}), a_pod_of_parts("slice", "mig-1g.5gb", 9)]
    (folder / "cluster.yaml").write_text(yaml.safe_dump_all(parts))
    done = CliRunner().invoke(app, ["gpus", "-f", str(folder)])
    assert done.exit_code == 0
    assert re.search(r"parts +A100 +7 mig-1g\.5gb +9 +0 +team/slice", done.output)


def test_replicas_that_keep_the_name_are_no_whole_gpus(folder: Path) -> None:
    node = a_node_of_parts("A100-SHARED", gpu="4")
    node["metadata"]["labels"] |= {"nvidia.com/gpu.count": "1", "nvidia.com/gpu.replicas": "4"}
    for used, free in ((1, 3), (3, 1)):
        (folder / "cluster.yaml").write_text(yaml.safe_dump_all([node, a_pod_of_parts("one", "gpu", used)]))
        done = CliRunner().invoke(app, ["gpus", "-f", str(folder)])
        assert re.search(rf" {counted(used, 'device')} used +{used} +0", done.output)
        assert re.search(rf" {counted(free, 'device')} free +0 +{free}", done.output)


def test_a_discrepancy_is_exit_code_2(folder: Path) -> None:
    (folder / "cluster.yaml").write_text(yaml.safe_dump_all([NODE, SHARE]))
    done = CliRunner().invoke(app, ["gpus", "-f", str(folder)])
    assert done.exit_code == 2
    assert "NoReservation: no reservation pod holds the GPU of group g" in done.output
