"""`plimsoll gpus` shows the ledger of manifests."""

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from plimsoll.cli.gpus import app
from plimsoll.labels import GPU_GROUP, RESERVED_GPU
from plimsoll.model.kai import NAMESPACE

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
    done = CliRunner().invoke(app, ["-f", str(folder), "--output", "json"])
    assert done.exit_code == 0, done.output
    (node,) = json.loads(done.stdout)["nodes"]
    assert (node["name"], node["freeGPUs"], node["freeMilli"]) == ("n1", 1, [749.939, 1000])
    (group,) = node["groups"]
    assert (group["usedMiB"], group["allocatedMiB"], group["releasingMiB"]) == (20480, 20480, 0)
    assert (group["gpu"], group["pods"]) == ("GPU-1", ["team/a"])


def test_a_discrepancy_is_exit_code_2(folder: Path) -> None:
    (folder / "cluster.yaml").write_text(yaml.safe_dump_all([NODE, SHARE]))
    done = CliRunner().invoke(app, ["-f", str(folder)])
    assert done.exit_code == 2
    assert "NoReservation: no reservation pod holds the GPU of group g" in done.output
