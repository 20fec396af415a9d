"""What pods take of their queues: GPUs that are allocated, and the part that KAI may not take back."""

from dataclasses import dataclass
from typing import Final

from plimsoll.labels import QUEUE
from plimsoll.model.cluster import Pod
from plimsoll.model.kai import GPUShare
from plimsoll.plan.pods import ASSUMED_MILLI

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

    def __sub__(self, other: "QueueLoad") -> "QueueLoad":
        return QueueLoad(self.allocated - other.allocated, self.non_preemptible - other.non_preemptible)


NO_LOAD: Final = QueueLoad()


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
