"""Objects of other projects' kinds that the components declare are valid by those kinds' definitions, from their Go
modules."""

from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from plimsoll.components import (
    ClusterTrainingRuntime,
    ClusterTrainingRuntimeArgs,
    DataCache,
    InvalidArgumentError,
    NodePool,
    NodePoolArgs,
    Queue,
    QueueArgs,
    Topology,
)
from plimsoll.sandbox.parts import part
from tests.components.declaring import declared, manifest
from tests.components.templates import TORCH
from tests.shared import shared

POOL: NodePoolArgs = {"node_class_ref": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}}


def assert_valid(definition: Path, resource: dict[str, Any]) -> None:
    """Validates against the schema of the object's version; unknown fields are refused."""
    if not definition.exists():
        pytest.skip(f"{definition.name} is not installed: plimsoll sandbox install --trainer")
    _validator(definition, resource["apiVersion"].rpartition("/")[2]).validate(resource)


@cache
def _validator(definition: Path, version: str) -> jsonschema.Draft202012Validator:
    """Some definitions have a megabyte of YAML, for which the loader in Python needs seconds."""
    versions = yaml.load(definition.read_text(), Loader=yaml.CSafeLoader)["spec"]["versions"]
    found = next(each for each in versions if each["name"] == version)
    schema = _closed(found["schema"]["openAPIV3Schema"])
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def _closed(schema: Any) -> Any:
    """The schema with `additionalProperties: false` where the apiserver would drop a field."""
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
    resources = declared(lambda: NodePool("gpu", {**POOL, **more}))
    assert_valid(
        part("karpenter").cached / "crds" / "karpenter" / "karpenter.sh_nodepools.yaml", manifest(resources, "NodePool")
    )


def test_topology_and_data_cache_fit_kai_and_leader_worker_set() -> None:
    rack = "cloud.provider.com/topology-rack"

    def program() -> None:
        topology = Topology("cluster", {"levels": [{"node_label": rack, "alias": "rack"}]})
        table: Any = {"metadata_location": "s3://a/m.json", "schema_name": "a", "table_name": "b"}
        args: Any = {"table": table, "queue": "vision", "topology": topology.topology_name, "level": rack}
        DataCache("cache", args)

    resources = declared(program)
    assert_valid(shared("crds/kai.scheduler_topologies.yaml"), manifest(resources, "Topology"))
    cache = manifest(resources, "LeaderWorkerSet")
    assert_valid(part("lws").cached / "crds" / "leaderworkerset.x-k8s.io_leaderworkersets.yaml", cache)
    assert cache["metadata"]["annotations"]["kai.scheduler/topology"] == "cluster"


@pytest.mark.parametrize(
    ("levels", "words"),
    [
        ([], "levels: needs at least one entry"),
        ([{"node_label": "a"}, {"node_label": "a"}], "a is listed twice"),
        ([{"node_label": "kubernetes.io/hostname"}, {"node_label": "a"}], "can only be the last"),
    ],
)
def test_a_topology_that_kai_would_refuse_is_refused(levels: Any, words: str) -> None:
    with pytest.raises(InvalidArgumentError, match=words):
        declared(lambda: Topology("cluster", {"levels": levels}))
