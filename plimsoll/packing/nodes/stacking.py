"""Chosen nodes filled one after the other: each time the pod that leaves GPU, CPU and memory the most alike.

Where a node has few GPUs, or CPU is as scarce as they are, the shares of a GPU cannot be chosen for their sizes alone.
The rule is the norm-based greedy of Panigrahy et al. (Heuristics for Vector Bin Packing, 2011).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from plimsoll.packing.nodes.filling import Filling
from plimsoll.packing.nodes.need import NodeShape, PodNeed
from plimsoll.packing.nodes.units import Unit, empty_node, place_unit
from plimsoll.packing.units import GPU_MILLI

Table = NDArray[np.float64]


class Stacking:
    """Nodes of chosen shapes, units placed on them as they are, and single shares and GPUs stacked on the rest."""

    def __init__(self, nodes: Sequence[NodeShape], units: Sequence[Unit], needs: Mapping[str, PodNeed]) -> None:
        # Nodes with little CPU first: what is light is left for them.
        self._nodes = sorted(
            nodes, key=lambda node: (node.cpu_milli / node.gpus, node.memory_mib / node.gpus, node.name)
        )
        self._needs = needs
        self._fixed = [unit for unit in units if not unit.interchangeable(needs)]
        alike: dict[tuple[object, ...], list[str]] = defaultdict(list)
        for name in sorted(name for unit in units if unit.interchangeable(needs) for name in unit.pods):
            need = needs[name]
            alike[tuple(sorted(need.milli.items())), need.cpu_milli, need.memory_mib].append(name)
        self._names = [alike[key] for key in sorted(alike)]
        first = [needs[names[0]] for names in self._names]
        self._left = np.array([len(names) for names in self._names], dtype=np.int64)
        self._asked = _table((min(need.milli.values()), need.cpu_milli, need.memory_mib) for need in first)
        self._milli = {kind: np.array([float(need.milli.get(kind, 0)) for need in first])
                       for kind in {node.kind for node in nodes}}  # fmt: skip
        load = self._left @ self._asked
        # A resource counts as much as it is asked for beside what there is.
        offered = _table((GPU_MILLI * node.gpus, node.cpu_milli, node.memory_mib) for node in nodes).sum(axis=0)
        self._weight = load / np.maximum(1.0, offered)

    @property
    def work(self) -> float:
        """Seconds that filling takes, about."""
        return int(self._left.sum()) * (5e-5 + len(self._left) * 5e-8)

    def fill(self) -> tuple[Filling, list[Unit], list[PodNeed]]:
        """The filled nodes, the units that found none, and the pods that are left over."""
        filling = Filling(empty_node(node, number) for number, node in enumerate(self._nodes))
        homeless = [unit for unit in self._fixed if not place_unit(filling, unit)]
        for row, node in enumerate(self._nodes):
            free = filling.free(row)
            empty = [gpu for gpu, milli in enumerate(free.gpus) if milli == GPU_MILLI]
            left = np.array([free.cpu_milli, free.memory_mib], dtype=np.float64)
            for number, gpu in enumerate(empty):
                for pod in self._stacked(node, left, len(empty) - number, filling.free(row).pods):
                    filling.put_on(row, gpu, self._needs[self._names[pod].pop()])
        return filling, homeless, [self._needs[name] for names in self._names for name in names]

    def _stacked(self, node: NodeShape, left: Table, gpus: int, pods: int) -> list[int]:
        """Kinds of pods for one GPU of a node with so many empty ones, at most so many `pods`; takes their CPU and
        memory from what is left."""
        asked = self._asked.copy()
        asked[:, 0] = self._milli[node.kind]
        whole = np.array([GPU_MILLI, node.cpu_milli / node.gpus, node.memory_mib / node.gpus])
        room = np.array([GPU_MILLI, *(left / gpus)])
        chosen: list[int] = []
        can = (asked[:, 0] > 0) & (self._left > 0)
        while True:
            rows = np.flatnonzero(can & (asked[:, 0] <= room[0]) & (asked[:, 1:] <= left).all(axis=1))
            if not len(rows) or len(chosen) >= pods:
                return chosen
            rest = (room - asked[rows]) / np.maximum(1.0, whole)
            pod = int(rows[np.argmin((rest * rest) @ self._weight)])
            chosen.append(pod)
            room -= asked[pod]
            left -= asked[pod, 1:]
            self._left[pod] -= 1
            can[pod] = self._left[pod] > 0


def _table(rows: Iterable[tuple[float, float, float]]) -> Table:
    return np.array(list(rows), dtype=np.float64).reshape(-1, 3)
