"""The account of one node's GPUs: what its pods take of each, and what is left.

The figures of a group are those of the ledger that KAI keeps as GpuSharingNodeInfo, there in bytes, here in MiB.
Where the cluster contradicts itself, more is counted as taken, never less, and a Discrepancy says so.
"""

from dataclasses import dataclass
from enum import StrEnum

from plimsoll.model.cluster import Node
from plimsoll.packing import GPU_MILLI
from plimsoll.packing.nodes import UNBOUNDED


class DiscrepancyReason(StrEnum):
    """The closed list of what can be wrong with the GPUs of a node."""

    SEVERAL_RESERVATIONS = "SeveralReservations"
    """More than one reservation holds a GPU for the same group: each holds one, and pods run on one of them."""
    NO_RESERVATION = "NoReservation"
    """Shares run on a GPU that nobody reserved, so that others may be given it."""
    NO_GROUP = "NoGroup"
    """A share runs on a node and does not say on which of its GPUs."""
    OVERBOOKED = "Overbooked"
    """The shares of a group are more than its GPU."""
    TOO_MANY_GPUS = "TooManyGPUs"
    """Pods and groups hold more GPUs than the node has."""
    UNREADABLE_SHARE = "UnreadableShare"
    """A pod on the node asks for something that cannot be read."""
    WRONG_GROUPS = "WrongGroups"
    """A pod is in more groups, or fewer, than it asks for GPUs."""
    UNREADABLE_NODE = "UnreadableNode"
    """The node says something of itself that cannot be read."""
    NOT_SHAREABLE = "NotShareable"
    """Shares are on a node whose devices are no whole GPUs (time-slicing, MPS, MIG)."""


@dataclass(frozen=True, slots=True)
class Discrepancy:
    """Where the cluster contradicts itself."""

    node: str
    reason: DiscrepancyReason
    message: str


@dataclass(frozen=True, slots=True)
class GpuGroup:
    """One GPU of a node that shares run on, or are about to."""

    name: str
    reservations: tuple[str, ...] = ()
    """`namespace/name` of the pods that hold the GPU."""
    gpu: str = ""
    """UUID; empty where it is not known."""
    pods: tuple[str, ...] = ()
    """`namespace/name` of the pods with a share of it."""
    allocated_milli: int = 0
    """Thousandths of pods that stay."""
    releasing_milli: int = 0
    """Thousandths of pods that are terminating."""
    allocated_mib: int | None = 0
    """MiB of pods that stay; None where a share of it cannot be told in MiB."""
    releasing_mib: int | None = 0
    joinable: bool = True
    """Whether another share may be put there: one reservation holds it, and stays, or is about to be made."""

    @property
    def used_milli(self) -> int:
        return self.allocated_milli + self.releasing_milli

    @property
    def used_mib(self) -> int | None:
        """MiB of all its pods."""
        if self.allocated_mib is None or self.releasing_mib is None:
            return None
        return self.allocated_mib + self.releasing_mib

    @property
    def releasing(self) -> bool:
        """Whether all that uses it is terminating."""
        return bool(self.pods) and self.allocated_milli == 0

    @property
    def free_milli(self) -> int:
        return max(0, GPU_MILLI - self.used_milli) if self.joinable else 0

    @property
    def likely_free_milli(self) -> int:
        """As `free_milli`, also where no reservation holds it yet."""
        return max(0, GPU_MILLI - self.used_milli) if self.joinable or not self.reservations else 0


@dataclass(frozen=True, slots=True)
class GpuAccount:
    """The GPUs of one node."""

    node: Node
    kind: str
    """GPU product, as GFD labels it; empty where it does not."""
    gpus: int
    """Devices that pods may ask for."""
    memory_mib: int | None
    """Of one GPU; None where it is not labelled."""
    groups: tuple[GpuGroup, ...] = ()
    """By name."""
    whole: int = 0
    """GPUs that pods have whole, and those that can be given to nobody."""
    loose: tuple[tuple[int, int], ...] = ()
    """Shares that do not say on which GPUs they run, as (thousandths, GPUs), the largest first; each of these GPUs is
    in `whole`."""
    releasing_whole: int = 0
    """Of `whole`, those of pods that are terminating."""
    shareable: bool = True
    """Whether its devices are whole GPUs, so that parts of them can be given."""
    cpu_milli: int = 0
    """CPU that pods leave free."""
    host_memory_mib: int = 0
    """Memory that pods leave free."""
    free_pods: int = UNBOUNDED
    """How many more pods it takes; below 0 where it has more than it takes."""
    discrepancies: tuple[Discrepancy, ...] = ()

    @property
    def reservations_to_come(self) -> int:
        """Groups that no reservation holds yet, or any more: each will have one, which is a pod too."""
        return sum(not group.reservations for group in self.groups)

    @property
    def pod_room(self) -> int:
        """As `free_pods`, less what is kept for reservations to come."""
        return self.free_pods if self.free_pods >= UNBOUNDED else self.free_pods - self.reservations_to_come

    @property
    def taken(self) -> int:
        """GPUs that are not wholly free."""
        return self.whole + len(self.groups)

    @property
    def free_gpus(self) -> int:
        """Wholly free GPUs."""
        return max(0, self.gpus - self.taken)

    @property
    def free_milli(self) -> tuple[int, ...]:
        """Free thousandths of each GPU: of the groups by name, of the wholly free, of the taken."""
        if self.taken > self.gpus:  # nobody knows which of them are real
            return (0,) * self.gpus
        free = tuple(group.free_milli for group in self.groups)
        return free + (GPU_MILLI,) * self.free_gpus + (0,) * self.whole

    @property
    def likely_free_milli(self) -> tuple[int, ...]:
        """As `free_milli`, but shares that do not say their GPU lie together, not each on a GPU of its own.

        For who asks for nodes: pods that are bound one after the other, and say no GPU, must not look like more than
        they were planned as. Who gives a GPU to a pod must know it, and goes by `free_milli`.
        """
        bins: list[int] = []
        for milli, devices in self.loose:
            fitting = sorted((left, number) for number, left in enumerate(bins) if left >= milli)[:devices]
            for left, number in fitting:
                bins[number] = left - milli
            bins += [GPU_MILLI - milli] * (devices - len(fitting))
        known = self.whole - sum(devices for _, devices in self.loose)
        wholly_free = self.gpus - known - len(self.groups) - len(bins)
        if wholly_free < 0:
            return (0,) * self.gpus
        groups = tuple(each.likely_free_milli for each in self.groups)
        return (*groups, *bins, *(GPU_MILLI,) * wholly_free, *(0,) * known)

    def group(self, name: str) -> GpuGroup | None:
        return next((group for group in self.groups if group.name == name), None)
