"""What pods take of their queues: GPUs that are allocated, and the part that KAI may not take back."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from plimsoll.model.labels import GPU_RESOURCE, QUEUE
from plimsoll.model.node import Node
from plimsoll.model.pod import Pod
from plimsoll.model.share import GPUShare
from plimsoll.plan.gpu_labels import GpuLabels, parse_gpu_labels
from plimsoll.plan.preemptibility import is_preemptible
from plimsoll.plan.shares import ASSUMED_MILLI, read_shares

PROJECT: Final = "project"
"""Label that KAI takes for the queue where a pod has no label of one."""
DEFAULT_QUEUE: Final = "default-queue"
DEFAULT_SCHEDULER: Final = "default-scheduler"


@dataclass(frozen=True, slots=True)
class QueueLoad:
    """Thousandths of a GPU."""

    allocated: int = 0
    """Of pods that are bound."""
    non_preemptible: int = 0
    """The part of `allocated` that KAI may not take back."""

    def __add__(self, other: "QueueLoad") -> "QueueLoad":
        return QueueLoad(self.allocated + other.allocated, self.non_preemptible + other.non_preemptible)


def queue_of(pod: Pod, queue_scheduler: str) -> str:
    """The queue of a pod as KAI finds it, its owner's label aside; empty: of another scheduler, and names none."""
    named = pod.labels.get(QUEUE, "")
    # A cluster may serve queues' pods by the default scheduler, which itself knows no queues.
    if named or pod.scheduler_name != queue_scheduler or queue_scheduler == DEFAULT_SCHEDULER:
        return named
    return pod.labels.get(PROJECT) or DEFAULT_QUEUE


def gpu_milli(share: GPUShare, memory_mib: int | None) -> int:
    """Thousandths of GPUs that a share takes in all; `memory_mib` is that of one GPU, None where nobody knows it."""
    known = memory_mib or share.memory_mib is None
    return (share.milli_of(memory_mib or 0) if known else ASSUMED_MILLI) * share.devices


def queue_loads(
    pods: Iterable[Pod], nodes: Iterable[Node], queue_scheduler: str, gpu_resource: str = GPU_RESOURCE
) -> dict[str, QueueLoad]:
    """The load of each queue that pods on nodes are in; pods whose request cannot be read are left out."""
    by_name = {node.name: node for node in nodes}
    loads: defaultdict[str, QueueLoad] = defaultdict(QueueLoad)
    in_queues = (pod for pod in pods if pod.node_name and not pod.finished and queue_of(pod, queue_scheduler))
    for pod, share in ((each.pod, each.share) for each in read_shares(in_queues, gpu_resource).found):
        node = by_name.get(pod.node_name)
        known = parse_gpu_labels(node.labels) if node is not None and share.memory_mib is not None else None
        milli = gpu_milli(share, known.memory_mib if isinstance(known, GpuLabels) else None)
        loads[queue_of(pod, queue_scheduler)] += QueueLoad(milli, 0 if is_preemptible(pod) else milli)
    return dict(loads)
