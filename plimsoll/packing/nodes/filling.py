"""Nodes being filled: best fit over GPUs, CPU and memory at once."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from plimsoll.packing.nodes.need import FilledNode, FreeNode, PodNeed
from plimsoll.packing.units import GPU_MILLI


class Filling:
    """Free nodes, and what has been placed on them. Nodes can be added; what is placed stays."""

    def __init__(self, nodes: Iterable[FreeNode] = ()) -> None:
        self.nodes: list[FreeNode] = []
        self._kinds: dict[str, int] = {}
        self._kind = np.zeros(0, dtype=np.int64)
        self._gpus = np.zeros((0, 1), dtype=np.int64)
        self._total = np.zeros(0, dtype=np.int64)
        self._cpu = np.zeros(0, dtype=np.int64)
        self._memory = np.zeros(0, dtype=np.int64)
        self._pods = np.zeros(0, dtype=np.int64)
        self._held: dict[int, list[list[str]]] = {}
        """Of the nodes that hold something."""
        self.add(sorted(nodes, key=lambda node: node.name))

    def add(self, nodes: Sequence[FreeNode]) -> None:
        """Adds free nodes, behind those that are there."""
        if not nodes:
            return
        for node in nodes:
            self._kinds.setdefault(node.kind, len(self._kinds))
        width = max(self._gpus.shape[1], *(len(node.gpus) for node in nodes))
        # A GPU that a node does not have has nothing free, not even for a share of 0.
        gpus = np.full((len(self.nodes) + len(nodes), width), -1, dtype=np.int64)
        gpus[: len(self.nodes), : self._gpus.shape[1]] = self._gpus
        for count in {len(node.gpus) for node in nodes}:
            rows = [row for row, node in enumerate(nodes, start=len(self.nodes)) if len(node.gpus) == count]
            gpus[rows, :count] = [nodes[row - len(self.nodes)].gpus for row in rows]
        self._gpus = gpus
        self._kind = np.append(self._kind, [self._kinds[node.kind] for node in nodes])
        self._total = np.maximum(gpus, 0).sum(axis=1)
        self._cpu = np.append(self._cpu, [node.cpu_milli for node in nodes])
        self._memory = np.append(self._memory, [node.memory_mib for node in nodes])
        self._pods = np.append(self._pods, [node.pods for node in nodes])
        self.nodes += nodes

    def find(
        self, milli: Mapping[str, int], devices: int, cpu_milli: int, memory_mib: int, pods: int = 1
    ) -> int | None:
        """The node that takes so much of each of so many different GPUs and is left with the least; None: none does."""
        if not self.nodes:
            return None
        by_kind = np.zeros(len(self._kinds), dtype=np.int64)
        for kind, number in self._kinds.items():
            by_kind[number] = milli.get(kind, 0)
        size = by_kind[self._kind]
        fits = (size > 0) & (self._cpu >= cpu_milli) & (self._memory >= memory_mib) & (self._pods >= pods)
        rows = np.flatnonzero(fits)
        rows = rows[(self._gpus[rows] >= size[rows, None]).sum(axis=1) >= devices]
        if not len(rows):
            return None
        # Each resource in parts of the largest there is, so that they can be added.
        left = self._total[rows] / (GPU_MILLI * self._gpus.shape[1])
        left = left + self._cpu[rows] / max(1, self._cpu.max()) + self._memory[rows] / max(1, self._memory.max())
        return int(rows[np.argmin(left)])

    def put(self, row: int, pods: Sequence[tuple[str, ...]], milli: int, cpu_milli: int, memory_mib: int) -> None:
        """Puts pods on so many GPUs of a node that `find` named, each on those with the least that is enough."""
        free = self._gpus[row]
        fitting = sorted((int(free[gpu]), gpu) for gpu in np.flatnonzero(free >= milli))
        for (_, gpu), names in zip(fitting, pods, strict=False):
            free[gpu] -= milli
            self._total[row] -= milli
            self._holding(row)[gpu] += names
        self._take(row, cpu_milli, memory_mib, len({name for names in pods for name in names}))

    def put_on(self, row: int, gpu: int, need: PodNeed) -> bool:
        """Puts a pod with one share on one certain GPU; False where it does not fit there."""
        milli = need.milli[self.nodes[row].kind]
        if self._gpus[row, gpu] < milli or self._cpu[row] < need.cpu_milli or self._memory[row] < need.memory_mib:
            return False
        if self._pods[row] < 1:
            return False
        self._gpus[row, gpu] -= milli
        self._total[row] -= milli
        self._holding(row)[gpu].append(need.name)
        self._take(row, need.cpu_milli, need.memory_mib, 1)
        return True

    def free(self, row: int) -> FreeNode:
        """What is left of a node."""
        node = self.nodes[row]
        gpus = tuple(int(free) for free in self._gpus[row, : len(node.gpus)])
        return FreeNode(node.name, node.kind, gpus, int(self._cpu[row]), int(self._memory[row]), int(self._pods[row]))

    def held(self, row: int) -> tuple[tuple[str, ...], ...]:
        """The pods on each GPU of a node, sorted."""
        held = self._held.get(row)
        return tuple(tuple(sorted(names)) for names in held) if held else ((),) * len(self.nodes[row].gpus)

    def filled(self) -> list[FilledNode]:
        """The nodes that hold something, as existing ones."""
        found = ((self.nodes[row], self.held(row)) for row in sorted(self._held))
        return [FilledNode(held, node.kind, node=node.name) for node, held in found if any(held)]

    def _holding(self, row: int) -> list[list[str]]:
        held = self._held.get(row)
        if held is None:
            held = self._held[row] = [[] for _ in self.nodes[row].gpus]
        return held

    def _take(self, row: int, cpu_milli: int, memory_mib: int, pods: int) -> None:
        self._cpu[row] -= cpu_milli
        self._memory[row] -= memory_mib
        self._pods[row] -= pods
