"""Inputs and results of packing: what pods need, what nodes offer, and which pods are on which node."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from plimsoll.packing.units import GPU_MILLI, UNBOUNDED, Milli

HOST: Final = ("cpu_milli", "memory_mib", "storage_mib")
"""The resources of a node besides its devices, by the fields of that name."""


@dataclass(frozen=True, slots=True)
class PodNeed:
    """What one pod needs of one node. The name must be unique."""

    name: str
    milli: Mapping[str, Milli]
    """Thousandths that it takes of each of its devices, by kind; 1000 for whole ones, `{ANY: n}` if every kind can hold
    it."""
    devices: int = 1
    """Number of different devices of one node: GPUs, or what pods request instead (`NodeShape.per_gpu`)."""
    cpu_milli: int = 0
    memory_mib: int = 0
    """Memory of the node, in MiB."""
    scheduler: str = ""
    """Pods with different schedulers cannot be on one node. Empty: the pod can be with all others."""
    storage_mib: int = 0
    """Ephemeral storage of the node, in MiB."""
    order: tuple[int, str, str, str] = (0, "", "", "")
    """A scheduler that spreads pods places those of a lower order first, then by name."""


@dataclass(frozen=True, slots=True)
class NodeShape:
    """What a new node of an instance type offers to pods. The name must be unique."""

    name: str
    kind: str
    gpus: int
    cpu_milli: int
    memory_mib: int
    price: float | None = None
    """Price of one node, in the same unit for all shapes; None if it is not known: such shapes come last,
    those with the least GPU memory first."""
    pods: int = UNBOUNDED
    """Maximum number of pods. Each shared GPU uses one more, for its reservation pod."""
    gpu_memory_mib: int | None = None
    """MiB of one GPU; None if it is not known."""
    per_gpu: int = 1
    """Number of devices that pods can request of each GPU. All devices of a node are alike: a pod may use those of
    different GPUs."""
    storage_mib: int = UNBOUNDED
    spread: bool = False
    """As of FreeNode."""

    @property
    def devices(self) -> int:
        return self.gpus * self.per_gpu


@dataclass(frozen=True)
class FreeNode:
    """Free resources of a node that exists or was requested. The name must be unique.

    Parts of GPUs are slow to compare and to hash, and nodes are packed again and again: their order is kept.
    """

    name: str
    kind: str
    devices: tuple[Milli, ...]
    """Free thousandths of each device."""
    cpu_milli: int
    memory_mib: int
    pods: int = UNBOUNDED
    """Number of further pods. Each GPU that is entirely free uses one more once it is shared."""
    tier: int = 0
    """Nodes of a lower tier are filled first."""
    scheduler: str = ""
    """As of PodNeed, of the pods that use the node already."""
    storage_mib: int = UNBOUNDED
    spread: bool = False
    """Whether the scheduler places pods breadth first: on the node and the devices with the most free."""

    @cached_property
    def least_first(self) -> tuple[int, ...]:
        """The indexes of its devices, the one with the least free first."""
        return tuple(sorted(range(len(self.devices)), key=lambda device: (self.devices[device], device)))

    @cached_property
    def free(self) -> tuple[Milli, ...]:
        """Free thousandths of its devices, least first."""
        return tuple(self.devices[device] for device in self.least_first)

    @cached_property
    def alike(self) -> tuple[object, ...]:
        """Equal for nodes that differ in their names, the order of their devices and their storage only."""
        parts = tuple(number for free in self.free for number in free.as_integer_ratio())
        return (self.tier, self.kind, parts, self.cpu_milli, self.memory_mib, self.pods, self.scheduler, self.spread)


@dataclass(frozen=True, slots=True)
class Limit:
    """An amount that new nodes together must not exceed."""

    left: int
    uses: Mapping[str, int]
    """What one node of a shape uses, by name of the shape. Other shapes use nothing."""


@dataclass(frozen=True)
class FilledNode:
    """A node with the pods that are planned on it. Either `node`, the name of an existing node, or `shape`, the name of
    a new node's shape, is set."""

    devices: tuple[tuple[str, ...], ...]
    """Names of the pods on each device, by the device's index on the node. A pod that uses several is on each."""
    kind: str
    node: str | None = None
    shape: str | None = None
    domains: tuple[tuple[str, str], ...] = ()
    """(key, domain) of a new node, where rules of its pods decide on it."""

    @cached_property
    def pods(self) -> tuple[str, ...]:
        """Names of its pods, sorted, without duplicates."""
        return tuple(sorted({name for held in self.devices for name in held}))


@dataclass(frozen=True, slots=True)
class NodePacking:
    """The result of packing: each pod on one node, except the unplaced; existing nodes first. Nodes without pods are
    left out."""

    nodes: tuple[FilledNode, ...] = ()
    unplaced: tuple[str, ...] = ()
    """Names of the pods without a place, sorted."""
    least: int = 0
    """Lower bound of the GPUs of new nodes for the placed pods, by shares, CPU, memory and shapes together."""
    lower_bound: float = 0.0
    """Lower bound of the new GPUs by the linear program over patterns alone, which ignores nodes; at most `least`."""
    gpus: int = 0
    """GPUs of new nodes, including unused ones."""

    @property
    def new_nodes(self) -> tuple[FilledNode, ...]:
        return tuple(each for each in self.nodes if each.shape is not None)


@dataclass(frozen=True, slots=True)
class Item:
    """Pods with equal needs."""

    milli: tuple[tuple[str, Milli], ...]
    """Thousandths by kind of GPU, sorted by kind; not empty."""
    devices: int
    cpu_milli: int
    memory_mib: int
    names: tuple[str, ...]
    """Names of the pods, sorted."""
    scheduler: str = ""
    """As of PodNeed."""
    storage_mib: int = 0

    @property
    def count(self) -> int:
        return len(self.names)

    @property
    def least_milli(self) -> Milli:
        """Thousandths that it takes of one of its GPUs, on the kind where this is least."""
        return min(size for _, size in self.milli)

    @property
    def whole(self) -> bool:
        """Whether it uses whole GPUs, which cannot be shared."""
        return all(size == GPU_MILLI for _, size in self.milli)

    @property
    def single(self) -> bool:
        """Whether it is a share of one GPU."""
        return self.devices == 1 and not self.whole
