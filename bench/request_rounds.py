"""The number of rounds in which the demand planner requests nodes until all shares of a trace have a place."""

from collections.abc import Sequence
from typing import Final

from bench.trace import TracePod
from plimsoll.labels import GPU_COUNT, GPU_MEMORY, GPU_PRODUCT, GPU_RESOURCE, INSTANCE_TYPE, NODEPOOL
from plimsoll.model import Snapshot
from plimsoll.model.api import Environment
from plimsoll.model.cluster import InstanceType, Node, Pod
from plimsoll.model.karpenter import NodePool
from plimsoll.plan.demand import DemandPlanner, PlannedNode, RequestedNode
from plimsoll.plan.requests import NodeRequest

_MIB: Final = 16384
_POOL: Final = "gpus"
_SOME: Final = "some"
"""The model if a trace has none."""
_MOST: Final = 20
_READY: Final = {"type": "Ready", "status": "True"}


def rounds(pods: Sequence[TracePod]) -> int:
    """Simulates waiting shares in a cluster without nodes, whose NodePool has nodes with one GPU of each model.

    In each round, the requested nodes are first in flight and then exist; no pod is bound.
    """
    models = sorted({model for pod in pods for model in pod.models} or {_SOME})
    cluster = Snapshot.model_construct(
        environment=Environment.default(),
        instance_types=tuple(InstanceType(_type(model), "", 1, _MIB, f"NVIDIA {model}") for model in models),
        node_pools=(_node_pool(models),),
        pods=tuple(_pod(pod) for pod in pods),
    )
    planner, asked = DemandPlanner(), 0
    new = planner.plan(cluster).nodes
    while new and asked < _MOST:
        asked += 1
        coming = _requested(asked, new)
        new = planner.plan(cluster, coming).nodes
        if not new:
            cluster = cluster.model_copy(update={"nodes": (*cluster.nodes, *map(_node, coming))})
            new = planner.plan(cluster).nodes
    return asked


def _requested(number: int, nodes: Sequence[PlannedNode]) -> list[RequestedNode]:
    return [NodeRequest.of(node).requested_node(f"{number}-{at}") for at, node in enumerate(nodes)]


def _type(model: str) -> str:
    return f"{model.casefold()}.one"


def _node_pool(models: Sequence[str]) -> NodePool:
    requirement = {"key": INSTANCE_TYPE, "operator": "In", "values": [_type(model) for model in models]}
    spec = {"requirements": [requirement], "nodeClassRef": {"group": "example.com"}}
    return NodePool.read({"metadata": {"name": _POOL}, "spec": {"template": {"spec": spec}}})


def _node(requested: RequestedNode) -> Node:
    labels = {
        INSTANCE_TYPE: requested.instance_types[0],
        NODEPOOL: _POOL,
        GPU_PRODUCT: requested.kind.replace(" ", "-"),
        GPU_COUNT: "1",
        GPU_MEMORY: str(_MIB),
    }
    status = {"allocatable": {GPU_RESOURCE: "1", "cpu": "9999", "memory": "99Ti"}, "conditions": [_READY]}
    return Node.read({"metadata": {"name": requested.name, "labels": labels}, "status": status})


def _pod(pod: TracePod) -> Pod:
    spec: dict[str, object] = {"schedulerName": "kai-scheduler", "containers": [{"name": "main"}]}
    if pod.models:
        products = [f"NVIDIA-{model}" for model in pod.models]
        term = {"matchExpressions": [{"key": GPU_PRODUCT, "operator": "In", "values": products}]}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
        spec["affinity"] = {"nodeAffinity": required}
    annotations = {"gpu-fraction": f"{pod.gpu_milli / 1000:g}"}
    metadata = {"name": pod.name, "namespace": "trace", "uid": pod.key, "annotations": annotations}
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    return Pod.read({"metadata": metadata, "spec": spec, "status": {"phase": "Pending", "conditions": [condition]}})
