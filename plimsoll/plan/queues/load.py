"""What pods use of their queues: allocated GPUs, CPU and memory, and the part that KAI may not reclaim."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from plimsoll.labels import QUEUE
from plimsoll.model import Snapshot
from plimsoll.model.cluster import Node, Pod
from plimsoll.model.kai import GPUShare
from plimsoll.plan.nodes import GpuLabels, parse_gpu_labels
from plimsoll.plan.pods import ASSUMED_MILLI, PodChanges, PodShare, node_of, read_shares

PREEMPTIBILITY: Final = "kai.scheduler/preemptibility"
"""Label of a pod or its owner: `preemptible`, `non-preemptible` or `semi-preemptible`."""
PRIORITY_CLASS: Final = "priorityClassName"
"""Label of a pod or its owner that takes precedence over the pod's own priority class."""

CLASSES: Final = {"train": 50, "build-preemptible": 75, "build": 100, "inference": 125}
"""KAI's PriorityClasses."""
NON_PREEMPTIBLE_FROM: Final = 100


def is_preemptible(pod: Pod) -> bool:
    """Whether KAI may preempt the pod: by the preemptibility label, else by the priority, that of KAI's class if
    labelled.

    Semi-preemptible counts as non-preemptible: its core must fit the quota.
    """
    said = pod.labels.get(PREEMPTIBILITY, "").lower()
    if said in ("preemptible", "non-preemptible", "semi-preemptible"):
        return said == "preemptible"
    return CLASSES.get(pod.labels.get(PRIORITY_CLASS, ""), pod.priority) < NON_PREEMPTIBLE_FROM


PROJECT: Final = "project"
"""Label that KAI uses as the queue if a pod has no queue label."""
DEFAULT_QUEUE: Final = "default-queue"
DEFAULT_SCHEDULER: Final = "default-scheduler"


@dataclass(frozen=True, slots=True)
class QueueLoad:
    """Thousandths of a GPU."""

    allocated: int = 0
    """GPUs of bound pods."""
    non_preemptible: int = 0
    """The part of `allocated` that KAI may not reclaim."""

    def __add__(self, other: "QueueLoad") -> "QueueLoad":
        return QueueLoad(self.allocated + other.allocated, self.non_preemptible + other.non_preemptible)

    def __sub__(self, other: "QueueLoad") -> "QueueLoad":
        return QueueLoad(self.allocated - other.allocated, self.non_preemptible - other.non_preemptible)


NO_LOAD: Final = QueueLoad()


def queue_of(pod: Pod, queue_scheduler: str) -> str:
    """The queue of a pod as KAI determines it, except for labels of its owner; empty if another scheduler's pod names
    none."""
    named = pod.labels.get(QUEUE, "")
    # Pods with queues may use the default scheduler, which does not know queues.
    if named or pod.scheduler_name != queue_scheduler or queue_scheduler == DEFAULT_SCHEDULER:
        return named
    return pod.labels.get(PROJECT) or DEFAULT_QUEUE


def gpu_milli(share: GPUShare, memory_mib: int | None, tflops: int | None = None) -> int:
    """Thousandths of GPUs that a share uses in total; `memory_mib` and `tflops` (thousandths) are those of one GPU,
    None if they are not known."""
    known = (memory_mib or share.memory_mib is None) and (tflops or share.tflops_milli is None)
    return (share.milli_of(memory_mib or 0, tflops or 0) if known else ASSUMED_MILLI) * share.devices


Key = tuple[str, str]
"""(namespace, name)"""


class QueueLoads:
    """What pods that are bound or being bound use of their queues. Pods whose request cannot be read are left out.

    The result depends on the last snapshot only. Not thread-safe.
    """

    def __init__(self) -> None:
        self._depends: tuple[str, str] = ("", "")
        self._counted: dict[Key, tuple[str, QueueLoad]] = {}
        """Queue and load of each pod that counts."""
        self._sums: dict[str, QueueLoad] = {}
        self._in_mib: dict[str, dict[Key, PodShare]] = {}
        """Pods with shares in MiB by node; the node's labels determine their fraction."""
        self._given_nodes: tuple[Node, ...] = ()
        self._nodes: dict[str, Node] = {}

    def update(self, snapshot: Snapshot, changes: PodChanges | None) -> Mapping[str, QueueLoad]:
        """The load of each queue with bound pods. `changes` None: reads all pods."""
        spec = snapshot.environment.spec
        depends = (spec.queue_scheduler, spec.gpu_resource)
        if changes is None or depends != self._depends:
            self._depends, changes = depends, PodChanges((), snapshot.pods)
            self._counted, self._sums, self._in_mib, self._given_nodes, self._nodes = {}, {}, {}, (), {}
        changed = self._take_nodes(snapshot.nodes)
        for pod in changes.gone:
            self._leave(pod)
        bound = (pod for pod in changes.new if self._counts(pod))
        for each in read_shares(bound, spec.gpu_resource).found:
            self._enter(each)
        for name in changed:
            for each in tuple(self._in_mib.get(name, {}).values()):
                self._leave(each.pod)
                self._enter(each)
        return {name: load for name, load in self._sums.items() if load != NO_LOAD}

    def _take_nodes(self, nodes: tuple[Node, ...]) -> Iterable[str]:
        """Names of nodes that changed, were added or removed."""
        if nodes is self._given_nodes:
            return ()
        before, self._given_nodes, self._nodes = self._nodes, nodes, {node.name: node for node in nodes}
        changed = [name for name, node in self._nodes.items() if before.get(name) is not node]
        return [*changed, *(before.keys() - self._nodes.keys())]

    def _counts(self, pod: Pod) -> bool:
        return bool(node_of(pod) and not pod.finished and queue_of(pod, self._depends[0]))

    def _enter(self, each: PodShare) -> None:
        pod, share = each.pod, each.share
        memory = None
        if share.memory_mib is not None:
            self._in_mib.setdefault(node_of(pod), {})[pod.key] = each
            memory = self._gpu_memory(node_of(pod))
        milli = gpu_milli(share, memory)
        load = QueueLoad(milli, 0 if is_preemptible(pod) else milli)
        queue = queue_of(pod, self._depends[0])
        self._counted[pod.key] = (queue, load)
        self._sums[queue] = self._sums.get(queue, NO_LOAD) + load

    def _leave(self, pod: Pod) -> None:
        counted = self._counted.pop(pod.key, None)
        if counted is None:
            return
        queue, load = counted
        self._sums[queue] -= load
        node = node_of(pod)
        in_mib = self._in_mib.get(node)
        if in_mib is not None and in_mib.pop(pod.key, None) is not None and not in_mib:
            del self._in_mib[node]

    def _gpu_memory(self, name: str) -> int | None:
        """MiB of one GPU of the node; None if it is not known."""
        node = self._nodes.get(name)
        known = parse_gpu_labels(node.labels) if node is not None else None
        return known.memory_mib if isinstance(known, GpuLabels) else None
