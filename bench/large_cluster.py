"""A large cluster of GPU nodes with running and waiting pods, as values in memory."""

import random
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from plimsoll.cluster.queues import NO_LOAD, QueuedPods
from plimsoll.errors import PlimsollError
from plimsoll.labels import VISIBLE_DEVICES
from plimsoll.model import Snapshot
from plimsoll.model.api import Environment
from plimsoll.model.cluster import Node, Pod
from plimsoll.model.kai import Queue
from plimsoll.model.karpenter import NodePool

GPUS: Final = 8
PRODUCTS: Final = {
    "p4d.24xlarge": "NVIDIA-A100-SXM4-40GB",
    "p5.48xlarge": "NVIDIA-H100-80GB-HBM3",
    "g6.48xlarge": "NVIDIA-L4",
    "g5.48xlarge": "NVIDIA-A10G",
    "g6e.48xlarge": "NVIDIA-L40S",
    "p4de.24xlarge": "NVIDIA-A100-SXM4-80GB",
}
"""Instance types with 8 GPUs each, by GPU product."""
SIZES: Final = (50, 80, 100, 110, 130, 200, 250, 300, 330, 400, 470, 500, 520, 600, 650, 750, 800, 950)
"""Thousandths of a GPU that pods request."""
_CONTAINER: Final = {"name": "main", "resources": {"requests": {"cpu": "500m", "memory": "2Gi"}}}


@dataclass(frozen=True)
class Situation:
    """Properties of a cluster besides its size."""

    classes: int = 20
    """Number of classes of waiting pods; classes differ by queue."""
    products: int = 1
    """Number of GPU products. Nodes and classes use them in turn; with several products, each class requires one."""
    free_milli: int = 0
    """Thousandths of one GPU that are free on every node."""
    queue_limit: int = 0
    """GPUs that each queue may have in addition to those of running pods; 0: there are no queues."""


def a_cluster(nodes: int, pods: int, waiting: int, situation: Situation) -> Snapshot:
    """A cluster whose running pods fill the GPUs of the nodes, alone or in pairs. Every 50th node has four free
    GPUs."""
    running = running_pods(pods, waiting)
    snapshot = Snapshot.model_construct(
        environment=Environment.default(),
        nodes=tuple(Node.read(node_manifest(number, situation.products)) for number in range(nodes)),
        node_pools=(_node_pool(situation.products),),
        pods=(
            *(Pod.read(running_manifest(number, nodes, running, situation.free_milli)) for number in range(running)),
            *(waiting_pod(number, number % situation.classes, situation.products) for number in range(waiting)),
        ),
    )
    return snapshot.model_copy(update={"queues": _queues(snapshot, situation)}) if situation.queue_limit else snapshot


def running_pods(pods: int, waiting: int) -> int:
    """Number of running pods. Raises PlimsollError if more pods wait than there are."""
    if waiting > pods:
        raise PlimsollError(f"{waiting} of {pods} pods are to wait.", "Give --pods at least as many as --waiting.")
    return pods - waiting


def waiting_pod(number: int, of_class: int, products: int = 1) -> Pod:
    """An unschedulable pod; classes differ by queue."""
    return Pod.read(waiting_manifest(number, of_class, products))


def waiting_manifest(number: int, of_class: int, products: int = 1) -> dict[str, Any]:
    milli = random.Random(number).choice(SIZES)
    product = {"nvidia.com/gpu.product": list(PRODUCTS.values())[of_class % products]}
    return _pod(
        f"waiting-{number}",
        {"kai.scheduler/queue": queue_name(of_class)},
        {"gpu-fraction": f"{milli / 1000:g}"},
        {"nodeSelector": product} if products > 1 else {},
        {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]},
    )


def queue_name(of_class: int) -> str:
    return f"team-{of_class:02}"


def running_manifest(number: int, nodes: int, running: int, free_milli: int = 0) -> dict[str, Any]:
    node, rank = number % nodes, number // nodes
    gpus = GPUS // 2 if node % 50 == 0 else GPUS
    gpu, on_node = rank % gpus, (running - node + nodes - 1) // nodes
    together = len(range(gpu, on_node, gpus))
    whole = 1 - free_milli / 1000 if gpu == gpus - 1 else 1.0
    fraction = f"{whole / together:.3f}" if together > 1 else f"{min(0.9999, whole):g}"
    labels = {"kai.scheduler/queue": queue_name(number % 20), "runai-gpu-group": f"group-{node}-{gpu}"}
    told = {"gpu-fraction": fraction, VISIBLE_DEVICES: f"GPU-{node}-{gpu}"}
    return _pod(f"running-{number}", labels, told, {"nodeName": f"node-{node:05}"}, {"phase": "Running"})


def _queues(snapshot: Snapshot, situation: Situation) -> tuple[Queue, ...]:
    """A queue for each class and one for running pods, below a common parent."""
    queued = QueuedPods()
    queued.update(snapshot)
    loads = queued.loads
    names = [queue_name(number) for number in range(max(20, situation.classes))]
    used = {name: -(-loads.get(name, NO_LOAD).allocated.gpu // 1000) for name in names}
    return _queue("all", "", -1), *(_queue(name, "all", used[name] + situation.queue_limit) for name in names)


def _queue(name: str, parent: str, limit: int) -> Queue:
    host = {"quota": -1, "limit": -1}
    resources = {"gpu": {"quota": -1, "limit": limit}, "cpu": host, "memory": host}
    return Queue.read({"metadata": {"name": name}, "spec": {"parentQueue": parent, "resources": resources}})


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


@lru_cache(maxsize=8)
def _node_pool(products: int) -> NodePool:
    return NodePool.read(node_pool_manifest(products))


def node_pool_manifest(products: int = 1) -> dict[str, Any]:
    requirement = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": list(PRODUCTS)[:products]}
    return {
        "metadata": {"name": "gpus"},
        "spec": {"template": {"spec": {"requirements": [requirement], "nodeClassRef": {"group": "example.com"}}}},
    }


def node_manifest(number: int, products: int = 1) -> dict[str, Any]:
    instance_type = list(PRODUCTS)[number % products]
    return {
        "metadata": {
            "name": f"node-{number:05}",
            "labels": {
                "node.kubernetes.io/instance-type": instance_type,
                "karpenter.sh/nodepool": "gpus",
                "nvidia.com/gpu.product": PRODUCTS[instance_type],
                "nvidia.com/gpu.count": str(GPUS),
                "nvidia.com/gpu.memory": "40960",
            },
        },
        "status": {
            "allocatable": {"nvidia.com/gpu": str(GPUS), "cpu": "95", "memory": "1100Gi"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
