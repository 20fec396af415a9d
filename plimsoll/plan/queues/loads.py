"""The loads of queues in one snapshot after the other; only pods that changed are read again."""

from collections.abc import Iterable, Mapping

from plimsoll.model import Snapshot
from plimsoll.model.cluster import Node, Pod
from plimsoll.plan.nodes import GpuLabels, parse_gpu_labels
from plimsoll.plan.pods import PodChanges, PodShare, node_of, read_shares
from plimsoll.plan.queues.load import NO_LOAD, QueueLoad, gpu_milli, queue_of
from plimsoll.plan.queues.preemptibility import is_preemptible

Key = tuple[str, str]
"""(namespace, name)"""


class QueueLoads:
    """What pods on nodes take of their queues, and those that are about to be bound there. Pods whose request cannot be
    read are left out.

    What it gives depends on the last snapshot alone. Not safe to share between threads.
    """

    def __init__(self) -> None:
        self._depends: tuple[str, str] = ("", "")
        self._counted: dict[Key, tuple[str, QueueLoad]] = {}
        """Queue and load of each pod that counts."""
        self._sums: dict[str, QueueLoad] = {}
        self._in_mib: dict[str, dict[Key, PodShare]] = {}
        """Pods with shares in MiB by node, whose labels say what they take."""
        self._given_nodes: tuple[Node, ...] = ()
        self._nodes: dict[str, Node] = {}

    def update(self, snapshot: Snapshot, changes: PodChanges | None) -> Mapping[str, QueueLoad]:
        """The load of each queue that pods on nodes are in. `changes` None: nothing is known of the snapshot before."""
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
        """Names of nodes that changed, came or went."""
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
        """MiB of one GPU of the node; None where nobody knows it."""
        node = self._nodes.get(name)
        known = parse_gpu_labels(node.labels) if node is not None else None
        return known.memory_mib if isinstance(known, GpuLabels) else None
