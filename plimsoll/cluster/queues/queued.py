"""Pods with their queues, and the capacity that queues divide. What did not change since the last snapshot is not read
again."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from plimsoll.cluster.nodes import GpuLabels, gpu_devices, mig_gpus, parse_gpu_labels
from plimsoll.cluster.pods import ShareRefusal, is_reservation, node_of, read_shares
from plimsoll.cluster.queues.amount import MILLI, Amount, total
from plimsoll.cluster.queues.load import GpuFigures, gpu_milli, mig_milli
from plimsoll.cluster.queues.preemptibility import is_preemptible, priority_of, queue_of
from plimsoll.model import Snapshot
from plimsoll.model.api import EnvironmentSpec
from plimsoll.model.cluster import Node, Pod
from plimsoll.model.kai import NAMESPACES, POD_GROUP_NAME, PodGroup
from plimsoll.model.meta import HostRequest
from plimsoll.packing import Milli
from plimsoll.quantity import parse_bytes, parse_cpu_milli


@dataclass(frozen=True, slots=True)
class QueuedPod:
    """A pod that requests GPUs, with its queue; empty if it has none."""

    pod: Pod
    queue: str
    requests: Amount
    preemptible: bool
    priority: int = 0
    """As KAI takes it: of its PodGroup, label, class or kind of workload."""

    @property
    def gpu_milli(self) -> Milli:
        return self.requests.gpu


class _ReadPod(NamedTuple):
    """What was read of a pod, and from what."""

    pod: Pod
    gpu: GpuFigures
    group: PodGroup | None
    queued: QueuedPod | None
    """None where it does not count."""
    refused: tuple[ShareRefusal, ...]


class _ReadNode(NamedTuple):
    node: Node
    gpu: GpuFigures
    capacity: Amount


class Queued(NamedTuple):
    pods: tuple[QueuedPod, ...]
    """Pods that request GPUs and are not finished, in the order of the snapshot."""
    refused: tuple[ShareRefusal, ...]
    """Pods whose request cannot be read."""
    capacity: Amount
    """Allocatable amounts of usable nodes on which KAI schedules."""
    counted_nodes: frozenset[str]
    """Names of these nodes."""


class QueuedPods:
    """Reads one snapshot after the other. The result depends on the last snapshot only. Not thread-safe."""

    def __init__(self) -> None:
        self._depends: tuple[object, ...] = ()
        self._nodes: dict[str, _ReadNode] = {}
        self._pods: dict[int, _ReadPod] = {}
        """By the identity of the pod, which an entry keeps alive."""
        self._requests: dict[Amount, Amount] = {}
        """Equal requests are the same object, so that they can be counted."""

    def read(self, snapshot: Snapshot) -> Queued:
        spec = snapshot.environment.spec
        depends = (spec.queue_scheduler, spec.gpu_resource, spec.demand.gpu_tflops)
        if depends != self._depends:
            self._depends, self._nodes, self._pods, self._requests = depends, {}, {}, {}
        self._nodes = {node.name: self._node(node, spec) for node in snapshot.nodes}
        figures = (each.gpu for each in self._nodes.values() if each.gpu.memory_mib)
        # A pending share in MiB counts as on the smallest GPU, as in KAI: its node is not known yet.
        smallest = min(figures, default=GpuFigures(), key=lambda gpu: gpu.memory_mib or 0)
        groups = {group.key: group for group in snapshot.pod_groups}
        self._pods = {id(pod): self._pod(pod, spec, smallest, groups) for pod in snapshot.pods}
        if len(self._requests) > len(self._pods):  # some are of pods that are gone
            self._requests = {each.queued.requests: each.queued.requests for each in self._pods.values() if each.queued}
        counted = [each for each in self._nodes.values() if each.node.usable and not each.node.troubled]
        return Queued(
            pods=tuple(each.queued for each in self._pods.values() if each.queued),
            refused=tuple(refused for each in self._pods.values() for refused in each.refused),
            capacity=total(each.capacity for each in counted),
            counted_nodes=frozenset(each.node.name for each in counted),
        )

    def _node(self, node: Node, spec: EnvironmentSpec) -> _ReadNode:
        known = self._nodes.get(node.name)
        if known is not None and known.node is node:
            return known
        return _ReadNode(node, GpuFigures.of(node, spec.demand.gpu_tflops), _capacity(node, spec.gpu_resource))

    def _pod(
        self, pod: Pod, spec: EnvironmentSpec, smallest: GpuFigures, groups: Mapping[tuple[str, str], PodGroup]
    ) -> _ReadPod:
        group = groups.get((pod.namespace, pod.annotations.get(POD_GROUP_NAME, ""))) if groups else None
        node = self._nodes.get(node_of(pod))
        gpu = smallest if node is None else node.gpu
        known = self._pods.get(id(pod))
        if known is not None and known.group is group and known.gpu == gpu:
            return known
        if pod.finished or is_reservation(pod, NAMESPACES):
            return _ReadPod(pod, gpu, group, None, ())
        shares = read_shares((pod,), spec.gpu_resource)
        mig, queued = mig_milli(pod), None
        if shares.found or mig:
            amount = Amount.of(sum((gpu_milli(each.share, gpu) for each in shares.found), mig), pod.host)
            queue, preemptible = queue_of(pod, spec.queue_scheduler, group), is_preemptible(pod, group)
            requests = self._requests.setdefault(amount, amount)
            queued = QueuedPod(pod, queue, requests, preemptible, priority_of(pod, group))
        return _ReadPod(pod, gpu, group, queued, shares.refused)


def _capacity(node: Node, gpu_resource: str) -> Amount:
    """Whole GPUs and MIG devices count, as in KAI."""
    known = parse_gpu_labels(node.labels)
    labelled = known.devices if isinstance(known, GpuLabels) else 0
    devices = gpu_devices(node, gpu_resource)
    gpus = (labelled if devices is None else devices) + mig_gpus(node.allocatable)
    host = HostRequest(_amount(node, "cpu", parse_cpu_milli), _amount(node, "memory", parse_bytes))
    return Amount.of(gpus * MILLI, host)


def _amount(node: Node, resource: str, parse: Callable[[str | int | float], int]) -> int:
    try:
        return parse(node.allocatable.get(resource, 0))
    except ValueError:
        return 0
