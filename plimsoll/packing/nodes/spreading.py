"""Units spread over chosen nodes, so that what is left of CPU and memory is enough for the GPUs that are left."""

import heapq
from collections.abc import Iterable, Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from plimsoll.packing.nodes.kinds import kinds_for
from plimsoll.packing.nodes.need import UNBOUNDED, NodeShape
from plimsoll.packing.nodes.units import Unit

Loads = NDArray[np.float64]
"""A row for each node, unit or pod: CPU, memory, and the number of pods where that is limited."""
Rows = NDArray[np.int64]

_MOVES = 100
"""Units that others are moved for."""


class Spread:
    """The hardest to place first, each where most is left for the GPUs that are still free.

    `is_open` units will have their pods exchanged, so a node may have too much of them for now; others have to fit.
    """

    def __init__(self, nodes: Sequence[NodeShape], units: Sequence[Unit], is_open: Sequence[bool]) -> None:
        self.on: list[int | None] = [None] * len(units)
        """The node of each unit, by number."""
        self.open = is_open
        # Where nodes take any number of pods, that is no resource: spreading it would be at the cost of the others.
        self.columns = 3 if any(node.pods < UNBOUNDED for node in nodes) else 2
        self.left = loads_of(((node.cpu_milli, node.memory_mib, node.pods) for node in nodes), self.columns)
        """Of each node; below 0 where it has too much."""
        self._units = units
        self._kind = np.array([node.kind for node in nodes])
        self._slots = np.array([node.gpus for node in nodes], dtype=np.int64)
        asked = ((unit.cpu_milli, unit.memory_mib, len(unit.pods)) for unit in units)
        self._load = loads_of(asked, self.columns)
        load, offered = self._load.sum(axis=0), self.left.sum(axis=0)
        self.weight = 1.0 / np.maximum(np.maximum(offered - load, 0.01 * offered), 1.0)
        """A resource counts as much as it is scarce."""
        self._per_slot = load / max(1, int(self._slots.sum()))
        self._place_all(kinds_for(units, nodes), range(len(units)))
        self._place_all([unit.kinds for unit in units], [each for each, row in enumerate(self.on) if row is None])
        for each in [each for each, row in enumerate(self.on) if row is None and is_open[each]][:_MOVES]:
            self._make_room(each)

    def _place_all(self, kinds: Sequence[tuple[str, ...]], units: Sequence[int]) -> None:
        def alike(each: int) -> tuple[int, int, tuple[str, ...], bool]:
            return -len(self._units[each].gpus), len(kinds[each]), kinds[each], self.open[each]

        heavy = self._load @ self.weight
        ordered = sorted(units, key=lambda each: (*alike(each), -heavy[each], self._units[each].gpus))
        for (gpus, _, of, is_open), group in groupby(ordered, key=alike):
            rows = np.flatnonzero(np.isin(self._kind, of) & (self._slots >= -gpus))
            if is_open:
                self._spread(rows, group)
            else:
                for each in group:
                    self._place_whole(rows, each)

    def _place_whole(self, rows: Rows, each: int) -> None:
        gpus, load = len(self._units[each].gpus), self._load[each]
        rows = rows[(self._slots[rows] >= gpus) & (self.left[rows] >= load).all(axis=1)]
        if len(rows):
            left = self.left[rows] - load - self._per_slot * (self._slots[rows] - gpus)[:, None]
            self._put(each, int(rows[np.argmax((left * self.weight).min(axis=1))]))

    def _spread(self, rows: Rows, units: Iterable[int]) -> None:
        waiting = [(-self._plenty(int(row)), int(row)) for row in rows]
        heapq.heapify(waiting)
        for each in units:
            while waiting and not self._slots[waiting[0][1]]:
                heapq.heappop(waiting)
            if not waiting:
                return
            row = waiting[0][1]
            self._put(each, row)
            heapq.heapreplace(waiting, (-self._plenty(row), row))

    def _make_room(self, each: int) -> None:
        """A GPU for a unit where all that it may have are taken: one that holds a unit which may go elsewhere."""
        free = {kind: np.flatnonzero((self._kind == kind) & (self._slots > 0)) for kind in set(self._kind)}
        for other, row in enumerate(self.on):
            if row is None or not self.open[other] or self._kind[row] not in self._units[each].kinds:
                continue
            rows = [int(to) for kind in self._units[other].kinds for to in free.get(kind, ())]
            if rows:
                self._put(other, max(rows, key=lambda to: (self._plenty(to), -to)))
                self.left[row] += self._load[other]
                self._slots[row] += 1
                self._put(each, row)
                return

    def _plenty(self, row: int) -> float:
        """What a node has left beside the average need of its free GPUs, of the resource of which it has the least."""
        return float(((self.left[row] - self._per_slot * self._slots[row]) * self.weight).min())

    def _put(self, each: int, row: int) -> None:
        self.on[each] = row
        self.left[row] -= self._load[each]
        self._slots[row] -= len(self._units[each].gpus)


def loads_of(rows: Iterable[tuple[int, int, int]], columns: int) -> Loads:
    """The first columns of rows of CPU, memory and number of pods."""
    return np.array(list(rows), dtype=np.float64).reshape(-1, 3)[:, :columns]
