"""Nodes being filled by best fit over GPUs, CPU, memory and pods at once. Alike nodes are one row, with a count."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from plimsoll.packing.nodes.need import UNBOUNDED

_FEW_ROWS = 64
_Column = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Ask:
    """What is placed as one: a pod, or GPUs with the pods that they are to hold."""

    sizes: tuple[int, ...]
    """Units of each of its GPUs, by number of kind; 0: not on that kind."""
    held: tuple[tuple[int, ...], ...]
    """For each of its GPUs, the numbers of the items on it; a pod on several GPUs stands on each."""
    cpu_milli: int
    memory_mib: int
    pods: int
    shares: bool
    """Whether a GPU that it is the first on needs a reservation, which is one more pod."""


@dataclass(frozen=True, slots=True)
class Row:
    """Nodes that are alike."""

    label: int
    """Number that the caller gave to the nodes."""
    kind: int
    gpus: tuple[int, ...]
    """Free units of each GPU."""
    held: tuple[tuple[int, ...], ...]
    """Numbers of the items on each GPU."""
    cpu_milli: int
    memory_mib: int
    pods: int
    count: int
    tier: int = 0


class Filling:
    """`whole` is the number of units of a whole GPU."""

    def __init__(self, whole: int) -> None:
        self.whole = whole
        self._rows = 0
        self._width = 1
        self._table = np.zeros((6, _FEW_ROWS), dtype=np.int64)
        """Kind, CPU, memory, pods, count and tier of each row."""
        self._gpus = np.full((_FEW_ROWS, 1), -1, dtype=np.int64)
        self._labels: list[int] = []
        self._held: list[tuple[tuple[int, ...], ...]] = []
        self._counts_pods = False
        self._most = np.ones(2)
        """The most CPU and memory of a row, to compare them with."""

    def copy(self) -> "Filling":
        other = Filling(self.whole)
        other._rows, other._width = self._rows, self._width
        other._table, other._gpus = self._table.copy(), self._gpus.copy()
        other._labels, other._held = self._labels.copy(), self._held.copy()
        other._most, other._counts_pods = self._most.copy(), self._counts_pods
        return other

    def __len__(self) -> int:
        return self._rows

    def add(self, row: Row) -> int:
        """Adds nodes that are alike; gives the number of their row."""
        if len(row.gpus) > self._width or self._rows == len(self._gpus):
            self._grow(max(self._width, len(row.gpus)))
        at = self._rows
        self._table[:, at] = (row.kind, row.cpu_milli, row.memory_mib, row.pods, row.count, row.tier)
        self._gpus[at] = -1
        self._gpus[at, : len(row.gpus)] = row.gpus
        self._labels.append(row.label)
        self._held.append(row.held)
        np.maximum(self._most, (row.cpu_milli, row.memory_mib), out=self._most)
        self._counts_pods |= row.pods < UNBOUNDED
        self._rows += 1
        return at

    def row(self, at: int) -> Row:
        kind, cpu, memory, pods, count, tier = (int(each) for each in self._table[:, at])
        held = self._held[at]
        gpus = tuple(int(each) for each in self._gpus[at, : len(held)])
        return Row(self._labels[at], kind, gpus, held, cpu, memory, pods, count, tier)

    def rows(self) -> Iterator[tuple[int, Row]]:
        """The rows of which there are nodes, with their numbers."""
        for at in range(self._rows):
            if self._table[4, at]:
                yield at, self.row(at)

    def drop(self, at: int) -> None:
        """Takes the nodes of a row out."""
        self._table[4, at] = 0

    def split(self, at: int) -> int:
        """Takes one node out of a row; gives the number of the row in which it is alone."""
        row = self.row(at)
        if row.count == 1:
            return at
        self._table[4, at] -= 1
        return self.add(Row(row.label, row.kind, row.gpus, row.held, row.cpu_milli, row.memory_mib, row.pods, 1,
                            row.tier))  # fmt: skip

    def place(self, ask: Ask, count: int) -> int:
        """Places so many of what is asked, each on the node that is left with the least; how many found no place."""
        sizes = np.array(ask.sizes, dtype=np.int64)
        while count:
            rows = self._able(ask, sizes)
            if not len(rows):
                break
            free = np.maximum(self._gpus[rows], 0).sum(axis=1)
            _, cpu, memory, _, _, tier = self._table[:, rows]
            left = free / (self.whole * self._width) + cpu / self._most[0] + memory / self._most[1]
            count -= self._put(int(rows[np.argmin(left + 4.0 * tier)]), ask, count, count)
        return count

    def spread(self, ask: Ask, count: int, need: tuple[float, float]) -> int:
        """As `place`, each on the node with the most CPU and memory beside what its free GPUs need on average.

        `need` is that of one GPU. So no node runs out of CPU or memory while its GPUs are free.
        """
        sizes = np.array(ask.sizes, dtype=np.int64)
        while count:
            rows = self._able(ask, sizes)
            if not len(rows):
                break
            free = np.maximum(self._gpus[rows], 0).sum(axis=1) / self.whole
            if np.count_nonzero(sizes) > 1:
                # Of the kind with the most free GPUs, so that others are left for those that have no choice.
                of_kind = np.bincount(self._table[0, rows], weights=free * self._table[4, rows])
                rows, free = (each[self._table[0, rows] == np.argmax(of_kind)] for each in (rows, free))
            spare_cpu = (self._table[1, rows] - need[0] * free) / self._most[0]
            spare_memory = (self._table[2, rows] - need[1] * free) / self._most[1]
            count -= self._put(int(rows[np.argmax(np.minimum(spare_cpu, spare_memory))]), ask, count, 1)
        return count

    def takes(self, ask: Ask) -> bool:
        """Whether a node has room for one."""
        return len(self._able(ask, np.array(ask.sizes, dtype=np.int64))) > 0

    def put_on(self, at: int, gpus: Sequence[int], ask: Ask) -> bool:
        """Places one pod on these GPUs of a row of one node; False where it does not fit there."""
        size = ask.sizes[int(self._table[0, at])]
        free = [int(self._gpus[at, gpu]) for gpu in gpus]
        fresh = sum(each == self.whole for each in free) if ask.shares else 0
        taken = (ask.cpu_milli, ask.memory_mib, ask.pods + fresh)
        if not size or min(free) < size or (self._table[1:4, at] < taken).any():
            return False
        self._gpus[at, list(gpus)] -= size
        self._table[1:4, at] -= taken
        held = list(self._held[at])
        for gpu, items in zip(gpus, ask.held, strict=True):
            held[gpu] += items
        self._held[at] = tuple(held)
        return True

    def put(self, at: int, ask: Ask, count: int) -> int:
        """Places at most so many on a row of one node, by best fit over its GPUs; how many it takes."""
        size, placed = ask.sizes[int(self._table[0, at])], 0
        while placed < count and size:
            free = self._gpus[at, : len(self._held[at])]
            tight = sorted((int(units), gpu) for gpu, units in enumerate(free) if units >= size)[: len(ask.held)]
            if len(tight) < len(ask.held) or not self.put_on(at, [gpu for _, gpu in tight], ask):
                break
            placed += 1
        return placed

    def _able(self, ask: Ask, sizes: _Column) -> _Column:
        """The rows whose nodes take what is asked."""
        kind, cpu, memory, pods, count, _ = self._table[:, : self._rows]
        size = sizes[kind]
        fits = (size > 0) & (count > 0) & (cpu >= ask.cpu_milli) & (memory >= ask.memory_mib) & (pods >= ask.pods)
        rows = np.flatnonzero(fits)
        if not len(rows):
            return rows
        free = self._gpus[rows]
        enough = free >= size[rows, None]
        devices = len(ask.held)
        good = enough.sum(axis=1) >= devices
        if ask.shares and self._counts_pods:
            joined = (enough & (free < self.whole)).sum(axis=1)
            good &= pods[rows] >= ask.pods + np.maximum(0, devices - joined)
        able: _Column = rows[good]
        return able

    def _put(self, at: int, ask: Ask, count: int, most: int) -> int:
        """Places at most `most` on one node of the row, and as many on other nodes of it; how many of `count`."""
        row = self.row(at)
        size, devices = ask.sizes[row.kind], len(ask.held)
        gpus, held = list(row.gpus), list(row.held)
        cpu, memory, pods = row.cpu_milli, row.memory_mib, row.pods
        copies = 0
        while copies < most and cpu >= ask.cpu_milli and memory >= ask.memory_mib:
            tight = sorted((free, gpu) for gpu, free in enumerate(gpus) if free >= size)[:devices]
            taken = ask.pods + (sum(free == self.whole for free, _ in tight) if ask.shares else 0)
            if len(tight) < devices or pods < taken:
                break
            for (free, gpu), items in zip(tight, ask.held, strict=True):
                gpus[gpu] = free - size
                held[gpu] += items
            cpu, memory, pods, copies = cpu - ask.cpu_milli, memory - ask.memory_mib, pods - taken, copies + 1
        nodes = min(row.count, count // copies)
        if nodes < row.count:
            self._table[4, at] -= nodes
            self.add(Row(row.label, row.kind, tuple(gpus), tuple(held), cpu, memory, pods, nodes, row.tier))
        else:
            self._table[1:4, at] = (cpu, memory, pods)
            self._gpus[at, : len(gpus)] = gpus
            self._held[at] = tuple(held)
        return copies * nodes

    def _grow(self, width: int) -> None:
        rows = max(_FEW_ROWS, 2 * self._rows)
        table, gpus = np.zeros((6, rows), dtype=np.int64), np.full((rows, width), -1, dtype=np.int64)
        table[:, : self._rows] = self._table[:, : self._rows]
        gpus[: self._rows, : self._width] = self._gpus[: self._rows]
        self._table, self._gpus, self._width = table, gpus, width
