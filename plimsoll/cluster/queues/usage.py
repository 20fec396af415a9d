"""Usage of queues: what their pods use and request, what the cluster has, and the queues' fair shares."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from plimsoll.cluster.nodes import GpuLabels, gpu_devices, mig_gpus, parse_gpu_labels
from plimsoll.cluster.pods import PodShare, is_reservation, read_shares
from plimsoll.cluster.queues.amount import MILLI, NOTHING, Amount, Resource
from plimsoll.cluster.queues.fair_share import NO_USAGE, PastUsage, fair_shares
from plimsoll.cluster.queues.load import GpuFigures, QueueLoad, gpu_milli
from plimsoll.cluster.queues.preemptibility import DEFAULT_SCHEDULER, is_preemptible, queue_of
from plimsoll.cluster.queues.tree import QueueTree
from plimsoll.model import Snapshot
from plimsoll.model.api import EnvironmentSpec
from plimsoll.model.cluster import Node, Pod
from plimsoll.model.kai import NAMESPACES, POD_GROUP_NAME, PodGroup
from plimsoll.model.meta import HostRequest
from plimsoll.packing import Milli
from plimsoll.quantity import parse_cpu_milli, parse_memory_mib


@dataclass(frozen=True, slots=True)
class QueuedPod:
    """A pod that requests GPUs, with its queue; empty if it has none."""

    pod: Pod
    queue: str
    requests: Amount
    preemptible: bool

    @property
    def gpu_milli(self) -> Milli:
        return self.requests.gpu


@dataclass(frozen=True)
class QueueUsage:
    """Amounts by queue; a parent's include those of its descendants.

    CPU and memory are those of pods that request GPUs; other pods are not observed.
    """

    tree: QueueTree
    total: Amount
    """Allocatable amounts of usable nodes, without what pods of no queue, or of another scheduler, use."""
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
        """What the bound pods use, by the queue that they name."""
        loads: defaultdict[str, QueueLoad] = defaultdict(QueueLoad)
        for each in self.running:
            loads[each.queue] += QueueLoad.of(each.requests, preemptible=each.preemptible)
        return dict(loads)

    @property
    def free_gpu_milli(self) -> Milli:
        """What no pod uses, in total rather than on one node."""
        return max(0, self.total.gpu - sum(each.gpu_milli for each in self.running))


def queue_usage(snapshot: Snapshot, past: PastUsage = NO_USAGE) -> QueueUsage:
    """The usage of the queues of a snapshot; `past` is what they used before, for time-based fair share."""
    environment = snapshot.environment.spec
    tree = QueueTree(snapshot.queues)
    gpus = {node.name: GpuFigures.of(node, environment.demand.gpu_tflops) for node in snapshot.nodes}
    # A pending share in MiB counts as on the smallest GPU, as in KAI: its node is not known yet.
    smallest = min(
        (each for each in gpus.values() if each.memory_mib), default=GpuFigures(), key=lambda gpu: gpu[0] or 0
    )
    groups = {group.key: group for group in snapshot.pod_groups}
    pods = [pod for pod in snapshot.pods if not pod.finished and not is_reservation(pod, NAMESPACES)]
    shares = read_shares(pods, environment.gpu_resource)
    queued = [_queued(each, environment, gpus.get(each.pod.node_name) or smallest, groups) for each in shares.found]
    queued += [_sliced(pod, mig, environment, groups) for pod in pods if (mig := _mig_of(pod))]
    # Pods of other schedulers use the cluster, and no queue.
    own = [each for each in queued if each.queue in tree and _is_kais(each.pod, environment)]
    running = tuple(each for each in own if each.pod.node_name)
    pending = tuple(each for each in own if not each.pod.node_name and not each.pod.deleting)
    known = set(map(id, own))
    foreign = _sum(each.requests for each in queued if each.pod.node_name and id(each) not in known)
    counted = (node for node in snapshot.nodes if node.usable and not node.memory_pressure)
    capacity = _sum(_capacity(node, environment.gpu_resource) for node in counted) - foreign
    total = Amount(*(max(0, capacity[resource]) for resource in Resource))
    return QueueUsage(
        tree=tree,
        total=total,
        running=running,
        pending=pending,
        allocated=_by_queue(tree, running),
        non_preemptible=_by_queue(tree, (each for each in running if not each.preemptible)),
        waiting=_by_queue(tree, pending),
        fair=fair_shares(tree, total, _by_name((*running, *pending)), past),
        warnings=(*(f"not counted: {each.message}" for each in shares.refused), *past.warnings),
    )


def _queued(
    each: PodShare, environment: EnvironmentSpec, gpu: GpuFigures, groups: Mapping[tuple[str, str], PodGroup]
) -> QueuedPod:
    return _pod(each.pod, Amount.of(gpu_milli(each.share, gpu), each.pod.host), environment, groups)


def _sliced(pod: Pod, gpus: int, environment: EnvironmentSpec, groups: Mapping[tuple[str, str], PodGroup]) -> QueuedPod:
    return _pod(pod, Amount.of(gpus * MILLI, pod.host), environment, groups)


def _pod(
    pod: Pod, requests: Amount, environment: EnvironmentSpec, groups: Mapping[tuple[str, str], PodGroup]
) -> QueuedPod:
    group = groups.get((pod.namespace, pod.annotations.get(POD_GROUP_NAME, "")))
    queue = queue_of(pod, environment.queue_scheduler, group)
    return QueuedPod(pod, queue, requests, is_preemptible(pod, group))


def _mig_of(pod: Pod) -> int:
    """What KAI counts for the MIG devices that a pod requests."""
    requested: dict[str, int] = defaultdict(int)
    for container in pod.containers:
        resources = container.get("resources") or {}
        for resource, amount in ((resources.get("limits") or {}) | (resources.get("requests") or {})).items():
            requested[resource] += int(amount) if str(amount).isdecimal() else 0
    return mig_gpus(requested)


def _is_kais(pod: Pod, environment: EnvironmentSpec) -> bool:
    """Whether the scheduler that knows queues schedules the pod."""
    return environment.queue_scheduler in (DEFAULT_SCHEDULER, pod.scheduler_name)


def _by_name(pods: Iterable[QueuedPod]) -> dict[str, Amount]:
    amounts: defaultdict[str, Amount] = defaultdict(Amount)
    for each in pods:
        amounts[each.queue] += each.requests
    return dict(amounts)


def _by_queue(tree: QueueTree, pods: Iterable[QueuedPod]) -> dict[str, Amount]:
    """By queue, including the descendants."""
    amounts = dict.fromkeys(tree, NOTHING)
    for queue, amount in _by_name(pods).items():
        for name in tree.lineage(queue):
            amounts[name] += amount
    return amounts


def _sum(amounts: Iterable[Amount]) -> Amount:
    return sum(amounts, NOTHING)


def _capacity(node: Node, gpu_resource: str) -> Amount:
    """Whole GPUs and MIG devices count, as in KAI."""
    known = parse_gpu_labels(node.labels)
    labelled = known.devices if isinstance(known, GpuLabels) else 0
    devices = gpu_devices(node, gpu_resource)
    gpus = (labelled if devices is None else devices) + mig_gpus(node.allocatable)
    host = HostRequest(_amount(node, "cpu", parse_cpu_milli), _amount(node, "memory", parse_memory_mib))
    return Amount.of(gpus * MILLI, host)


def _amount(node: Node, resource: str, parse: Callable[[str | int | float], int]) -> int:
    try:
        return parse(node.allocatable.get(resource, 0))
    except ValueError:
        return 0
