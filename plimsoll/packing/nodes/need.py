"""What pods need of nodes, what nodes offer, and how pods lie on nodes."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from plimsoll.packing.units import GPU_MILLI, Milli

UNBOUNDED: Final = 2**40
"""Stands for CPU, memory or pods of a node where the amount is not known: as if there were enough."""


def less(amount: int, taken: int) -> int:
    """What is left of an amount, at least 0; unbounded amounts stay unbounded."""
    return amount if amount >= UNBOUNDED else max(0, amount - taken)


@dataclass(frozen=True, slots=True)
class PodNeed:
    """What one pod needs of one node. Names are unique."""

    name: str
    milli: Mapping[str, Milli]
    """Thousandths of each of its GPUs, for each kind that may hold it, 1000 for whole GPUs; `ANY` as in packing."""
    devices: int = 1
    """Different GPUs of one node."""
    cpu_milli: int = 0
    memory_mib: int = 0
    """Host memory."""


@dataclass(frozen=True, slots=True)
class NodeShape:
    """What a new node of an instance type offers to pods. Names are unique."""

    name: str
    kind: str
    gpus: int
    cpu_milli: int
    memory_mib: int
    price: float | None = None
    """Of one node, in any one unit; None where it is not known."""
    pods: int = UNBOUNDED
    """Number of pods; each GPU that is shared takes one more, for its reservation."""


@dataclass(frozen=True, slots=True)
class FreeNode:
    """What is free on a node that exists or has been requested. Names are unique."""

    name: str
    kind: str
    gpus: tuple[Milli, ...]
    """Free thousandths of each GPU."""
    cpu_milli: int
    memory_mib: int
    pods: int = UNBOUNDED
    """Number of further pods; each GPU that is wholly free takes one more, once it is shared."""
    tier: int = 0
    """Nodes of a lower tier are filled first."""


@dataclass(frozen=True, slots=True)
class Limit:
    """An amount that new nodes may use together."""

    left: int
    uses: Mapping[str, int]
    """What one node of each shape uses, by its name; other shapes use nothing."""


@dataclass(frozen=True)
class FilledNode:
    """A node with the pods that are planned on it: an existing `node`, or a new one of a `shape`."""

    gpus: tuple[tuple[str, ...], ...]
    """The pods on each GPU, by its number on the node; a pod of several devices stands on each of its GPUs."""
    kind: str
    node: str | None = None
    shape: str | None = None

    @cached_property
    def pods(self) -> tuple[str, ...]:
        """Sorted, each once."""
        return tuple(sorted({name for held in self.gpus for name in held}))


@dataclass(frozen=True, slots=True)
class NodePacking:
    """Each pod once, on one node, but for the unplaced; existing nodes first; none without pods."""

    nodes: tuple[FilledNode, ...] = ()
    unplaced: tuple[str, ...] = ()
    """Pods without a place, sorted."""
    least: int = 0
    """GPUs of new nodes that no packing of those placed can do without, by shares, CPU, memory and shapes together."""
    lower_bound: float = 0.0
    """New GPUs by the linear program over patterns alone, as if nodes did not matter; at most `least`."""

    @property
    def new_nodes(self) -> tuple[FilledNode, ...]:
        return tuple(each for each in self.nodes if each.shape is not None)

    @property
    def gpus(self) -> int:
        """GPUs of new nodes, used or not."""
        return sum(len(each.gpus) for each in self.new_nodes)

    @property
    def gap(self) -> int:
        """GPUs of new nodes above the bound; 0: proven to be the fewest."""
        return self.gpus - self.least


@dataclass(frozen=True, slots=True)
class Item:
    """Pods that need the same."""

    milli: tuple[tuple[str, Milli], ...]
    """By the kinds that can hold it, sorted; not empty."""
    devices: int
    cpu_milli: int
    memory_mib: int
    names: tuple[str, ...]
    """Sorted."""

    @property
    def count(self) -> int:
        return len(self.names)

    @property
    def least_milli(self) -> Milli:
        """Thousandths of one of its GPUs, on the kind where that is the least."""
        return min(size for _, size in self.milli)

    @property
    def whole(self) -> bool:
        """Whether its GPUs cannot be shared."""
        return all(size == GPU_MILLI for _, size in self.milli)

    @property
    def single(self) -> bool:
        """Whether it is a share of one GPU."""
        return self.devices == 1 and not self.whole
