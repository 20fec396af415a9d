"""Chosen nodes filled one after the other: each time the pod that leaves GPU, CPU and memory the most alike.

Where a node has few GPUs, or CPU is as scarce as they are, the shares of a GPU cannot be chosen for their sizes alone.
The rule is the norm-based greedy of Panigrahy et al. (Heuristics for Vector Bin Packing, 2011).
"""

import numpy as np
from numpy.typing import NDArray

from plimsoll.packing.nodes.bounding import Bounds
from plimsoll.packing.nodes.placing import Placing, Stock

_Table = NDArray[np.float64]


def stacked(stock: Stock, bound: Bounds) -> Placing:
    """On free nodes first, and then on those that the bound's program chose."""
    placing = Placing(stock.empty())
    numbers = {shape.name: number for number, shape in enumerate(stock.shapes)}
    rows, opened = list[int](), dict[int, int]()
    for name, count in sorted(bound.shapes.items()):
        number = numbers[name]
        opened[number] = min(count, stock.room(opened, number))
        if opened[number]:
            rows.append(stock.add_new(placing, number, opened[number]))
    stock.place_several(placing)
    stack = _Stack(stock, placing)
    for at, row in list(placing.filling.rows()):
        if at in rows or row.label >= 0 or any(row.held):
            for _ in range(row.count):
                stack.fill(placing.filling.split(at))
    placing.left |= stack.left()
    placing.note_shapes()
    return placing


class _Stack:
    """Shares of one GPU each that are still to be placed."""

    def __init__(self, stock: Stock, placing: Placing) -> None:
        self._stock = stock
        self._filling = placing.filling
        self._items = [number for number, item in enumerate(stock.items) if item.single]
        self._count = np.array([stock.items[number].count for number in self._items], dtype=np.int64)
        asks = [stock.asks[number] for number in self._items]
        self._sizes = np.array([ask.sizes for ask in asks], dtype=np.float64).reshape(len(asks), len(stock.kinds))
        self._sizes /= stock.grid.gpu
        self._host = np.array([(ask.cpu_milli, ask.memory_mib) for ask in asks], dtype=np.float64).reshape(-1, 2)
        needed = self._count @ self._host if asks else np.zeros(2)
        rows = [row for _, row in placing.filling.rows()]
        there = [(row.cpu_milli * row.count, row.memory_mib * row.count) for row in rows]
        offered = np.maximum(1.0, np.array(there, dtype=np.float64).reshape(-1, 2).sum(axis=0))
        # A resource counts as much as it is needed beside what there is.
        self._weight = np.array([1.0, *np.minimum(1.0, needed / offered)])

    def left(self) -> dict[int, int]:
        return {number: int(count) for number, count in zip(self._items, self._count, strict=True) if count}

    def fill(self, at: int) -> None:
        """One node, GPU by GPU."""
        row = self._filling.row(at)
        sizes, open_gpus = self._sizes[:, row.kind], sum(free > 0 for free in row.gpus)
        for gpu in sorted(range(len(row.gpus)), key=lambda gpu: row.gpus[gpu]):
            if row.gpus[gpu] > 0:
                self._fill_gpu(at, gpu, sizes, open_gpus)
                open_gpus -= 1

    def _fill_gpu(self, at: int, gpu: int, sizes: _Table, open_gpus: int) -> None:
        row = self._filling.row(at)
        room = np.array([row.gpus[gpu] / self._stock.grid.gpu, row.cpu_milli / open_gpus, row.memory_mib / open_gpus])
        whole = np.maximum(room, 1e-9)
        host = np.array([row.cpu_milli, row.memory_mib], dtype=np.float64)
        while True:
            able = (self._count > 0) & (sizes > 0) & (sizes <= room[0] + 1e-12) & (self._host <= host).all(axis=1)
            found = np.flatnonzero(able)
            if not len(found):
                return
            rest = (room - np.column_stack([sizes[found], self._host[found]])) / whole
            best = int(found[np.argmin((rest * rest) @ self._weight)])
            if not self._filling.put_on(at, (gpu,), self._stock.asks[self._items[best]]):
                return
            self._count[best] -= 1
            room -= [sizes[best], *self._host[best]]
            host -= self._host[best]
