"""QueuedPods: pods that request GPUs, with their queues, and what they use of these."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import add, sub
from typing import Any

from plimsoll.cluster.pods import PodChanges, ShareRefusal, is_reservation, node_of, read_request, value_changes
from plimsoll.cluster.queues.amount import NOTHING, Amount
from plimsoll.cluster.queues.load import NO_LOAD, QueueLoad
from plimsoll.cluster.queues.preemptibility import (
    DEFAULT_SCHEDULER,
    is_preemptible,
    node_pool_of,
    priority_of,
    queue_of,
)
from plimsoll.cluster.queues.request import NO_GPUS, GpuFigures, counted_on, mig_milli, seen_by_kai
from plimsoll.model import Snapshot
from plimsoll.model.api import EnvironmentSpec
from plimsoll.model.cluster import AMD_GPU, Node, Pod
from plimsoll.model.kai import NAMESPACES, POD_GROUP_NAME, PodGroup, group_key
from plimsoll.packing import GPU_MILLI, Milli


@dataclass(frozen=True, slots=True)
class QueuedPod:
    """A pod that requests GPUs, with its queue."""

    pod: Pod
    queue: str
    """Empty if it has none, or one of another node pool of KAI, which the scheduler of the pod does not see."""
    requests: Amount
    preemptible: bool
    node: str = ""
    """The node that it is bound to, or is being bound to; empty while it is pending."""
    group: PodGroup | None = None
    rounding: Milli = 0
    """Thousandths of a GPU that KAI compares with limits and quotas above `requests` before it places the pod."""
    named: str = ""
    """The queue that it names, whatever its scheduler sees."""

    @property
    def priority(self) -> int:
        """As KAI takes it: of its PodGroup, label, class or kind of workload."""
        return priority_of(self.pod, self.group)

    @property
    def gpu_milli(self) -> Milli:
        return self.requests.gpu


Key = tuple[str, str]
"""(namespace, name)"""


class QueuedPods:
    """Reads one snapshot after the other, by the changes between them. The result depends on the last snapshot only.
    Not thread-safe."""

    def __init__(self) -> None:
        self._depends: tuple[object, ...] = ()
        self._forget()

    def _forget(self) -> None:
        self._queued: dict[Key, QueuedPod] = {}
        """Pods that are bound, or being bound, or pending, and not finished."""
        self._refused: dict[Key, ShareRefusal] = {}
        self._loads: dict[str, QueueLoad] = {}
        self._waiting: dict[str, Amount] = {}
        self._users: Counter[str] = Counter()
        """Numbers of pods and PodGroups, by queue."""
        self._by_node: dict[str, set[Key]] = {}
        """Pods whose part of a GPU depends on the GPU, by node."""
        self._by_group: dict[Key, set[Key]] = {}
        """Pods by their PodGroup."""
        self._nodes: tuple[Node, ...] = ()
        self._gpus: dict[str, GpuFigures] = {}
        """By node."""
        self._smallest: dict[str, GpuFigures] = {}
        """The smallest GPU of each node pool of KAI: a pending share in MiB counts as on this one, because its node is
        not known yet."""
        self._given_groups: tuple[PodGroup, ...] = ()
        self._groups: dict[Key, PodGroup] = {}
        self._shards: dict[str, str] = {}
        """KAI's node pools of the queues that are in one."""

    def update(self, snapshot: Snapshot, changes: PodChanges | None = None) -> None:
        """Reads the snapshot. `changes` are those of its pods since the last one; None: reads all pods."""
        spec = snapshot.environment.spec
        label = spec.node_pool_label
        shards = {queue.name: pool for queue in snapshot.queues if (pool := label.of(queue.labels))}
        depends = (spec.queue_scheduler, label, shards, spec.gpu_resource, spec.demand.gpu_tflops)
        if changes is None or depends != self._depends:
            self._forget()
            self._shards = shards
            self._depends, changes = depends, PodChanges((), snapshot.pods)
        again = self._update_nodes(snapshot.nodes, spec) | self._update_groups(snapshot.pod_groups)
        for pod in changes.gone:
            self._leave(pod)
        for pod in changes.new:
            self._enter(pod, spec)
        for key in again:
            known = self._queued.get(key)
            if known is not None:
                self._leave(known.pod)
                self._enter(known.pod, spec)

    @property
    def loads(self) -> Mapping[str, QueueLoad]:
        """What bound pods use, by queue."""
        return {queue: load for queue, load in self._loads.items() if load != NO_LOAD}

    @property
    def waiting(self) -> Mapping[str, Amount]:
        """What pending pods request, by queue."""
        return {queue: amount for queue, amount in self._waiting.items() if amount != NOTHING}

    @property
    def in_use(self) -> frozenset[str]:
        """The queues of pods that request GPUs, and of PodGroups."""
        return frozenset(queue for queue, number in self._users.items() if number)

    def in_order(self, pods: Iterable[Pod]) -> Iterator[QueuedPod]:
        """Those of the pods that request GPUs and are not finished."""
        queued = self._queued
        return (known for pod in pods if (known := queued.get(pod.key)))

    def refused(self, pods: Iterable[Pod]) -> Iterator[ShareRefusal]:
        """Those of the pods whose request cannot be read."""
        refused = self._refused
        return (known for pod in pods if (known := refused.get(pod.key))) if refused else iter(())

    def _update_nodes(self, nodes: tuple[Node, ...], spec: EnvironmentSpec) -> set[Key]:
        """Pods that depend on the GPUs of their node, which changed."""
        if nodes is self._nodes:
            return set()
        before, smallest, known = self._gpus, self._smallest, {node.name: node for node in self._nodes}
        self._nodes, self._gpus, self._smallest = nodes, {}, {}
        for node in nodes:
            same = known.get(node.name) is node
            gpu = before[node.name] if same else GpuFigures.of(node, spec.demand.gpu_tflops)
            self._gpus[node.name] = gpu
            if gpu.memory_mib:
                pool = spec.node_pool_label.of(node.labels)
                self._smallest[pool] = min(self._smallest.get(pool, gpu), gpu, key=lambda each: each.memory_mib or 0)
        changed = [name for name in self._by_node if before.get(name) != self._gpus.get(name)]
        changed += [""] if smallest != self._smallest and "" in self._by_node else []
        return {key for name in changed for key in self._by_node[name]}

    def _update_groups(self, groups: tuple[PodGroup, ...]) -> set[Key]:
        """Pods of PodGroups that changed, were added or removed."""
        if groups is self._given_groups:
            return set()
        gone, new = value_changes(self._given_groups, groups)
        self._given_groups = groups
        for group in gone:
            self._groups.pop(group.key, None)
            self._users[group.queue] -= 1
        self._users.update(group.queue for group in new)
        self._groups |= {group.key: group for group in new}
        return {key for group in (*gone, *new) for key in self._by_group.get(group.key, ())}

    def _enter(self, pod: Pod, spec: EnvironmentSpec) -> None:
        node = node_of(pod)
        if pod.finished or is_reservation(pod, NAMESPACES) or (pod.deleting and not node):
            return
        key, request = pod.key, read_request(pod, spec.gpu_resource)
        if request.uncertain and request.refusal is not None:
            self._refused[key] = ShareRefusal.of(pod, request.refusal)
        others = request.claims_in_queue + request.beside_held((AMD_GPU,), spec.gpu_resource)
        parts, counted = mig_milli(request) + others * GPU_MILLI, NO_GPUS
        held = request.held if request.held is not None and seen_by_kai(request.held.resource) else None
        if not parts and held is None:
            return
        group = None
        if POD_GROUP_NAME in pod.annotations:
            group = self._groups.get(group_key(pod))
            self._by_group.setdefault(group_key(pod), set()).add(key)
        pool = node_pool_of(pod, spec.node_pool_label, group)
        if held is not None:
            gpu = self._gpus.get(node) if node else self._smallest.get(pool)
            counted = counted_on(held, gpu or GpuFigures())
            if held.milli is None:
                self._by_node.setdefault(node, set()).add(key)
        named, requests = queue_of(pod, spec, group), Amount.of(parts + counted.milli, pod.host)
        seen = spec.queue_scheduler == DEFAULT_SCHEDULER or pool == self._shards.get(named, "")
        queue = named if seen else ""
        preemptible = is_preemptible(pod, group)
        queued = QueuedPod(pod, queue, requests, preemptible, node, group, counted.rounding, named)
        self._queued[key] = queued
        self._count(queued, add)

    def _leave(self, pod: Pod) -> None:
        self._refused.pop(pod.key, None)
        known = self._queued.pop(pod.key, None)
        if known is None:
            return
        self._count(known, sub)
        self._by_node.get(known.node, set()).discard(pod.key)
        self._by_group.get(group_key(pod), set()).discard(pod.key)

    def _count(self, queued: QueuedPod, change: Callable[[Any, Any], Any]) -> None:
        name = queued.queue
        self._users[queued.named] = change(self._users[queued.named], 1)
        if name and queued.node:
            load = QueueLoad.of(queued.requests, preemptible=queued.preemptible)
            self._loads[name] = change(self._loads.get(name, NO_LOAD), load)
        elif name:
            self._waiting[name] = change(self._waiting.get(name, NOTHING), queued.requests)
