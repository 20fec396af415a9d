"""What the components declare of others' kinds fits those kinds' own definitions, from their Go modules."""

from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from plimsoll.components import (
    ClusterTrainingRuntime,
    ClusterTrainingRuntimeArgs,
    NodePool,
    NodePoolArgs,
    Queue,
    QueueArgs,
)
from plimsoll.sandbox.parts import part
from tests.components.declaring import declared, manifest
from tests.components.templates import TORCH

NODE_CLASS = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}


def assert_valid(definition: Path, resource: dict[str, Any]) -> None:
    """Against the schema of the object's version, with unknown fields refused."""
    if not definition.exists():
        pytest.skip(f"{definition.name} is not installed: plimsoll sandbox install --trainer")
    versions = yaml.safe_load(definition.read_text())["spec"]["versions"]
    version = next(each for each in versions if each["name"] == resource["apiVersion"].rpartition("/")[2])
    jsonschema.validate(resource, _closed(version["schema"]["openAPIV3Schema"]))


def _closed(schema: Any) -> Any:
    """With `additionalProperties: false` where the apiserver would drop a field."""
    if isinstance(schema, list):
        return [_closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
        closed.setdefault("additionalProperties", False)
    if closed.get("x-kubernetes-int-or-string"):
        closed.pop("type", None)
    return closed


@pytest.mark.parametrize(
    "args",
    [
        {},
        {"resources": {"gpu": {"quota": 0.5, "over_quota_weight": 2, "limit": -1}}, "priority": 100},
        {"parent_queue": "root", "preempt_min_runtime": "10m", "reclaim_min_runtime": "1h", "display_name": "A"},
    ],
)
def test_queue_fits_kai(args: QueueArgs) -> None:
    resources = declared(lambda: Queue("q", args))
    assert_valid(part("kai").cached / "crds" / "scheduling.run.ai_queues.yaml", manifest(resources, "Queue"))


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"ml_policy": {"num_nodes": 2, "torch": {"num_proc_per_node": "gpu"}}},
        {"ml_policy": {"num_nodes": 2, "mpi": {"num_proc_per_node": 8, "run_launcher_as_node": True}}},
        {"pod_group_policy": {"coscheduling": {"schedule_timeout_seconds": 60}}},
        {"pod_group_policy": {"kai_scheduler": {"queue": "research"}}},
    ],
)
def test_training_runtime_fits_trainer(more: ClusterTrainingRuntimeArgs) -> None:
    resources = declared(lambda: ClusterTrainingRuntime("torch", {"template": TORCH, **more}))
    assert_valid(
        part("trainer").cached / "crds" / "trainer.kubeflow.org_clustertrainingruntimes.yaml",
        manifest(resources, "ClusterTrainingRuntime"),
    )


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"limits": {"nvidia.com/gpu": "8", "cpu": "96"}, "weight": 100},
        {"taints": [{"key": "sku", "value": "gpu"}], "startup_taints": [{"key": "boot", "effect": "NoExecute"}]},
        {"requirements": [{"key": "karpenter.k8s.aws/instance-gpu-count", "operator": "Gt", "values": ["0"]}]},
        {"disruption": {"consolidation_policy": "Balanced", "consolidate_after": "Never"}, "expire_after": "720h"},
        {"replicas": 2},
    ],
)
def test_node_pool_fits_karpenter(more: NodePoolArgs) -> None:
    resources = declared(lambda: NodePool("gpu", {"node_class_ref": NODE_CLASS, **more}))
    assert_valid(
        part("karpenter").cached / "crds" / "karpenter" / "karpenter.sh_nodepools.yaml", manifest(resources, "NodePool")
    )
