"""A large cluster of GPU nodes with pods that run and pods that wait, made of values."""

import random
from functools import lru_cache
from typing import Any, Final

from plimsoll.model.environment import Environment
from plimsoll.model.node import Node
from plimsoll.model.node_pool import NodePool
from plimsoll.model.pod import Pod
from plimsoll.model.snapshot import Snapshot

GPUS: Final = 8
PRODUCT: Final = "NVIDIA-A100-SXM4-40GB"
INSTANCE_TYPE: Final = "p4d.24xlarge"
SIZES: Final = (50, 80, 100, 110, 130, 200, 250, 300, 330, 400, 470, 500, 520, 600, 650, 750, 800, 950)
"""Thousandths that pods ask for."""
_CONTAINER: Final = {"name": "main", "resources": {"requests": {"cpu": "500m", "memory": "2Gi"}}}


def a_cluster(nodes: int, pods: int, waiting: int, classes: int) -> Snapshot:
    """Pods that run fill the GPUs of the nodes, alone or two together; every 50th node has four free GPUs."""
    running = pods - waiting
    return Snapshot.model_construct(
        environment=Environment.default(),
        nodes=tuple(_node(number) for number in range(nodes)),
        node_pools=(_node_pool(),),
        pods=(
            *(_running(number, nodes, running) for number in range(running)),
            *(waiting_pod(number, number % classes) for number in range(waiting)),
        ),
    )


def waiting_pod(number: int, of_class: int) -> Pod:
    """A pod that its scheduler found no place for; classes differ by queue."""
    return Pod.read(waiting_manifest(number, of_class))


def waiting_manifest(number: int, of_class: int) -> dict[str, Any]:
    milli = random.Random(number).choice(SIZES)
    return _pod(
        f"waiting-{number}",
        {"kai.scheduler/queue": f"team-{of_class:02}"},
        {"gpu-fraction": f"{milli / 1000:g}"},
        {},
        {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]},
    )


def _running(number: int, nodes: int, running: int) -> Pod:
    return Pod.read(running_manifest(number, nodes, running))


def running_manifest(number: int, nodes: int, running: int) -> dict[str, Any]:
    node, rank = number % nodes, number // nodes
    gpus = GPUS // 2 if node % 50 == 0 else GPUS
    gpu, on_node = rank % gpus, (running - node + nodes - 1) // nodes
    together = len(range(gpu, on_node, gpus))
    fraction = f"{1 / together:.3f}" if together > 1 else "0.9999"
    labels = {"kai.scheduler/queue": f"team-{number % 20:02}", "runai-gpu-group": f"group-{node}-{gpu}"}
    return _pod(
        f"running-{number}", labels, {"gpu-fraction": fraction}, {"nodeName": f"node-{node:05}"}, {"phase": "Running"}
    )


def _pod(
    name: str, labels: dict[str, str], annotations: dict[str, str], spec: dict[str, Any], status: dict[str, Any]
) -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": f"uid-{name}",
            "labels": labels,
            "annotations": annotations,
        },
        "spec": {"schedulerName": "kai-scheduler", "containers": [_CONTAINER], **spec},
        "status": status,
    }


@lru_cache(maxsize=1)
def _node_pool() -> NodePool:
    return NodePool.read(node_pool_manifest())


def node_pool_manifest() -> dict[str, Any]:
    requirement = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [INSTANCE_TYPE]}
    return {
        "metadata": {"name": "a100"},
        "spec": {"template": {"spec": {"requirements": [requirement], "nodeClassRef": {"group": "example.com"}}}},
    }


def _node(number: int) -> Node:
    return Node.read(node_manifest(number))


def node_manifest(number: int) -> dict[str, Any]:
    return {
        "metadata": {
            "name": f"node-{number:05}",
            "labels": {
                "node.kubernetes.io/instance-type": INSTANCE_TYPE,
                "karpenter.sh/nodepool": "a100",
                "nvidia.com/gpu.product": PRODUCT,
                "nvidia.com/gpu.count": str(GPUS),
                "nvidia.com/gpu.memory": "40960",
            },
        },
        "status": {
            "allocatable": {"nvidia.com/gpu": str(GPUS), "cpu": "95", "memory": "1100Gi"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
