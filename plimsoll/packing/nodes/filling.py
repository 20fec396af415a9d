"""Filling: best fit over the GPUs, CPU, memory, storage and number of pods of nodes.

Equal nodes are one row with a count.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from operator import ge, sub

import numpy as np
from numpy.typing import NDArray

from plimsoll.packing.units import UNBOUNDED

_FEW_ROWS = 64
"""Number of rows for which a new table has space."""
_KIND, _CPU, _MEMORY, _STORAGE, _PODS, _COUNT, _SCHEDULER, _TIER, _SPREAD = range(9)
"""The fields of a row in the table."""
_HOST = slice(_CPU, _PODS + 1)
"""CPU, memory, storage and pods."""
_Column = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PlacementRequest:
    """Something to place on one node: a pod, or GPUs together with their pods."""

    sizes: tuple[int, ...]
    """Units of each of its GPUs by kind; 0 if it cannot use the kind."""
    held: tuple[tuple[int, ...], ...]
    """Item numbers on each of its GPUs. A pod that uses several GPUs is on each."""
    cpu_milli: int
    memory_mib: int
    pods: int
    shares: bool
    """Whether its first pod on a free GPU needs a reservation pod, which also counts as a pod."""
    scheduler: int = 0
    """Number of its pods' scheduler; 0 if it can be with all others."""
    storage_mib: int = 0


@dataclass(frozen=True, slots=True)
class Row:
    """Equal nodes."""

    label: int
    """Number of the shape if the nodes are new, else of the group of equal nodes. Set by the caller."""
    kind: int
    gpus: tuple[int, ...]
    """Free units of each GPU."""
    held: tuple[tuple[int, ...], ...]
    """Item numbers on each GPU."""
    cpu_milli: int
    memory_mib: int
    pods: int
    count: int
    tier: int = 0
    new: bool = False
    scheduler: int = 0
    """Number of the scheduler with which pods of no other one can be; 0: any."""
    storage_mib: int = UNBOUNDED
    spread: bool = False
    """Whether pods go to the node and the GPUs with the most free."""


class Filling:
    """Nodes with their free resources. `whole` has the units of a whole GPU by kind."""

    def __init__(self, whole: Sequence[int]) -> None:
        self._whole = np.array(whole, dtype=np.int64)
        self._rows = 0
        self._width = 1
        self._table = np.zeros((_SPREAD + 1, _FEW_ROWS), dtype=np.int64)
        """The numbers of each row, by field."""
        self._gpus = np.full((_FEW_ROWS, 1), -1, dtype=np.int64)
        self._labels: list[tuple[int, bool]] = []
        """(label, whether the nodes are new) of each row."""
        self._held: list[tuple[tuple[int, ...], ...]] = []
        self._most = np.ones(2)
        """Maximum CPU and memory of any row, to which those of a row are relative."""

    def copy(self) -> "Filling":
        other = Filling(self._whole.tolist())
        other._rows, other._width = self._rows, self._width
        other._table, other._gpus = self._table.copy(), self._gpus.copy()
        other._labels, other._held = self._labels.copy(), self._held.copy()
        other._most = self._most.copy()
        return other

    def __len__(self) -> int:
        return self._rows

    def add(self, row: Row) -> int:
        """Adds equal nodes. Returns the number of their row."""
        if len(row.gpus) > self._width or self._rows == len(self._gpus):
            self._grow(max(self._width, len(row.gpus)))
        at = self._rows
        host = row.cpu_milli, row.memory_mib, row.storage_mib, row.pods
        self._table[:, at] = (row.kind, *host, row.count, row.scheduler, row.tier, row.spread)
        self._gpus[at] = -1
        self._gpus[at, : len(row.gpus)] = row.gpus
        self._labels.append((row.label, row.new))
        self._held.append(row.held)
        np.maximum(self._most, (row.cpu_milli, row.memory_mib), out=self._most)
        self._rows += 1
        return at

    def row(self, at: int) -> Row:
        kind, cpu, memory, storage, pods, count, scheduler, tier, spread = self._table[:, at].tolist()
        held = self._held[at]
        gpus = tuple(self._gpus[at, : len(held)].tolist())
        label, new = self._labels[at]
        return Row(label, kind, gpus, held, cpu, memory, pods, count, tier, new, scheduler, storage, bool(spread))

    def rows(self, new: bool = False) -> Iterator[tuple[int, Row]]:
        """The rows with at least one node, with their numbers; with `new`, only those of new nodes."""
        for at in range(self._rows):
            if self._table[_COUNT, at] and (self._labels[at][1] or not new):
                yield at, self.row(at)

    def drop(self, at: int) -> None:
        """Removes the nodes of a row."""
        self._table[_COUNT, at] = 0

    def split(self, at: int) -> int:
        """Moves one node of a row to a row of its own. Returns the number of that row."""
        row = self.row(at)
        if row.count == 1:
            return at
        self._table[_COUNT, at] -= 1
        return self.add(replace(row, count=1))

    def place(self, request: PlacementRequest, count: int) -> int:
        """Places a request up to `count` times, each time on the node that has the least left; where pods are spread,
        on the one with the largest part of its GPUs free. Returns how many found no place."""
        sizes = np.array(request.sizes, dtype=np.int64)
        while count:
            rows = self._able(request, sizes)
            if not len(rows):
                break
            _, cpu, memory, _, _, _, _, tier, spread = self._table[:, rows]
            # Each of the four parts is at most 1, so that nodes of a lower tier come first.
            left = self._free_part(rows, self._width) + cpu / self._most[0] + memory / self._most[1]
            if spread.any():
                left = np.where(spread, 3.0 + self._used_part(rows), left)
            best = int(np.argmin(left + 4.0 * tier))
            count -= self._put(int(rows[best]), request, count, 1 if spread[best] else count)
        return count

    def spread(self, request: PlacementRequest, count: int, need: tuple[float, float]) -> int:
        """As `place`, but on the node with the most CPU and memory in excess of what its free GPUs need on average.

        `need` is the average need of one GPU. Nodes then do not run out of CPU or memory while they have free GPUs.
        """
        sizes = np.array(request.sizes, dtype=np.int64)
        while count:
            rows = self._able(request, sizes)
            if not len(rows):
                break
            free = self._free_part(rows, 1)
            if np.count_nonzero(sizes) > 1:
                # On the kind with the most free GPUs; kinds with few free GPUs are left for requests that can use no
                # other.
                kinds = self._table[_KIND, rows]
                of_kind = np.bincount(kinds, weights=free * self._table[_COUNT, rows])
                rows, free = (each[kinds == np.argmax(of_kind)] for each in (rows, free))
            spare_cpu = (self._table[_CPU, rows] - need[0] * free) / self._most[0]
            spare_memory = (self._table[_MEMORY, rows] - need[1] * free) / self._most[1]
            count -= self._put(int(rows[np.argmax(np.minimum(spare_cpu, spare_memory))]), request, count, 1)
        return count

    def fits(self, request: PlacementRequest) -> bool:
        """Whether the request fits any node."""
        return len(self._able(request, np.array(request.sizes, dtype=np.int64))) > 0

    def put_on(self, at: int, gpus: Sequence[int], request: PlacementRequest) -> bool:
        """Places one pod on these GPUs of a row with one node. Returns whether it fits."""
        kind = int(self._table[_KIND, at])
        size, whole = request.sizes[kind], int(self._whole[kind])
        free = [int(self._gpus[at, gpu]) for gpu in gpus]
        fresh = sum(each == whole for each in free) if request.shares else 0
        taken = (request.cpu_milli, request.memory_mib, request.storage_mib, request.pods + fresh)
        other = request.scheduler and self._table[_SCHEDULER, at] not in (0, request.scheduler)
        if not size or min(free) < size or (self._table[_HOST, at] < taken).any() or other:
            return False
        self._table[_SCHEDULER, at] = request.scheduler or self._table[_SCHEDULER, at]
        self._gpus[at, list(gpus)] -= size
        self._table[_HOST, at] -= taken
        held = list(self._held[at])
        for gpu, items in zip(gpus, request.held, strict=True):
            held[gpu] += items
        self._held[at] = tuple(held)
        return True

    def put(self, at: int, request: PlacementRequest, count: int) -> int:
        """Places a request up to `count` times on a row with one node, by best fit over its GPUs. Returns how many were
        placed."""
        size, placed = request.sizes[int(self._table[_KIND, at])], 0
        while placed < count:
            free = self._gpus[at, : len(self._held[at])]
            tight = sorted((int(units), gpu) for gpu, units in enumerate(free) if units >= size)[: len(request.held)]
            if len(tight) < len(request.held) or not self.put_on(at, [gpu for _, gpu in tight], request):
                break
            placed += 1
        return placed

    def _free_part(self, rows: _Column, gpus: int) -> NDArray[np.float64]:
        """What is free on all GPUs of a node of each row, as a part of this number of GPUs. The units of several GPUs
        can exceed int64, so they are summed as floating-point numbers."""
        units = np.einsum("ij->i", np.maximum(self._gpus[rows], 0).astype(np.float64))
        part: NDArray[np.float64] = units / (self._whole[self._table[_KIND, rows]] * float(gpus))
        return part

    def _used_part(self, rows: _Column) -> NDArray[np.float64]:
        """What is not free on the GPUs of a node of each row, as a part of all its GPUs."""
        part: NDArray[np.float64] = 1.0 - self._free_part(rows, 1) / (self._gpus[rows] >= 0).sum(axis=1)
        return part

    def _able(self, request: PlacementRequest, sizes: _Column) -> _Column:
        """The rows with nodes that the request fits."""
        kind, cpu, memory, storage, pods, count, scheduler, *_ = self._table[:, : self._rows]
        size = sizes[kind]
        fits = (
            (size > 0)
            & (count > 0)
            & (cpu >= request.cpu_milli)
            & (memory >= request.memory_mib)
            & (storage >= request.storage_mib)
            & (pods >= request.pods)
        )
        if request.scheduler:
            fits &= (scheduler == 0) | (scheduler == request.scheduler)
        rows = np.flatnonzero(fits)
        if not len(rows):
            return rows
        free = self._gpus[rows]
        enough = free >= size[rows, None]
        devices = len(request.held)
        good = enough.sum(axis=1) >= devices
        if request.shares and (pods[rows] < request.pods + devices).any():
            joined = (enough & (free < self._whole[kind[rows], None])).sum(axis=1)
            good &= pods[rows] >= request.pods + np.maximum(0, devices - joined)
        able: _Column = rows[good]
        return able

    def _put(self, at: int, request: PlacementRequest, count: int, most: int) -> int:
        """Places a request at most `most` times on one node of the row, and the same on further nodes of the row, up to
        `count` in total. Returns how many were placed."""
        row = self.row(at)
        size, whole, devices = request.sizes[row.kind], int(self._whole[row.kind]), len(request.held)
        gpus, held = list(row.gpus), list(row.held)
        host = row.cpu_milli, row.memory_mib, row.storage_mib
        wanted, pods = (request.cpu_milli, request.memory_mib, request.storage_mib), row.pods
        copies = 0
        while copies < most and all(map(ge, host, wanted)):
            able = ((free, gpu) for gpu, free in enumerate(gpus) if free >= size)
            tight = sorted(able, key=lambda each: (-each[0] if row.spread else each[0], each[1]))[:devices]
            taken = request.pods + (sum(free == whole for free, _ in tight) if request.shares else 0)
            if len(tight) < devices or pods < taken:
                break
            for (free, gpu), items in zip(tight, request.held, strict=True):
                gpus[gpu] = free - size
                held[gpu] += items
            host, pods, copies = tuple(map(sub, host, wanted)), pods - taken, copies + 1
        nodes, scheduler = min(row.count, count // copies), request.scheduler or row.scheduler
        if nodes < row.count:
            self._table[_COUNT, at] -= nodes
            cpu, memory, storage = host
            left = replace(row, cpu_milli=cpu, memory_mib=memory, storage_mib=storage, pods=pods)
            self.add(replace(left, gpus=tuple(gpus), held=tuple(held), count=nodes, scheduler=scheduler))
        else:
            self._table[_HOST, at], self._table[_SCHEDULER, at] = (*host, pods), scheduler
            self._gpus[at, : len(gpus)] = gpus
            self._held[at] = tuple(held)
        return copies * nodes

    def _grow(self, width: int) -> None:
        rows = max(_FEW_ROWS, 2 * self._rows)
        table, gpus = np.zeros((_SPREAD + 1, rows), dtype=np.int64), np.full((rows, width), -1, dtype=np.int64)
        table[:, : self._rows] = self._table[:, : self._rows]
        gpus[: self._rows, : self._width] = self._gpus[: self._rows]
        self._table, self._gpus, self._width = table, gpus, width
