"""A component refuses what its kind cannot take, before anything is declared, and names the field."""

from collections.abc import Callable
from typing import Any

import pulumi
import pytest

from plimsoll.components import (
    ClusterTrainingRuntime,
    Environment,
    GpuDiscovery,
    NodePool,
    Queue,
    TrainingRuntime,
    Workspace,
)
from plimsoll.errors import InvalidObjectError
from tests.components.declaring import declared

KWOK = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass"}
PRESET = {"preset": {"name": "phi-4"}}
TEMPLATE = {"template": {"spec": {"containers": [{"name": "main", "image": "own:1"}]}}}


def refusal(program: Callable[[], Any]) -> str:
    with pytest.raises(InvalidObjectError) as caught:
        declared(program)
    return str(caught.value)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({"inference": {**PRESET, "replica": 1}}, "Workspace w: inference.replica: unknown field"),
        ({"inference": {**PRESET, "replicas": -1}}, "inference.replicas"),
        ({"inference": {**PRESET, "gpuMemoryGiB": 0}}, "inference.gpuMemoryGiB"),
        ({"inference": {**PRESET, **TEMPLATE}}, "preset and template exclude each other"),
        ({"inference": {}}, "needs a preset or a template"),
        ({"resource": {"labelSelector": {"matchLabels": {"a b": "c"}}}}, "'a b' is not a label key"),
    ],
)
def test_workspace(args: dict[str, Any], words: str) -> None:
    assert words in refusal(lambda: Workspace("w", args))


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({"resources": {"gpu": {"quota": 2, "limit": 1}}}, "Queue q: resources.gpu: limit 1 is below quota 2"),
        ({"resources": {"gpu": {"quota": -2}}}, "resources.gpu.quota: must be at least 0, or -1 for unlimited"),
        ({"parent": "x"}, "parent: unknown field"),
    ],
)
def test_queue(args: dict[str, Any], words: str) -> None:
    assert words in refusal(lambda: Queue("q", args))


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({"labels": {"nvidia.com/gfd.timestamp": "1"}}, "labels: nvidia.com/gfd.timestamp"),
        ({"labels": {"built": "2026-01-31T10-00-00"}}, "looks like a time or a hash"),
        ({"labels": {"started": "1767225600"}}, "looks like a time or a hash"),
        ({"annotations": {"commit": "0123456789abcdef0123456789abcdef01234567"}}, "looks like a time or a hash"),
        ({"annotations": {"config-checksum": "any"}}, "looks like a time or a hash"),
        ({"annotations": {"run": "9f1c2d3e-4b5a-4c6d-8e7f-0a1b2c3d4e5f"}}, "looks like a time or a hash"),
        ({"limits": {"nvidia.com/gpu": "many"}}, "'many' is not a Kubernetes quantity"),
        ({"limits": {"cpu": "-1"}}, "cpu: -1 is negative"),
        ({"requirements": [{"key": "a", "operator": "In"}]}, "requirements[0]: operator In needs at least one value"),
        ({"requirements": [{"key": "a", "operator": "Gt", "values": ["x"]}]}, "takes one whole number"),
        ({"disruption": {"consolidate_after": "soon"}}, "disruption.consolidate"),
        ({"replicas": 2, "weight": 3}, "weight means nothing beside replicas"),
        ({"replicas": 2, "limits": {"cpu": "4"}}, "limited by 'nodes' alone"),
    ],
)
def test_node_pool(args: dict[str, Any], words: str) -> None:
    assert words in refusal(lambda: NodePool("gpu", {"node_class_ref": KWOK, **args}))


@pytest.mark.parametrize("value", ["a100-80gb", "v2", "2026", "team-1", "deadbeef"])
def test_node_pool_takes_labels_that_last(value: str) -> None:
    declared(lambda: NodePool("gpu", {"node_class_ref": KWOK, "labels": {"class": value}}))


def test_node_pool_needs_a_node_class() -> None:
    assert "NodePool gpu: nodeClassRef: Field required" in refusal(lambda: NodePool("gpu", {}))


def test_training_runtime() -> None:
    pods = {"spec": {"schedulerName": "volcano", "containers": [{"name": "node"}]}}
    job = {"name": "node", "template": {"spec": {"template": pods}}}
    args: Any = {
        "pod_group_policy": {"kai_scheduler": {"queue": "research"}},
        "template": {"spec": {"replicated_jobs": [job]}},
    }
    words = refusal(lambda: TrainingRuntime("torch", args))
    assert words.startswith("TrainingRuntime torch: ")
    assert "template.spec.replicatedJobs[0].template.spec.template.spec.schedulerName is 'volcano'" in words
    assert "ClusterTrainingRuntime torch: namespace: unknown field" in refusal(
        lambda: ClusterTrainingRuntime("torch", {"namespace": "vision", **args})
    )


def test_environment() -> None:
    words = refusal(lambda: Environment("e", {"node_auto_provisioning": "disabled", "provisioner": "nodeclaim"}))
    assert "provisioner 'nodeclaim' does not fit nodeAutoProvisioning 'disabled'" in words


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({"version": ">=0.17"}, "version '>=0.17' is not exact"),
        ({"version": "0.17"}, "is not exact"),
        ({"chart": "oci://charts.example/a", "repository": "https://charts.example"}, "repository goes with"),
        ({"namespace": "default"}, "set createNamespace to false"),
        ({"namespace": "default", "create_namespace": False}, "namespace 'default' is not for system software"),
        ({"gfd": {"mode": "perhaps"}}, "gfd.mode"),
        ({"gfd": {"sleep_interval": "30"}}, "sleep"),
        ({"config": {"default": "a", "map": {"b": "version: v1"}}}, "default 'a' is not in the map (b)"),
        ({"mig_strategy": "all"}, "mig"),
        ({"pool_taints": [{"key": "a", "effect": "Never"}]}, "pool_taints: effect"),
    ],
)
def test_gpu_discovery(args: dict[str, Any], words: str) -> None:
    assert words in refusal(lambda: GpuDiscovery("gpu-discovery", args))


def test_values_that_are_known_late_are_checked_when_they_are() -> None:
    late = pulumi.Output.from_input({"gpu": {"quota": 2, "limit": 1}})
    assert "limit 1 is below quota 2" in refusal(lambda: Queue("q", {"resources": late}))
