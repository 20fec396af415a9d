"""The account of one node's GPUs: what its pods use of each, and what is left.

The figures of a group are those of KAI's GpuSharingNodeInfo, there in bytes, here in MiB. Where objects contradict each
other, the larger amount counts as used, and a Discrepancy reports it. What only a pod says of itself counts for
nothing: somebody must have placed it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from plimsoll.cluster.profiles import DiscrepancyReason
from plimsoll.model.cluster import NVIDIA, Device, Node, Pod
from plimsoll.model.dra import SharedDevice
from plimsoll.model.kai import shareable_memory_mib
from plimsoll.packing import GPU_MILLI, UNBOUNDED, Milli, exact_milli


@dataclass(frozen=True, slots=True)
class Discrepancy:
    """Objects of the cluster that contradict each other."""

    node: str
    reason: DiscrepancyReason
    message: str


class GroupMember(NamedTuple):
    """A pod with a share of a group's GPU."""

    pod: Pod
    milli: Milli
    """Thousandths of the GPU."""
    mib: int | None = None
    """MiB of the GPU, where it requests MiB."""
    readable: bool = True
    """Whether its request can be read."""


class GpuGroup(NamedTuple):
    """One GPU of a node that shares run on, or will run on."""

    name: str
    members: tuple[GroupMember, ...] = ()
    """Sorted by namespace and name."""
    holders: tuple[Pod, ...] = ()
    """The reservation pods, sorted by namespace and name."""
    gpu: str = ""
    """UUID; empty where it is not known."""
    memory_mib: int | None = None
    """MiB of the GPU; None if it is not labelled."""
    used_milli: Milli = 0
    """Thousandths of all its pods, as in KAI; terminating ones included."""
    joinable: bool = True
    """Whether another share may be placed there: exactly one reservation holds it and stays, or will be created."""

    @property
    def reservations(self) -> tuple[str, ...]:
        """`namespace/name` of the pods that hold the GPU."""
        return _names(self.holders)

    @property
    def pods(self) -> tuple[str, ...]:
        """`namespace/name` of the pods with a share of it."""
        return _names(member.pod for member in self.members)

    @property
    def used_mib(self) -> int | None:
        """MiB of all its pods, rounded up; None where a share cannot be converted to MiB."""
        return _mib(self.members, self.memory_mib)

    @property
    def releasing_mib(self) -> int | None:
        """The part of `used_mib` whose pods are terminating."""
        return _mib(self._terminating, self.memory_mib)

    @property
    def releasing(self) -> bool:
        """Whether all of its pods are terminating."""
        return bool(self.members) and len(self._terminating) == len(self.members)

    @property
    def _terminating(self) -> tuple[GroupMember, ...]:
        return tuple(member for member in self.members if member.pod.deleting)

    @property
    def free_milli(self) -> Milli:
        """For shares of its pods' scheduler: a GPU that TensorFusion chose has no reservation and serves its pods."""
        chosen = self.gpu and not self.holders
        return _left_of(self.used_milli) if self.joinable or chosen else 0

    @property
    def likely_free_milli(self) -> Milli:
        """As `free_milli`, also if no reservation holds it yet."""
        return _left_of(self.used_milli) if self.joinable or not self.holders else 0


def summed_milli(members: Iterable[GroupMember]) -> Milli:
    """Thousandths of the GPU that they have together."""
    found: Milli = 0
    for member in members:
        # Most GPUs have one pod, and to add a fraction to zero costs as much as to add it to another.
        found = found + member.milli if found else member.milli
    return found


def _left_of(used: Milli) -> Milli:
    return _left(used.numerator, used.denominator)


@lru_cache(maxsize=4096)
def _left(numerator: int, denominator: int) -> Milli:
    """Cached, because many groups use as much, and by two numbers: fractions take long to subtract and to hash."""
    return max(0, exact_milli(denominator * GPU_MILLI - numerator, denominator * GPU_MILLI))


def exceeds_gpu(milli: Milli) -> bool:
    """`milli > GPU_MILLI`, in a tenth of the time that a comparison of fractions takes."""
    return milli.numerator > GPU_MILLI * milli.denominator


def _names(pods: Iterable[Pod]) -> tuple[str, ...]:
    return tuple(f"{pod.namespace}/{pod.name}" for pod in pods)


def _mib(members: Iterable[GroupMember], memory_mib: int | None) -> int | None:
    """MiB that they have together of a GPU with that memory, rounded up; None if one cannot be converted."""
    mib, converted = 0, list[GroupMember]()
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
    milli = summed_milli(converted)
    return mib - (-milli.numerator * shareable_memory_mib(memory_mib) // (milli.denominator * GPU_MILLI))


class PartDevices(NamedTuple):
    """Devices of a node that are parts of its GPUs: by time-slicing, MPS or MIG."""

    resource: str
    """The extended resource."""
    allocatable: int = 0
    used: int = 0
    """Devices that pods request; more than are allocatable where the objects contradict each other."""
    pods: tuple[str, ...] = ()
    """`namespace/name` of these pods, sorted."""

    @property
    def free(self) -> int:
        return max(0, self.allocatable - self.used)


@dataclass(frozen=True, slots=True)
class GpuAccount:
    """The GPUs of one node."""

    node: Node
    device: Device
    """What its labels say of one of its GPUs; without a product where they do not."""
    gpus: int
    """Devices that pods can request as GPUs: the smaller one of what labels say and what is allocatable."""
    groups: tuple[GpuGroup, ...] = ()
    """Sorted by name."""
    shared: tuple[SharedDevice, ...] = ()
    """GPUs of which claims have parts; sorted."""
    whole: int = 0
    """GPUs that pods use whole, and those that cannot be used."""
    releasing_whole: int = 0
    """The part of `whole` whose pods are terminating."""
    shareable: bool = True
    """Whether its devices are whole GPUs, which can be shared."""
    devices: tuple[PartDevices, ...] = ()
    """Devices that are parts of its GPUs, by resource; only resources of which it has any."""
    users: tuple[str, ...] = ()
    """`namespace/name` of the pods that have devices of another vendor than NVIDIA, sorted."""
    cpu_milli: int = 0
    """Free CPU; below 0 if pods request more than there is."""
    host_memory_mib: int = 0
    """Free memory of the host; below 0 if pods request more than there is."""
    storage_mib: int = 0
    """Free ephemeral storage; below 0 if pods request more than there is."""
    free_pods: int = UNBOUNDED
    """Number of pods that still fit; below 0 if there are too many."""
    discrepancies: tuple[Discrepancy, ...] = ()
    """By reason and message."""

    @property
    def kind(self) -> str:
        """GPU product, as GPU Feature Discovery labels it; empty where it does not."""
        return self.device.product

    @property
    def vendor_resource(self) -> str:
        """The extended resource of its devices, where they are of another vendor than NVIDIA; empty elsewhere."""
        return "" if self.device.vendor == NVIDIA or self.driver else self.device.resource

    @property
    def driver(self) -> str:
        """The driver that publishes its GPUs, where pods get these by claims; empty elsewhere."""
        return self.device.claimable.driver if self.device.claimable is not None else ""

    @property
    def claims(self) -> tuple[tuple[str, tuple[str, ...], int], ...]:
        """(`namespace/name`, names of its pods, number of devices) of the ResourceClaims that have devices of it."""
        return self.node.published.claims

    @property
    def memory_mib(self) -> int | None:
        """MiB of one GPU; None if it is not labelled."""
        return self.device.memory_mib

    @property
    def missing_reservations(self) -> int:
        """Groups without a reservation and a GPU: each will get one, which is also a pod."""
        return sum(not (group.holders or group.gpu) for group in self.groups)

    @property
    def pod_room(self) -> int:
        """As `free_pods`, without the room for missing reservations."""
        return self.free_pods if self.free_pods >= UNBOUNDED else self.free_pods - self.missing_reservations

    @property
    def taken(self) -> int:
        """GPUs that are not entirely free."""
        return self.whole + len(self.groups) + len(self.shared)

    @property
    def free_gpus(self) -> int:
        """GPUs that are entirely free."""
        return max(0, self.gpus - self.taken)

    @property
    def free_milli(self) -> tuple[Milli, ...]:
        """Free thousandths of each GPU: of groups by name, of GPUs that claims share, of free GPUs, of used
        ones."""
        if self.taken > self.gpus:  # it is not known which of them exist
            return (0,) * self.gpus
        free = tuple(group.free_milli for group in self.groups)
        return free + self._shared_milli + (GPU_MILLI,) * self.free_gpus + (0,) * self.whole

    @property
    def likely_free_milli(self) -> tuple[Milli, ...]:
        """As `free_milli`, also of GPUs whose reservation will be created again. Binding must know the GPU, and uses
        `free_milli`."""
        if self.taken > self.gpus:
            return (0,) * self.gpus
        likely = tuple(group.likely_free_milli for group in self.groups)
        return likely + self._shared_milli + (GPU_MILLI,) * self.free_gpus + (0,) * self.whole

    @property
    def _shared_milli(self) -> tuple[Milli, ...]:
        return tuple(each.free for each in self.shared)

    @property
    def has_gpus(self) -> bool:
        """Whether it has GPUs or parts of GPUs, or pods that use some."""
        return bool(self.gpus or self.taken or self.devices)

    def devices_of(self, resource: str) -> PartDevices:
        return next((each for each in self.devices if each.resource == resource), PartDevices(resource))

    def group(self, name: str) -> GpuGroup | None:
        return next((group for group in self.groups if group.name == name), None)
