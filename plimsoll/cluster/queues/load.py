"""What pods use of their queues: allocated GPUs, CPU and memory, and the part that KAI may not reclaim."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, NamedTuple

from plimsoll.cluster.nodes import GpuLabels, mig_gpus, parse_gpu_labels
from plimsoll.cluster.pods import ASSUMED_MILLI, PodChanges, node_of, read_shares, tflops_milli, value_changes
from plimsoll.cluster.queues.amount import NOTHING, Amount
from plimsoll.cluster.queues.preemptibility import is_preemptible, queue_of
from plimsoll.labels import MIG_PREFIX
from plimsoll.model import Snapshot
from plimsoll.model.cluster import Node, Pod
from plimsoll.model.kai import POD_GROUP_NAME, GPUShare, PodGroup
from plimsoll.packing import GPU_MILLI, Milli


@dataclass(frozen=True, slots=True)
class QueueLoad:
    """What pods use of a queue."""

    allocated: Amount = NOTHING
    """Of bound pods."""
    non_preemptible: Amount = NOTHING
    """The part of `allocated` that KAI may not reclaim."""

    @classmethod
    def of(cls, amount: Amount, *, preemptible: bool) -> "QueueLoad":
        return cls(amount, NOTHING if preemptible else amount)

    def __add__(self, other: "QueueLoad") -> "QueueLoad":
        return QueueLoad(self.allocated + other.allocated, self.non_preemptible + other.non_preemptible)

    def __sub__(self, other: "QueueLoad") -> "QueueLoad":
        return QueueLoad(self.allocated - other.allocated, self.non_preemptible - other.non_preemptible)


NO_LOAD: Final = QueueLoad()


class GpuFigures(NamedTuple):
    """Of one GPU of a node; None where they are not known."""

    memory_mib: int | None = None
    tflops_milli: int | None = None

    @classmethod
    def of(cls, node: Node | None, tflops: Mapping[str, float]) -> "GpuFigures":
        known = parse_gpu_labels(node.labels) if node is not None else None
        if not isinstance(known, GpuLabels):
            return cls()
        return cls(known.memory_mib, tflops_milli(known.product, tflops))


def gpu_milli(share: GPUShare, gpu: GpuFigures) -> Milli:
    """Thousandths of GPUs that a share uses in total."""
    memory = share.divided_mib(gpu.memory_mib or 0)
    known = (memory or share.memory_mib is None) and (gpu.tflops_milli or share.tflops_milli is None)
    return (share.milli_of(memory, gpu.tflops_milli or 0) if known else ASSUMED_MILLI) * share.devices


def mig_milli(pod: Pod) -> int:
    """What KAI counts for the MIG devices that a pod requests, in thousandths of a GPU. A number that cannot be read
    counts as 0."""
    stated = (each.get("resources") or {} for each in (*pod.containers, *pod.init_containers))
    names = {name for each in stated for part in ("requests", "limits") for name in each.get(part) or ()}
    requested = {}
    for name in names:
        if name.startswith(MIG_PREFIX):
            with suppress(ValueError):
                requested[name] = pod.devices(name)
    return mig_gpus(requested) * GPU_MILLI


Key = tuple[str, str]
"""(namespace, name)"""


class _Counted(NamedTuple):
    pod: Pod
    share: GPUShare | None
    """None: it requests MIG devices."""
    queue: str
    load: QueueLoad


class QueueLoads:
    """What pods that are bound or being bound use of their queues. Pods whose request cannot be read are left out.

    The result depends on the last snapshot only. Not thread-safe.
    """

    def __init__(self) -> None:
        self._depends: tuple[object, ...] = ()
        self._scheduler = ""
        self._tflops: Mapping[str, float] = {}
        self._forget()

    def _forget(self) -> None:
        self._counted: dict[Key, _Counted] = {}
        self._sums: dict[str, QueueLoad] = {}
        self._by_node: dict[str, set[Key]] = {}
        """Pods whose part of a GPU depends on the GPU, by node."""
        self._by_group: dict[Key, set[Key]] = {}
        """Pods by their PodGroup."""
        self._given_nodes: tuple[Node, ...] = ()
        self._nodes: dict[str, Node] = {}
        self._given_groups: tuple[PodGroup, ...] = ()
        self._groups: dict[Key, PodGroup] = {}

    def update(self, snapshot: Snapshot, changes: PodChanges | None) -> Mapping[str, QueueLoad]:
        """The load of each queue with bound pods. `changes` None: reads all pods."""
        spec = snapshot.environment.spec
        depends = (spec.queue_scheduler, spec.gpu_resource, spec.demand.gpu_tflops)
        if changes is None or depends != self._depends:
            self._forget()
            self._depends, changes = depends, PodChanges((), snapshot.pods)
        self._scheduler, self._tflops = spec.queue_scheduler, spec.demand.gpu_tflops
        again = self._update_nodes(snapshot.nodes) | self._update_groups(snapshot.pod_groups)
        for pod in changes.gone:
            self._leave(pod.key)
        bound = [pod for pod in changes.new if node_of(pod) and not pod.finished]
        found = read_shares(bound, spec.gpu_resource).found
        for each in found:
            self._enter(each.pod, each.share)
        if len(found) < len(bound):
            entered = {id(each.pod) for each in found}
            for pod in bound:
                if id(pod) not in entered:
                    self._enter(pod, None)
        for key in again:
            counted = self._counted.get(key)
            if counted is not None:
                self._leave(key)
                self._enter(counted.pod, counted.share)
        return {name: load for name, load in self._sums.items() if load != NO_LOAD}

    def _update_nodes(self, nodes: tuple[Node, ...]) -> set[Key]:
        """Pods of nodes that changed, were added or removed, and depend on them."""
        if nodes is self._given_nodes:
            return set()
        before, self._given_nodes, self._nodes = self._nodes, nodes, {node.name: node for node in nodes}
        changed = [name for name, node in self._nodes.items() if before.get(name) is not node]
        return {
            key for name in (*changed, *(before.keys() - self._nodes.keys())) for key in self._by_node.get(name, ())
        }

    def _update_groups(self, groups: tuple[PodGroup, ...]) -> set[Key]:
        """Pods of PodGroups that changed, were added or removed."""
        if groups is self._given_groups:
            return set()
        gone, new = value_changes(self._given_groups, groups)
        self._given_groups, self._groups = groups, {group.key: group for group in groups}
        return {key for group in (*gone, *new) for key in self._by_group.get(group.key, ())}

    def _enter(self, pod: Pod, share: GPUShare | None) -> None:
        milli: Milli = mig_milli(pod)
        if share is None and not milli:
            return
        group = self._groups.get(_group_key(pod))
        queue = queue_of(pod, self._scheduler, group)
        if POD_GROUP_NAME in pod.annotations:
            self._by_group.setdefault(_group_key(pod), set()).add(pod.key)
        if share is not None:
            gpu = GpuFigures()
            if share.milli is None:
                self._by_node.setdefault(node_of(pod), set()).add(pod.key)
                gpu = GpuFigures.of(self._nodes.get(node_of(pod)), self._tflops)
            milli += gpu_milli(share, gpu)
        load = QueueLoad.of(Amount.of(milli, pod.host), preemptible=is_preemptible(pod, group))
        self._counted[pod.key] = _Counted(pod, share, queue, load)
        if queue:
            self._sums[queue] = self._sums.get(queue, NO_LOAD) + load

    def _leave(self, key: Key) -> None:
        counted = self._counted.pop(key, None)
        if counted is None:
            return
        if counted.queue:
            self._sums[counted.queue] -= counted.load
        pod = counted.pod
        self._by_node.get(node_of(pod), set()).discard(key)
        self._by_group.get(_group_key(pod), set()).discard(key)


def _group_key(pod: Pod) -> Key:
    """The PodGroup that the pod's annotation names."""
    return (pod.namespace, pod.annotations.get(POD_GROUP_NAME, ""))
