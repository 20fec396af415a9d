"""Usage of queues: what their pods use and request, what the cluster has, and the queues' fair shares."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from plimsoll.model import Snapshot
from plimsoll.model.api import EnvironmentSpec
from plimsoll.model.cluster import Node, Pod
from plimsoll.model.kai import NAMESPACES
from plimsoll.plan.nodes import GpuLabels, gpu_devices, parse_gpu_labels
from plimsoll.plan.pods import PodShare, is_reservation, read_shares
from plimsoll.plan.queues.fair_share import Amount, fair_shares
from plimsoll.plan.queues.load import QueueLoad, gpu_milli, is_preemptible, queue_of
from plimsoll.plan.queues.tree import MILLI, QueueTree, Resource
from plimsoll.quantity import parse_cpu_milli, parse_memory_mib

MB_MILLI_OF_MIB = 2**20 / 1000
"""Thousandths of a MB (10^6 bytes) in a MiB."""
NOTHING: Amount = dict.fromkeys(Resource, 0)


@dataclass(frozen=True, slots=True)
class QueuedPod:
    """A pod that requests GPUs, with its queue; empty if it has none."""

    pod: Pod
    queue: str
    requests: Amount
    preemptible: bool

    @property
    def gpu_milli(self) -> int:
        return self.requests[Resource.GPU]


@dataclass(frozen=True)
class QueueUsage:
    """Amounts by queue, in thousandths of a GPU, of a millicore and of a MB; a parent's include those of its
    descendants.

    CPU and memory are those of pods that request GPUs; other pods are not observed.
    """

    tree: QueueTree
    total: Amount
    """Allocatable amounts of usable nodes, without what pods of no queue use."""
    running: tuple[QueuedPod, ...] = ()
    """Bound pods of existing queues."""
    pending: tuple[QueuedPod, ...] = ()
    """Pods of existing queues that are not bound."""
    allocated: Mapping[str, Amount] = field(default_factory=dict)
    non_preemptible: Mapping[str, Amount] = field(default_factory=dict)
    """The part of `allocated` that may not be reclaimed."""
    waiting: Mapping[str, Amount] = field(default_factory=dict)
    """Requests of pending pods."""
    fair: Mapping[str, Amount] = field(default_factory=dict)
    """The fair share; none for queues that reach no root."""
    warnings: tuple[str, ...] = ()

    @property
    def loads(self) -> dict[str, QueueLoad]:
        """GPUs of the bound pods, by the queue that they name."""
        loads: defaultdict[str, QueueLoad] = defaultdict(QueueLoad)
        for each in self.running:
            loads[each.queue] += QueueLoad(each.gpu_milli, 0 if each.preemptible else each.gpu_milli)
        return dict(loads)

    @property
    def free(self) -> Amount:
        """What no pod uses, in total rather than on one node."""
        used = _sum(each.requests for each in self.running)
        return {resource: max(0, self.total[resource] - used[resource]) for resource in Resource}


def queue_usage(snapshot: Snapshot) -> QueueUsage:
    """The usage of the queues of a snapshot."""
    environment = snapshot.environment.spec
    tree = QueueTree(snapshot.queues)
    memory = {node.name: _gpu_memory(node) for node in snapshot.nodes}
    smallest = min((each for each in memory.values() if each), default=None)
    pods = (pod for pod in snapshot.pods if not pod.finished and not is_reservation(pod, NAMESPACES))
    shares = read_shares(pods, environment.gpu_resource)
    # A pending share in MiB counts as on the smallest GPU, as in KAI: its node is not known yet.
    queued = [_queued(each, environment, memory.get(each.pod.node_name) or smallest) for each in shares.found]
    running = tuple(each for each in queued if each.pod.node_name and each.queue in tree)
    pending = tuple(each for each in queued if not each.pod.node_name and not each.pod.deleting and each.queue in tree)
    foreign = _sum(each.requests for each in queued if each.pod.node_name and each.queue not in tree)
    capacity = _sum(_capacity(node, environment.gpu_resource) for node in snapshot.nodes if node.usable)
    total = {resource: max(0, capacity[resource] - foreign[resource]) for resource in Resource}
    return QueueUsage(
        tree=tree,
        total=total,
        running=running,
        pending=pending,
        allocated=_by_queue(tree, running),
        non_preemptible=_by_queue(tree, (each for each in running if not each.preemptible)),
        waiting=_by_queue(tree, pending),
        fair=fair_shares(tree, total, _by_name((*running, *pending))),
        warnings=tuple(f"not counted: {each.message}" for each in shares.refused),
    )


def _queued(each: PodShare, environment: EnvironmentSpec, memory_mib: int | None) -> QueuedPod:
    requests = {
        Resource.GPU: gpu_milli(each.share, memory_mib),
        Resource.CPU: each.pod.host.cpu_milli * MILLI,
        Resource.MEMORY: round(each.pod.host.memory_mib * MB_MILLI_OF_MIB),
    }
    return QueuedPod(each.pod, queue_of(each.pod, environment.queue_scheduler), requests, is_preemptible(each.pod))


def _by_name(pods: Iterable[QueuedPod]) -> dict[str, dict[Resource, int]]:
    amounts: defaultdict[str, dict[Resource, int]] = defaultdict(lambda: dict(NOTHING))
    for each in pods:
        for resource in Resource:
            amounts[each.queue][resource] += each.requests[resource]
    return dict(amounts)


def _by_queue(tree: QueueTree, pods: Iterable[QueuedPod]) -> dict[str, dict[Resource, int]]:
    """By queue, including the descendants."""
    amounts = {name: dict(NOTHING) for name in tree}
    for queue, amount in _by_name(pods).items():
        for name in tree.lineage(queue):
            for resource in Resource:
                amounts[name][resource] += amount[resource]
    return amounts


def _sum(amounts: Iterable[Amount]) -> dict[Resource, int]:
    total = dict(NOTHING)
    for amount in amounts:
        for resource in Resource:
            total[resource] += amount[resource]
    return total


def _gpu_memory(node: Node) -> int | None:
    """MiB of one GPU; None if the labels do not have it."""
    known = parse_gpu_labels(node.labels)
    return known.memory_mib if isinstance(known, GpuLabels) else None


def _capacity(node: Node, gpu_resource: str) -> Amount:
    known = parse_gpu_labels(node.labels)
    labelled = known.devices if isinstance(known, GpuLabels) else 0
    devices = gpu_devices(node, gpu_resource)
    return {
        Resource.GPU: (labelled if devices is None else devices) * MILLI,
        Resource.CPU: _amount(node, "cpu", parse_cpu_milli) * MILLI,
        Resource.MEMORY: round(_amount(node, "memory", parse_memory_mib) * MB_MILLI_OF_MIB),
    }


def _amount(node: Node, resource: str, parse: Callable[[str | int | float], int]) -> int:
    try:
        return parse(node.allocatable.get(resource, 0))
    except ValueError:
        return 0
