"""Reads the account of one node's GPUs from the node and its pods."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from plimsoll.cluster.ledger.account import (
    Discrepancy,
    DiscrepancyReason,
    GpuAccount,
    GpuGroup,
    GroupMember,
    PartDevices,
    exceeds_gpu,
    summed_milli,
)
from plimsoll.cluster.ledger.pod_use import PodUse, devices_of
from plimsoll.cluster.nodes import GpuLabels, InvalidGpuLabel, gpu_devices, parse_gpu_labels, single_profile
from plimsoll.cluster.pods import UnreadableShareError, tflops_milli
from plimsoll.labels import GPU_PRODUCT, RESERVED_GPU, UNKNOWN_GPU, is_part_of_gpu
from plimsoll.model.cluster import HostLoad, Node, Pod
from plimsoll.model.kai import MAX_DEVICES, GPUShare
from plimsoll.packing import GPU_MILLI, Milli
from plimsoll.packing.nodes import UNBOUNDED
from plimsoll.quantity import parse_cpu_milli, parse_devices, parse_memory_mib


class Accounting:
    """Reads accounts of nodes."""

    def __init__(
        self, gpu_resource: str, tflops: Mapping[str, float] | None = None, device_resources: Collection[str] = ()
    ) -> None:
        self.gpu_resource = gpu_resource
        self.device_resources = device_resources
        self.tflops = tflops or {}

    def account(self, node: Node, pods: Iterable[PodUse], other_loads: Iterable[HostLoad] = ()) -> GpuAccount:
        """`pods` are unfinished pods that are bound to the node, or being bound; `other_loads` is what other pods use,
        or will use."""
        return _Reading(self, node, other_loads).account(pods)


class _Reading:
    """Builds one node's account."""

    def __init__(self, accounting: Accounting, node: Node, other_loads: Iterable[HostLoad]) -> None:
        self._accounting = accounting
        self._node = node
        labels = parse_gpu_labels(node.labels)
        self._memory = None if isinstance(labels, InvalidGpuLabel) else labels.memory_mib
        self._shareable = _shareable(labels)
        self._members: defaultdict[str, list[GroupMember]] = defaultdict(list)
        """Pods with a share, by group."""
        self._unreserved: set[str] = set()
        """Groups that need no reservation."""
        self._bound: set[str] = set()
        """Groups with a bound pod that has a share."""
        self._holders: defaultdict[str, list[Pod]] = defaultdict(list)
        """Reservation pods, by group."""
        self._whole = 0
        self._ungrouped: list[tuple[GroupMember, int]] = []
        self._releasing_whole = 0
        self._cpu = sum(each.cpu_milli for each in other_loads)
        self._host_memory = sum(each.memory_mib for each in other_loads)
        self._pods = sum(each.pods for each in other_loads)
        self._devices = self._part_devices()
        """Devices that are parts of GPUs, with the pods that use some, by resource."""
        self._unheld: list[str] = []
        """Names of groups that need a reservation and have none."""
        self._discrepancies: list[Discrepancy] = []

    def account(self, pods: Iterable[PodUse]) -> GpuAccount:
        for pod in pods:
            self._read(pod)
        gpus = self._gpus()
        groups_found = sorted({*self._members, *self._holders})
        if groups_found and not self._shareable:
            self._report(
                DiscrepancyReason.NOT_SHAREABLE,
                "its devices are shared or partitioned, and pods with GPU shares run on them",
            )
        groups = tuple([self._group(name) for name in groups_found])
        if self._unheld:
            which = (
                f"GPUs of groups {', '.join(self._unheld)}"
                if len(self._unheld) > 1
                else f"GPU of group {self._unheld[0]}"
            )
            self._report(DiscrepancyReason.NO_RESERVATION, f"no reservation pod holds the {which}")
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
            ungrouped=tuple(sorted(self._ungrouped, key=lambda each: (-each[0].milli, -each[1], each[0].pod.key))),
            releasing_whole=self._releasing_whole,
            shareable=self._shareable,
            devices=tuple(_in_order(each) for _, each in sorted(self._devices.items())),
            cpu_milli=self._host("cpu", parse_cpu_milli) - self._cpu,
            host_memory_mib=self._host("memory", parse_memory_mib) - self._host_memory,
            free_pods=self._free_pods(),
            discrepancies=tuple(sorted(self._discrepancies, key=lambda each: (each.reason, each.message))),
        )

    def _read(self, use: PodUse) -> None:
        self._cpu += use.host.cpu_milli
        self._host_memory += use.host.memory_mib
        self._pods += 1
        for resource, of in self._devices.items():
            if count := devices_of(use.pod, resource):
                self._devices[resource] = of._replace(used=of.used + count, pods=(*of.pods, _name(use.pod)))
        if use.unreserved:
            self._unreserved.update(use.groups)
        share = use.share
        if use.reserves:
            self._holders[use.groups[0]].append(use.pod)
        elif isinstance(share, UnreadableShareError):
            self._report(DiscrepancyReason.UNREADABLE_SHARE, share.message)
            self._count_unreadable(use)
        elif share is None:
            pass
        elif share.whole:
            self._count_whole(use.pod, share.devices)
        else:
            self._count_share(use, share)

    def _count_whole(self, pod: Pod, devices: int) -> None:
        self._whole += devices
        if pod.deletion_timestamp is not None:
            self._releasing_whole += devices

    def _count_share(self, use: PodUse, share: GPUShare) -> None:
        pod, groups = use.pod, use.groups
        member = GroupMember(pod, self._milli(share) if share.milli is None else share.milli, share.memory_mib)
        if len(groups) != share.devices:
            reason = DiscrepancyReason.WRONG_GROUPS if groups else DiscrepancyReason.NO_GROUP
            self._report(reason, f"Pod {_name(pod)} requests {share}, but is in {len(groups)} GPU groups")
            if (ungrouped := share.devices - len(groups)) > 0:
                self._count_whole(pod, ungrouped)
                self._ungrouped.append((member, ungrouped))
        for name in groups:
            self._members[name].append(member)
        if use.bound:
            self._bound.update(groups)

    def _milli(self, share: GPUShare) -> Milli:
        """Thousandths of one of the node's GPUs. If its memory or TFLOPS are not known, the share may be all of it."""
        memory = share.divided_mib(self._memory or 0)
        product = self._node.labels.get(GPU_PRODUCT, "")
        speed = tflops_milli(product, self._accounting.tflops) if share.tflops_milli is not None else None
        known = (share.memory_mib is None or memory) and (share.tflops_milli is None or speed)
        return share.milli_of(memory, speed or 0) if known else GPU_MILLI

    def _count_unreadable(self, use: PodUse) -> None:
        """A pod whose request cannot be read gets the GPUs of its groups, at least one GPU."""
        for name in use.groups:
            self._members[name].append(GroupMember(use.pod, GPU_MILLI, readable=False))
        if use.bound:
            self._bound.update(use.groups)
        if not use.groups:
            self._count_whole(use.pod, 1)

    def _group(self, name: str) -> GpuGroup:
        members, holders = self._members.get(name, []), self._holders.get(name, [])
        bound, unreserved = name in self._bound, name in self._unreserved
        if not holders and bound and not unreserved:
            self._unheld.append(name)
        elif len(holders) > 1:
            self._report(
                DiscrepancyReason.SEVERAL_RESERVATIONS, f"{len(holders)} reservation pods hold GPUs for group {name}"
            )
            self._whole += len(holders) - 1
        used = summed_milli(members)
        if exceeds_gpu(used):
            self._report(
                DiscrepancyReason.OVERBOOKED, f"the shares of group {name} are {float(used) / GPU_MILLI:g} of one GPU"
            )
        if len(members) > 1:
            members.sort(key=lambda member: member.pod.key)
        holders.sort(key=lambda pod: pod.key)
        return GpuGroup(
            name=name,
            members=tuple(members),
            holders=tuple(holders),
            gpu=name if unreserved else _reserved_gpu(holders),
            memory_mib=self._memory,
            used_milli=used,
            joinable=self._shareable and _joinable(holders, bound),
        )

    def _part_devices(self) -> dict[str, PartDevices]:
        parts = {*self._accounting.device_resources, *filter(is_part_of_gpu, self._node.allocatable)}
        parts.discard(self._accounting.gpu_resource)  # replicas of that name are counted as GPUs
        found = ((resource, gpu_devices(self._node, resource) or 0) for resource in parts)
        return {resource: PartDevices(resource, min(count, MAX_DEVICES)) for resource, count in found if count > 0}

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


def _in_order(devices: PartDevices) -> PartDevices:
    return devices._replace(pods=tuple(sorted(devices.pods)))


def _reserved_gpu(reservations: Collection[Pod]) -> str:
    """UUID of the GPU that the reservations hold; empty if they hold none that is known, or several."""
    if not reservations:
        return ""
    found = {pod.annotations.get(RESERVED_GPU, "") for pod in reservations} - {"", UNKNOWN_GPU}
    return found.pop() if len(found) == 1 else ""


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
