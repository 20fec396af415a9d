"""What pods need of nodes, what nodes offer, and how pods lie on nodes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from plimsoll.packing.gpus import Price
from plimsoll.packing.units import GPU_MILLI

UNBOUNDED: Final = 2**40
"""Stands for CPU, memory or pods of a node of which nobody tells: as if there were enough."""


def less(amount: int, taken: int) -> int:
    """What is left of an amount, at least 0; of what is unbounded no part is missed."""
    return amount if amount >= UNBOUNDED else max(0, amount - taken)


@dataclass(frozen=True, slots=True)
class PodNeed:
    """What one pod asks of one node. Names are unique."""

    name: str
    milli: Mapping[str, int]
    """Thousandths of each of its GPUs, for each kind that may hold it, 1000 for whole GPUs; `ANY` as in packing."""
    devices: int = 1
    """Different GPUs of one node."""
    cpu_milli: int = 0
    memory_mib: int = 0
    """Host memory."""

    @property
    def whole(self) -> bool:
        """Whether nobody can share its GPUs."""
        return all(size == GPU_MILLI for size in self.milli.values())

    @property
    def single(self) -> bool:
        """Whether it asks for a part of one GPU, which others may share."""
        return self.devices == 1 and not self.whole


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
    """How many pods it takes."""


@dataclass(frozen=True, slots=True)
class FreeNode:
    """What is free on a node that exists or is on its way. Names are unique."""

    name: str
    kind: str
    gpus: tuple[int, ...]
    """Free thousandths of each GPU."""
    cpu_milli: int
    memory_mib: int
    pods: int = UNBOUNDED
    """How many more pods it takes."""


@dataclass(frozen=True, slots=True)
class FilledNode:
    """A node with the pods that it is to take: an existing `node`, or a new one of a `shape`."""

    gpus: tuple[tuple[str, ...], ...]
    """The pods on each GPU, by its number on the node; a pod of several devices stands on each of its GPUs."""
    kind: str
    node: str | None = None
    shape: str | None = None

    @property
    def pods(self) -> tuple[str, ...]:
        """Sorted, each once."""
        return tuple(sorted({name for held in self.gpus for name in held}))


@dataclass(frozen=True, slots=True)
class NodePacking:
    """Each pod once, on one node, but for the unplaced; existing nodes first; none without pods."""

    nodes: tuple[FilledNode, ...] = ()
    unplaced: tuple[tuple[str, str], ...] = ()
    """(pod, why)"""
    least: int = 0
    """GPUs of new nodes that no packing of those placed can do without, by shares, CPU, memory and shapes together."""
    lower_bound: float = 0.0
    """New GPUs by the linear program over patterns alone, as if nodes did not matter; at most `least`."""
    prices: tuple[Price, ...] = ()
    """The dual prices of shares that prove `lower_bound`."""

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
