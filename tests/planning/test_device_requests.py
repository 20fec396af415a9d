"""What pods request on nodes with shared or partitioned GPUs."""

from datetime import UTC, datetime
from typing import Any

from plimsoll.model.api import Workspace
from plimsoll.model.cluster import Node
from plimsoll.plan import plan, validate
from tests.builders import a_node, a_snapshot, a_workspace

SLICES = {"nvidia.com/mig.strategy": "mixed", "nvidia.com/mig-2g.24gb.count": "2"}


def pod_spec(workspace: Workspace, node: Node) -> dict[str, Any]:
    snapshot = a_snapshot(workspace, node)
    creations = plan(snapshot, validate(snapshot), datetime(2026, 1, 1, tzinfo=UTC)).creations
    [creation] = [each for each in creations if each.key.kind != "Service"]
    spec: dict[str, Any] = creation.manifest["spec"]["template"]["spec"]
    return spec


def test_pods_of_a_mig_partition_request_a_slice_and_share_nodes() -> None:
    workspace = a_workspace(partition={"mode": "mig", "profile": "2g.24gb"}, preset="phi-4-mini-instruct")
    spec = pod_spec(workspace, a_node(more_labels=SLICES))
    [container] = spec["containers"]
    assert container["resources"]["limits"] == {"nvidia.com/mig-2g.24gb": "1"}
    assert "--tensor-parallel-size" not in container["args"]
    assert "podAntiAffinity" not in spec["affinity"]


def test_pods_of_an_accelerator_partition_request_some_gpus() -> None:
    workspace = a_workspace(partition={"mode": "accelerator", "count": 2}, preset="phi-4")
    [container] = pod_spec(workspace, a_node(count=8))["containers"]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": "2"}
    assert container["args"][container["args"].index("--data-parallel-size") + 1] == "2"


def test_a_model_is_split_over_gpus_and_not_over_their_devices() -> None:
    node = a_node(count=2, more_labels={"nvidia.com/gpu.replicas": "4"})
    [container] = pod_spec(a_workspace(preset="phi-4"), node)["containers"]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": "8"}
    assert container["args"][container["args"].index("--data-parallel-size") + 1] == "2"
