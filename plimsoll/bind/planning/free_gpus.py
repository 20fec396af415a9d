"""What is free on the GPUs of nodes, and the nodes by it: a share of one GPU finds its place without comparing all
nodes."""

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import islice
from typing import NamedTuple

from plimsoll.cluster.ledger import GpuAccount
from plimsoll.model.kai import GPUShare
from plimsoll.packing import GPU_MILLI, Milli

_Entry = tuple[int, str]
"""Number of a node's GPUs that are entirely free, and its name: of nodes that fit as well, the smallest is the best."""


class FreeGpus(NamedTuple):
    """What shares can get of the GPUs of one node."""

    account: GpuAccount
    joinable: tuple[tuple[Milli, str], ...]
    """Free thousandths and names of the groups that a pod may join, sorted."""
    new: int
    """Number of GPUs that can become shared."""
    spread: bool = False
    """Whether pods get the node and the GPUs with the most free."""

    @property
    def entry(self) -> _Entry:
        return self.account.free_gpus, self.account.node.name


def milli_of(share: GPUShare, memory_mib: int | None) -> Milli | None:
    """Thousandths that a share takes of a GPU with that memory; None if the GPU is too small, or that is not known."""
    if memory_mib is None and share.memory_mib is not None:
        return None
    milli = share.milli_of(memory_mib or 0)
    return milli if milli <= GPU_MILLI else None


class FreeGpuIndex:
    """Nodes by what is free on their GPUs."""

    def __init__(self, nodes: Iterable[FreeGpus]) -> None:
        self._by_memory: defaultdict[int | None, _Nodes] = defaultdict(_Nodes)
        for each in nodes:
            self.add(each)

    def add(self, node: FreeGpus) -> None:
        self._by_memory[node.account.memory_mib].add(node)

    def remove(self, node: FreeGpus) -> None:
        """Removes a node, which was added with these values."""
        self._by_memory[node.account.memory_mib].remove(node)

    def fitting(self, share: GPUShare) -> Iterator[tuple[str, int]]:
        """The nodes with a GPU for a share of one GPU, and how many of its GPUs become shared, the best first: those
        with a group that it can join (0), by what it leaves free there, then those with an entirely free GPU (1). A
        node may come several times. The index must not change meanwhile."""
        sizes = [(nodes, milli_of(share, memory)) for memory, nodes in self._by_memory.items()]
        fitting = [(nodes, milli) for nodes, milli in sizes if milli is not None]
        for _, (_, name) in merge(*(nodes.joinable(milli) for nodes, milli in fitting)):
            yield name, 0
        for _, (_, name) in merge(*(nodes.new(milli) for nodes, milli in fitting)):
            yield name, 1


class _Nodes:
    """Those whose GPUs have the same memory."""

    def __init__(self) -> None:
        self._amounts: list[Milli] = []
        """Free thousandths of groups, sorted."""
        self._joinable: dict[Milli, list[_Entry]] = {}
        """The nodes with a group that has so many thousandths free, sorted; once for each such group."""
        self._new: list[_Entry] = []
        """The nodes with an entirely free GPU, sorted."""

    def add(self, node: FreeGpus) -> None:
        for amount, _ in node.joinable:
            if amount not in self._joinable:
                insort(self._amounts, amount)
                self._joinable[amount] = []
            insort(self._joinable[amount], node.entry)
        if node.new:
            insort(self._new, node.entry)

    def remove(self, node: FreeGpus) -> None:
        for amount, _ in node.joinable:
            entries = self._joinable[amount]
            del entries[bisect_left(entries, node.entry)]
            if not entries:
                del self._joinable[amount]
                del self._amounts[bisect_left(self._amounts, amount)]
        if node.new:
            del self._new[bisect_left(self._new, node.entry)]

    def joinable(self, milli: Milli) -> Iterator[tuple[Milli, _Entry]]:
        """What the share leaves free of a GPU, and the node."""
        for amount in islice(self._amounts, bisect_left(self._amounts, milli), None):
            left = amount - milli
            for entry in self._joinable[amount]:
                yield left, entry

    def new(self, milli: Milli) -> Iterator[tuple[Milli, _Entry]]:
        """As `joinable`, of entirely free GPUs."""
        left = GPU_MILLI - milli
        for entry in self._new:
            yield left, entry
