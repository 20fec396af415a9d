"""Existing nodes whose GPUs are shared as several devices each, by time-slicing or MPS."""

from plimsoll.model import Reason, Verdict
from plimsoll.model.api import Workspace
from plimsoll.model.cluster import Node
from plimsoll.plan import validate
from tests.builders import A100, a_node, a_snapshot, a_workspace


def verdict_of(workspace: Workspace, *nodes: Node) -> Verdict:
    [verdict] = validate(a_snapshot(workspace, *nodes))
    return verdict


def shared(strategy: str, replicas: int = 4, count: int = 2) -> Node:
    more = {"nvidia.com/gpu.replicas": str(replicas), "nvidia.com/gpu.sharing-strategy": strategy}
    return a_node(product=f"{A100}-SHARED", count=count, more_labels=more, allocatable=count * replicas)


def test_time_slicing_multiplies_devices_and_no_memory() -> None:
    node = shared("time-slicing")
    verdict = verdict_of(a_workspace(gpu_memory_gib=160), node)
    assert verdict.accepted, verdict.message
    assert verdict.gpus_per_node == 8
    assert any("shared by time-slicing" in warning for warning in verdict.warnings)
    assert verdict_of(a_workspace(gpu_memory_gib=161), node).reason is Reason.INSUFFICIENT_GPU_MEMORY


def test_a_pod_has_one_device_under_mps_with_its_part_of_the_memory() -> None:
    verdict = verdict_of(a_workspace(gpu_memory_gib=20), shared("mps"))
    assert verdict.accepted, verdict.message
    assert verdict.gpus_per_node == 1
    assert any("shared by MPS" in warning for warning in verdict.warnings)
    refused = verdict_of(a_workspace(gpu_memory_gib=21), shared("mps"))
    assert refused.reason is Reason.INSUFFICIENT_GPU_MEMORY
    assert "20480 MiB" in refused.message


def test_shared_and_whole_gpus_are_not_uniform() -> None:
    assert (
        verdict_of(a_workspace(), shared("time-slicing"), a_node("whole", count=2)).reason is Reason.NON_UNIFORM_NODES
    )


def test_an_accelerator_partition_is_refused_on_shared_gpus() -> None:
    verdict = verdict_of(a_workspace(partition={"mode": "accelerator", "count": 1}), shared("time-slicing"))
    assert verdict.reason is Reason.NO_USABLE_NODES
    assert "its GPUs are shared" in verdict.message
