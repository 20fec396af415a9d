"""Units onto chosen nodes so that CPU and memory last: spread evenly, and pods of equal shares exchanged."""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from plimsoll.packing.nodes.filling import Filling
from plimsoll.packing.nodes.need import NodeShape, PodNeed
from plimsoll.packing.nodes.spreading import Loads, Spread, loads_of
from plimsoll.packing.nodes.units import Unit, empty_node
from plimsoll.packing.units import GPU_MILLI

Size = tuple[tuple[str, int], ...]
"""(kind, thousandths) pairs: pods that have the same can stand in for each other on a GPU."""

_EXCHANGES = 20
"""Exchanges that a node with too much may take part in."""


class Dealing:
    """Units on nodes of chosen shapes, and their places of shares dealt to pods.

    A GPU's unit fixes the sizes of its shares, not the pods. Where all GPUs are needed, what counts is that no node
    runs out of CPU or memory before its GPUs are full, so both are spread evenly.
    """

    def __init__(self, nodes: Sequence[NodeShape], units: Sequence[Unit], needs: Mapping[str, PodNeed]) -> None:
        self._nodes = nodes
        self._units = units
        self._needs = needs
        spread = Spread(nodes, units, [unit.interchangeable(needs) for unit in units])
        self._on, self._left, self._weight, self._open = spread.on, spread.left, spread.weight, spread.open
        self._columns = spread.columns
        self._names: dict[Size, list[str]] = {}
        self._rows: dict[Size, NDArray[np.int64]] = {}
        self._asked: dict[Size, Loads] = {}
        self._places: dict[Size, list[int]] = defaultdict(list)
        """The unit of each share of that size."""

    @property
    def work(self) -> float:
        """Seconds that filling takes, about."""
        return 6e-5 * len(self._units)

    def fill(self) -> tuple[Filling, list[Unit], list[PodNeed]]:
        """The filled nodes, the units that found none, and the pods that CPU or memory left over."""
        self._deal_pods()
        self._exchange()
        return self._filled()

    def _deal_pods(self) -> None:
        """The pods of each size to its places, the heaviest first to the node with the most left beside the average."""
        pods: dict[Size, list[str]] = defaultdict(list)
        sizes: dict[int, Size] = {}
        for each, row in enumerate(self._on):
            if row is None or not self._open[each]:
                continue
            for name in self._units[each].gpus[0]:
                milli = self._needs[name].milli
                size = sizes.get(id(milli))
                if size is None:
                    size = sizes[id(milli)] = tuple(sorted(milli.items()))
                pods[size].append(name)
                self._places[size].append(each)
        tables = {size: self._loads_of(names) for size, names in pods.items()}
        # A node's load changes from what its pods ask to the average of their sizes, then to what is dealt.
        mean = {size: table.mean(axis=0) for size, table in tables.items()}
        for size in pods:
            rows = np.array([self._on[each] for each in self._places[size]])
            np.add.at(self._left, rows, tables[size] - mean[size])
            self._rows[size] = rows
        # Sizes with the greatest differences first, so that others can make up for them.
        spread = {size: float((table.max(axis=0) - table.min(axis=0)) @ self._weight) for size, table in tables.items()}
        for size in sorted(pods, key=lambda size: (-spread[size], size)):
            self._deal_size(size, pods[size], tables[size] - mean[size])

    def _deal_size(self, size: Size, names: list[str], above: Loads) -> None:
        """`above`: what each pod asks above the average."""
        heavy = above @ self._weight
        order = sorted(range(len(names)), key=lambda pod: (-heavy[pod], names[pod]))
        places: dict[int, list[int]] = defaultdict(list)
        for place_, row in enumerate(self._rows[size]):
            places[int(row)].append(place_)
        wc, wm = (float(each) for each in self._weight[:2])
        left = {row: (float(self._left[row, 0]), float(self._left[row, 1])) for row in places}
        waiting = [(-min(cpu * wc, memory * wm), row) for row, (cpu, memory) in left.items()]
        heapq.heapify(waiting)
        dealt = [""] * len(names)
        asked = np.zeros_like(above)
        for pod in order:
            _, row = heapq.heappop(waiting)
            at = places[row].pop()
            dealt[at] = names[pod]
            asked[at] = _asked_by(self._needs[names[pod]])[: self._columns]
            cpu, memory = left[row][0] - float(above[pod, 0]), left[row][1] - float(above[pod, 1])
            left[row] = cpu, memory
            if places[row]:
                heapq.heappush(waiting, (-min(cpu * wc, memory * wm), row))
        for row, rest in left.items():
            self._left[row, :2] = rest  # pods of one size are as many, whoever they are
        self._names[size] = dealt
        self._asked[size] = asked

    def _exchange(self) -> None:
        """Pods of nodes with too much for lighter ones of the same size elsewhere."""
        of_row: dict[int, list[tuple[Size, int]]] = defaultdict(list)
        for size, rows in sorted(self._rows.items()):
            for at, row in enumerate(rows):
                of_row[int(row)].append((size, at))
        over = np.flatnonzero((self._left < -0.5).any(axis=1))
        for row in over[np.argsort((self._left[over] * self._weight).min(axis=1), kind="stable")]:
            for _ in range(_EXCHANGES):
                if (self._left[row] > -0.5).all() or not self._exchange_one(int(row), of_row[int(row)]):
                    break

    def _exchange_one(self, row: int, places: Sequence[tuple[Size, int]]) -> bool:
        """The exchange that takes the most off what the node has too much, and gives no other too much."""
        before = _excess(self._left[row], self._weight)
        best: tuple[float, float, Size, int, int] | None = None
        tried = set()
        for size, at in places:
            asked, rows = self._asked[size], self._rows[size]
            key = (size, *asked[at])
            if key in tried:
                continue
            tried.add(key)
            gained = asked[at] - asked
            others = np.flatnonzero((gained @ self._weight > 0) & (rows != row))
            if not len(others):
                continue
            others = others[(self._left[rows[others]] - gained[others] > -0.5).all(axis=1)]
            if not len(others):
                continue
            after = _excess(self._left[row] + gained[others], self._weight)
            # Among equals the smallest exchange, which leaves the other node the most.
            moved = gained[others] @ self._weight
            pick = int(np.lexsort((moved, after))[0])
            found = (float(after[pick]), float(moved[pick]), size, at, int(others[pick]))
            if found[0] < before - 1e-12 and (best is None or found < best):
                best = found
        if best is None:
            return False
        _, _, size, at, other = best
        gained = self._asked[size][at] - self._asked[size][other]
        self._left[row] += gained
        self._left[self._rows[size][other]] -= gained
        names, asked = self._names[size], self._asked[size]
        names[at], names[other] = names[other], names[at]
        asked[[at, other]] = asked[[other, at]]
        return True

    def _filled(self) -> tuple[Filling, list[Unit], list[PodNeed]]:
        filling = Filling(empty_node(node, number) for number, node in enumerate(self._nodes))
        used = [0] * len(self._nodes)
        for unit, row, is_open in zip(self._units, self._on, self._open, strict=True):
            if row is not None and not is_open:
                filling.put(row, unit.gpus, GPU_MILLI, unit.cpu_milli, unit.memory_mib)
                used[row] += len(unit.gpus)
        gpu_of: dict[int, int] = {}
        for each, row in enumerate(self._on):
            if row is not None and self._open[each]:
                gpu_of[each] = used[row]
                used[row] += 1
        loose = self._shed()
        for size, units in self._places.items():
            for each, name in zip(units, self._names[size], strict=True):
                if name not in loose:
                    filling.put_on(self._on[each] or 0, gpu_of[each], self._needs[name])
        homeless = [unit for unit, row in zip(self._units, self._on, strict=True) if row is None]
        return filling, homeless, [self._needs[name] for name in sorted(loose)]

    def _shed(self) -> set[str]:
        """Of each node with too much the one pod that is enough and takes the least, else the heaviest, until it is."""
        over = {int(row) for row in np.flatnonzero((self._left < -0.5).any(axis=1))}
        held: dict[int, list[str]] = defaultdict(list)
        for size, rows in self._rows.items():
            for row, name in zip(rows, self._names[size], strict=True):
                if int(row) in over:
                    held[int(row)].append(name)
        shed: set[str] = set()
        for row, names in sorted(held.items()):
            left, rest = self._left[row].copy(), sorted(names)
            while rest and (left < -0.5).any():
                asked = self._loads_of(rest)
                heavy, enough = asked @ self._weight, (left + asked > -0.5).all(axis=1)
                pick = int(np.argmin(np.where(enough, heavy, np.inf)) if enough.any() else np.argmax(heavy))
                shed.add(rest.pop(pick))
                left += asked[pick]
        return shed

    def _loads_of(self, names: Iterable[str]) -> Loads:
        return loads_of((_asked_by(self._needs[name]) for name in names), self._columns)


def _asked_by(need: PodNeed) -> tuple[int, int, int]:
    return need.cpu_milli, need.memory_mib, 1


def _excess(left: Loads, weight: Loads) -> Loads:
    return np.maximum(-left, 0.0) @ weight
