"""Reads the account of one node's GPUs from the node and its pods."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from plimsoll.cluster.ledger.account import (
    Discrepancy,
    GpuAccount,
    GpuGroup,
    GroupMember,
    PartDevices,
    exceeds_gpu,
    summed_milli,
)
from plimsoll.cluster.ledger.pod_use import PodUse
from plimsoll.cluster.nodes import gpu_devices
from plimsoll.cluster.pods import ShareRefusal, tflops_milli
from plimsoll.cluster.profiles import DiscrepancyReason, discovery_of, parts_of, shared_gpus, taken_gpus
from plimsoll.labels import RESERVED_GPU, UNKNOWN_GPU, is_part_of_gpu
from plimsoll.model.cluster import Device, HostLoad, Node, Pod
from plimsoll.model.kai import MAX_DEVICES, GPUShare, is_share_annotation
from plimsoll.model.meta import EPHEMERAL_STORAGE
from plimsoll.packing import GPU_MILLI, UNBOUNDED, Milli
from plimsoll.quantity import amount_in, parse_cpu_milli, parse_devices, parse_memory_mib


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
        self._discovery = discovery_of(node, accounting.gpu_resource)
        labels = self._discovery.labels
        self._by_claims = [device for device in self._discovery.devices if device.claimable is not None]
        """Devices that pods get by claims, which then say what is in use, if no device plugin announces them."""
        claimed = self._by_claims[0] if self._by_claims else None
        other = self._discovery.of_vendor
        self._device = self._discovery.gpus or claimed or other or Device(labels.product, labels.memory_mib, 0)
        self._of_vendor = other.resource if other is not None and self._device is other else ""
        """The resource of its GPUs, where they are of another vendor than NVIDIA."""
        self._memory = self._device.memory_mib
        self._shareable = self._discovery.shareable
        self._members: defaultdict[str, list[GroupMember]] = defaultdict(list)
        """Pods with a share, by group."""
        self._unreserved: set[str] = set()
        """Groups that need no reservation."""
        self._bound: set[str] = set()
        """Groups with a bound pod that has a share."""
        self._claimed: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
        """Bound pods that only say themselves that they are in a group, by group: (namespace, name)."""
        self._holders: defaultdict[str, list[Pod]] = defaultdict(list)
        """Reservation pods, by group."""
        self._whole = taken_gpus(node.published)
        self._shared = shared_gpus(node.published)
        self._releasing_whole = 0
        self._users: list[str] = []
        self._cpu = sum(each.cpu_milli for each in other_loads)
        self._host_memory = sum(each.memory_mib for each in other_loads)
        self._storage = sum(each.storage_mib for each in other_loads)
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
        for finding in self._discovery.findings:
            self._report(*finding)
        self._drop_unplaced()
        groups_found = sorted({*self._members, *self._holders})
        if groups_found and not self._shareable:
            self._report(
                DiscrepancyReason.NOT_SHAREABLE,
                "its devices are shared or partitioned, and pods with GPU shares run on them",
            )
        groups = tuple([self._group(name) for name in groups_found])
        if self._unheld:
            which = (
                f"GPUs of groups {', '.join(sorted(self._unheld))}"
                if len(self._unheld) > 1
                else f"GPU of group {self._unheld[0]}"
            )
            self._report(DiscrepancyReason.NO_RESERVATION, f"no reservation pod holds the {which}")
        for gpu, several in Counter(group.gpu for group in groups if group.gpu).items():
            if several > 1:
                names = ", ".join(group.name for group in groups if group.gpu == gpu)
                self._report(DiscrepancyReason.SHARED_GPU, f"the reservations of groups {names} hold one GPU, {gpu}")
        if self._whole + len(groups) + len(self._shared) > gpus:
            self._report(
                DiscrepancyReason.TOO_MANY_GPUS,
                f"{self._whole} GPUs are used whole and {len(groups) + len(self._shared)} shared, but it has {gpus}",
            )
        return GpuAccount(
            node=self._node,
            device=self._device,
            gpus=gpus,
            groups=groups,
            shared=self._shared,
            whole=self._whole,
            releasing_whole=self._releasing_whole,
            shareable=self._shareable,
            devices=tuple(_in_order(each) for _, each in sorted(self._devices.items())),
            users=tuple(sorted(self._users)),
            cpu_milli=amount_in(self._node.allocatable, "cpu", parse_cpu_milli) - self._cpu,
            host_memory_mib=amount_in(self._node.allocatable, "memory", parse_memory_mib) - self._host_memory,
            storage_mib=amount_in(self._node.allocatable, EPHEMERAL_STORAGE, parse_memory_mib) - self._storage,
            free_pods=self._free_pods(),
            discrepancies=tuple(sorted(self._discrepancies, key=lambda each: (each.reason, each.message))),
        )

    def _read(self, use: PodUse) -> None:
        self._cpu += use.host.cpu_milli
        self._host_memory += use.host.memory_mib
        self._storage += use.host.storage_mib
        self._pods += 1
        for resource, devices in self._devices.items():
            if count := use.request.count_of(resource):
                self._devices[resource] = devices._replace(
                    used=devices.used + count, pods=(*devices.pods, _name(use.pod))
                )
        if self._of_vendor and (used := self._of_vendor_used(use)):
            self._count_whole(use.pod, used)
            self._users.append(_name(use.pod))
        if use.unreserved:
            self._unreserved.update(use.groups)
        held = use.request.held
        if use.reserves:
            self._holders[use.groups[0]].append(use.pod)
        elif use.request.uncertain:
            self._count_uncertain(use)
        elif held is None or held.resource or (held.whole and self._of_vendor):
            pass  # those of other vendors are counted above, and a node of these has no others
        elif held.whole:
            self._count_whole(use.pod, held.devices)
        else:
            self._count_share(use, held)

    def _count_whole(self, pod: Pod, devices: int) -> None:
        if self._by_claims and self._discovery.gpus is None:
            return  # of a DeviceClass: the claim that its scheduler made for it has them
        self._whole += devices
        if pod.deletion_timestamp is not None:
            self._releasing_whole += devices

    def _of_vendor_used(self, use: PodUse) -> int:
        """Devices of another vendor that a pod has; those of which it has parts are in use as a whole."""
        used, gpus = use.request.count_of(self._of_vendor), self._device.announced
        for part in parts_of(self._of_vendor):
            announced = gpu_devices(self._node, part) or 0
            if announced > 0 and (count := use.request.count_of(part)):
                used += min(gpus, -(-count * gpus // announced))
        return used

    def _count_share(self, use: PodUse, share: GPUShare) -> None:
        pod, groups = use.pod, use.groups
        member = GroupMember(pod, self._milli(share) if share.milli is None else share.milli, share.memory_mib)
        if len(groups) != share.devices:
            reason = DiscrepancyReason.WRONG_GROUPS if groups else DiscrepancyReason.NO_GROUP
            nothing = "" if groups else ": nobody placed it, and it counts for nothing"
            self._report(reason, f"Pod {_name(pod)} requests {share}, but is in {len(groups)} GPU groups{nothing}")
        self._join(use, member)

    def _join(self, use: PodUse, member: GroupMember) -> None:
        """Adds the pod to its groups."""
        for name in use.groups:
            self._members[name].append(member)
            if use.bound:
                self._bound.add(name)
                if not use.told:
                    self._claimed[name].add(use.pod.key)

    def _drop_unplaced(self) -> None:
        """Drops bound pods that nobody placed: anyone may create a pod with `nodeName` and the label of a group, and
        only a binder creates the reservation of its GPU, or tells the pod its UUID."""
        for name in self._claimed.keys() - self._holders.keys():
            left = [each for each in self._members.pop(name) if each.pod.key not in self._claimed[name]]
            if left:
                self._members[name] = left
            else:
                self._bound.discard(name)
                self._unheld.append(name)

    def _milli(self, share: GPUShare) -> Milli:
        """Thousandths of one of the node's GPUs. If its memory or TFLOPS are not known, the share may be all of it."""
        memory = share.divided_mib(self._memory or 0)
        speed = tflops_milli(self._device.product, self._accounting.tflops) if share.tflops_milli is not None else None
        known = (share.memory_mib is None or memory) and (share.tflops_milli is None or speed)
        return share.milli_of(memory, speed or 0) if known else GPU_MILLI

    def _count_uncertain(self, use: PodUse) -> None:
        """It has its whole GPUs, and those of its groups entirely, at least one GPU."""
        request = use.request
        if request.refusal is not None:
            self._report(DiscrepancyReason.UNREADABLE_SHARE, ShareRefusal.of(use.pod, request.refusal).message)
        self._join(use, GroupMember(use.pod, GPU_MILLI, readable=False))
        whole = request.held.devices if request.held is not None and not request.held.resource else 0
        # A number of devices that cannot be read is at least one; annotations alone are nothing that somebody placed.
        told = any(map(is_share_annotation, use.pod.annotations))
        self._count_whole(use.pod, whole if use.groups or told else max(1, whole))

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
        if self._by_claims and self._discovery.gpus is None:
            return sum(device.count for device in self._by_claims)
        if self._of_vendor:
            return self._device.announced
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
        labelled = self._device.announced
        if not labelled or self._accounting.gpu_resource in self._accounting.device_resources:
            return gpus  # discovery has not run, or the Environment declares replicas with the name of whole GPUs
        return min(gpus, labelled)

    def _free_pods(self) -> int:
        allocatable = amount_in(self._node.allocatable, "pods", parse_devices, UNBOUNDED)
        return allocatable if allocatable >= UNBOUNDED else allocatable - self._pods

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


def _name(pod: Pod) -> str:
    return f"{pod.namespace}/{pod.name}"
