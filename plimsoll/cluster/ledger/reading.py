"""Reads the account of one node's GPUs from the node and its pods."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from plimsoll.cluster.ledger.account import Discrepancy, DiscrepancyReason, GpuAccount, GpuGroup
from plimsoll.cluster.nodes import GpuLabels, InvalidGpuLabel, parse_gpu_labels, single_profile
from plimsoll.cluster.pods import UnreadableShareError, gpu_groups, is_reservation, read_share, tflops_milli
from plimsoll.labels import GPU_PRODUCT, RESERVED_GPU, UNKNOWN_GPU
from plimsoll.model.cluster import HostLoad, Node, Pod
from plimsoll.model.kai import MAX_DEVICES, NAMESPACES, GPUShare, is_share_annotation, shareable_memory_mib
from plimsoll.model.tensor_fusion import GPU_IDS
from plimsoll.packing import GPU_MILLI, Milli
from plimsoll.packing.nodes import UNBOUNDED
from plimsoll.quantity import parse_cpu_milli, parse_devices, parse_memory_mib

_MOST_KINDS = 4096
"""Number of different requests in the cache: anyone may write annotations."""

_Request = tuple[object, ...]


class _Member(NamedTuple):
    """A pod with a share of a group's GPU."""

    pod: Pod
    milli: Milli
    """Thousandths of the GPU."""
    mib: int | None = None
    """MiB of the GPU, where it requests MiB."""
    readable: bool = True
    """Whether its request can be read."""


@dataclass(slots=True)
class _Group:
    """A group while the pods of its node are read."""

    members: list[_Member] = field(default_factory=list)
    reservations: list[Pod] = field(default_factory=list)


class Accounting:
    """Reads accounts; equal requests are parsed once."""

    def __init__(
        self,
        gpu_resource: str,
        reservation_namespaces: Collection[str] = NAMESPACES,
        tflops: Mapping[str, float] | None = None,
        device_resources: Collection[str] = (),
    ) -> None:
        self.gpu_resource = gpu_resource
        self.device_resources = device_resources
        self.tflops = tflops or {}
        self.namespaces = frozenset(reservation_namespaces)
        self._shares: dict[_Request, GPUShare | None] = {}

    def account(self, node: Node, pods: Iterable[Pod], other_loads: Iterable[HostLoad] = ()) -> GpuAccount:
        """`pods` are unfinished pods that are bound to the node, or being bound; `other_loads` is what other pods use,
        or will use."""
        return _Reading(self, node, other_loads).account(pods)

    def share(self, pod: Pod) -> GPUShare | None:
        """As `read_share`, cached."""
        asked = [item for item in pod.annotations.items() if is_share_annotation(item[0])]
        request = (_devices(pod, self.gpu_resource), *sorted(asked))
        if request not in self._shares:
            share = read_share(pod, self.gpu_resource)
            if len(self._shares) >= _MOST_KINDS:
                self._shares.clear()
            self._shares[request] = share
        return self._shares[request]


class _Reading:
    """Builds one node's account."""

    def __init__(self, accounting: Accounting, node: Node, other_loads: Iterable[HostLoad]) -> None:
        self._accounting = accounting
        self._node = node
        labels = parse_gpu_labels(node.labels)
        self._memory = None if isinstance(labels, InvalidGpuLabel) else shareable_memory_mib(labels.memory_mib)
        self._shareable = _shareable(labels)
        self._groups: defaultdict[str, _Group] = defaultdict(_Group)
        self._whole = 0
        self._ungrouped: list[tuple[Milli, int]] = []
        self._releasing_whole = 0
        self._cpu = sum(each.cpu_milli for each in other_loads)
        self._host_memory = sum(each.memory_mib for each in other_loads)
        self._pods = sum(each.pods for each in other_loads)
        self._devices = {name: _allocatable(node, name) for name in accounting.device_resources}
        """Free devices that are parts of GPUs, by resource."""
        self._discrepancies: list[Discrepancy] = []

    def account(self, pods: Iterable[Pod]) -> GpuAccount:
        for pod in pods:
            self._read(pod)
        gpus = self._gpus()
        if self._groups and not self._shareable:
            self._report(
                DiscrepancyReason.NOT_SHAREABLE,
                "its devices are shared or partitioned, and pods with GPU shares run on them",
            )
        groups = tuple(self._group(name, group) for name, group in sorted(self._groups.items()))
        for gpu, several in Counter(group.gpu for group in groups if group.gpu).items():
            if several > 1:
                names = ", ".join(group.name for group in groups if group.gpu == gpu)
                self._report(DiscrepancyReason.SHARED_GPU, f"the reservations of groups {names} hold one GPU, {gpu}")
        if self._whole + len(groups) > gpus:
            self._report(
                DiscrepancyReason.TOO_MANY_GPUS,
                f"{self._whole} GPUs are used whole and {len(groups)} shared, but it has {gpus}",
            )
        return GpuAccount(
            node=self._node,
            kind=self._node.labels.get(GPU_PRODUCT, ""),
            gpus=gpus,
            memory_mib=self._memory,
            groups=groups,
            whole=self._whole,
            ungrouped=tuple(sorted(self._ungrouped, reverse=True)),
            releasing_whole=self._releasing_whole,
            shareable=self._shareable,
            free_devices=tuple((name, max(0, free)) for name, free in self._devices.items()),
            cpu_milli=max(0, self._host("cpu", parse_cpu_milli) - self._cpu),
            host_memory_mib=max(0, self._host("memory", parse_memory_mib) - self._host_memory),
            free_pods=self._free_pods(),
            discrepancies=tuple(self._discrepancies),
        )

    def _read(self, pod: Pod) -> None:
        self._cpu += pod.host.cpu_milli
        self._host_memory += pod.host.memory_mib
        self._pods += 1
        for resource in self._devices:
            self._devices[resource] -= _devices(pod, resource) or 0
        if is_reservation(pod, self._accounting.namespaces):
            self._reserve(pod)
            return
        groups = gpu_groups(pod)
        try:
            share = self._accounting.share(pod)
        except UnreadableShareError as error:
            self._report(DiscrepancyReason.UNREADABLE_SHARE, error.message)
            self._count_unreadable(pod, groups)
            return
        if share is None:
            return
        if share.whole:
            self._count_whole(pod, share.devices)
        else:
            self._count_share(pod, share, groups)

    def _reserve(self, pod: Pod) -> None:
        self._groups[gpu_groups(pod)[0]].reservations.append(pod)

    def _count_whole(self, pod: Pod, devices: int) -> None:
        self._whole += devices
        if pod.deletion_timestamp is not None:
            self._releasing_whole += devices

    def _count_share(self, pod: Pod, share: GPUShare, groups: tuple[str, ...]) -> None:
        memory = self._memory
        product = self._node.labels.get(GPU_PRODUCT, "")
        speed = tflops_milli(product, self._accounting.tflops) if share.tflops_milli is not None else None
        known = (share.memory_mib is None or memory) and (share.tflops_milli is None or speed)
        # If the GPU's memory or TFLOPS are not known, the share may be all of it.
        milli = share.milli_of(memory or 0, speed or 0) if known else GPU_MILLI
        if len(groups) != share.devices:
            reason = DiscrepancyReason.WRONG_GROUPS if groups else DiscrepancyReason.NO_GROUP
            self._report(reason, f"Pod {_name(pod)} requests {share}, but is in {len(groups)} GPU groups")
            if (ungrouped := share.devices - len(groups)) > 0:
                self._count_whole(pod, ungrouped)
                self._ungrouped.append((min(milli, GPU_MILLI), ungrouped))
        for name in groups:
            self._groups[name].members.append(_Member(pod, milli, share.memory_mib))

    def _count_unreadable(self, pod: Pod, groups: tuple[str, ...]) -> None:
        """A pod whose request cannot be read gets the GPUs of its groups, at least one GPU."""
        for name in groups:
            self._groups[name].members.append(_Member(pod, GPU_MILLI, readable=False))
        if not groups:
            self._count_whole(pod, 1)

    def _group(self, name: str, group: _Group) -> GpuGroup:
        held, members = group.reservations, group.members
        pods = [member.pod for member in members]
        bound = any(pod.node_name for pod in pods)
        # TensorFusion needs no reservations.
        unreserved = any(GPU_IDS in pod.annotations for pod in pods)
        if not held and bound and not unreserved:
            self._report(DiscrepancyReason.NO_RESERVATION, f"no reservation pod holds the GPU of group {name}")
        elif len(held) > 1:
            self._report(
                DiscrepancyReason.SEVERAL_RESERVATIONS, f"{len(held)} reservation pods hold GPUs for group {name}"
            )
            self._whole += len(held) - 1
        releasing = [member for member in members if member.pod.deletion_timestamp is not None]
        allocated_milli = _milli(members)
        if allocated_milli > GPU_MILLI:
            self._report(
                DiscrepancyReason.OVERBOOKED,
                f"the shares of group {name} are {float(allocated_milli) / GPU_MILLI:g} of one GPU",
            )
        uuids = {uuid for pod in held if (uuid := pod.annotations.get(RESERVED_GPU, "")) not in ("", UNKNOWN_GPU)}
        return GpuGroup(
            name=name,
            reservations=tuple(sorted(map(_name, held))),
            gpu=name if unreserved else uuids.pop() if len(uuids) == 1 else "",
            pods=tuple(sorted(map(_name, pods))),
            allocated_milli=allocated_milli,
            releasing_milli=_milli(releasing),
            allocated_mib=_mib(members, self._memory),
            releasing_mib=_mib(releasing, self._memory),
            joinable=self._shareable and _joinable(held, bound),
        )

    def _gpus(self) -> int:
        try:
            gpus = self._node.allocatable_devices(self._accounting.gpu_resource) or 0
        except ValueError as error:
            self._report(DiscrepancyReason.UNREADABLE_NODE, f"allocatable {self._accounting.gpu_resource}: {error}")
            return 0
        if not 0 <= gpus <= MAX_DEVICES:
            self._report(
                DiscrepancyReason.UNREADABLE_NODE, f"allocatable {self._accounting.gpu_resource}: {gpus} GPUs in a node"
            )
            return 0
        return gpus

    def _free_pods(self) -> int:
        allocatable = self._host("pods", parse_devices, UNBOUNDED)
        return allocatable if allocatable >= UNBOUNDED else allocatable - self._pods

    def _host(self, resource: str, parse: Callable[[str | int | float], int], unknown: int = 0) -> int:
        try:
            return parse(self._node.allocatable.get(resource, unknown))
        except ValueError:
            return 0

    def _report(self, reason: DiscrepancyReason, message: str) -> None:
        self._discrepancies.append(Discrepancy(self._node.name, reason, message))


def _allocatable(node: Node, resource: str) -> int:
    try:
        return min(node.allocatable_devices(resource) or 0, MAX_DEVICES)
    except ValueError:
        return 0


def _devices(pod: Pod, resource: str) -> int | None:
    """None if it cannot be read; `read_share` has the reason."""
    try:
        return pod.devices(resource)
    except (ValueError, AttributeError, TypeError):
        return None


def _milli(members: Iterable[_Member]) -> Milli:
    """Thousandths of the GPU that they have together."""
    found: Milli = 0
    for member in members:
        # Most GPUs have one pod, and to add a fraction to zero costs as much as to add it to another.
        found = found + member.milli if found else member.milli
    return found


def _mib(members: Iterable[_Member], memory_mib: int | None) -> int | None:
    """MiB that they have together of a GPU with that shareable memory, rounded up; None if one cannot be converted."""
    mib, converted = 0, list[_Member]()
    for member in members:
        if not member.readable:
            return None
        if member.mib is None:
            converted.append(member)
        else:
            mib += member.mib
    if not converted:
        return mib
    if memory_mib is None:
        return None
    milli = _milli(converted)
    return mib - (-milli.numerator * memory_mib // (milli.denominator * GPU_MILLI))


def _joinable(reservations: Sequence[Pod], bound: bool) -> bool:
    """Exactly one reservation holds it and stays, with a known or pending GPU; or the reservation will be created."""
    if not reservations:
        return not bound
    only = reservations[0]
    going = only.deletion_timestamp is not None or only.annotations.get(RESERVED_GPU) == UNKNOWN_GPU
    return len(reservations) == 1 and not going


def _shareable(labels: GpuLabels | InvalidGpuLabel) -> bool:
    """Whether the node's devices are whole GPUs, according to its labels."""
    return isinstance(labels, InvalidGpuLabel) or not (labels.shared or single_profile(labels.product))


def _name(pod: Pod) -> str:
    return f"{pod.namespace}/{pod.name}"
