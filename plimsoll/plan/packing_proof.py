"""A lower bound on the GPUs of new nodes, from the prices of an earlier packing of much the same pods.

Any prices of shares prove a bound once they are scaled so that no new GPU can hold more than is worth 1: the dual of
the linear program over patterns. Those of its last optimum stay close to the best while few pods come and go.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from plimsoll.plan.knapsack import Knapsack, Values
from plimsoll.plan.node_need import FreeNode, NodeShape, PodNeed
from plimsoll.plan.node_shapes import Load, ShapeChoice
from plimsoll.plan.node_units import takes
from plimsoll.plan.packing import Milli, Price
from plimsoll.plan.packing_problem import GPU_MILLI

_ROUNDING = 1e-6
"""Floating-point noise that must not lift the bound to the next whole GPU."""


class PackingProof:
    """What no packing of these pods onto free nodes and new ones can do without."""

    def __init__(
        self,
        needs: Sequence[PodNeed],
        shapes: Sequence[NodeShape],
        free: Sequence[FreeNode],
        prices: Iterable[Price],
    ) -> None:
        self._needs = needs
        self._shapes = shapes
        self._free = free
        self._known: dict[tuple[int, ...], frozenset[str]] = {}
        """Names of shapes that take pods of a kind."""
        kinds = {shape.kind for shape in shapes}
        counts: Counter[Milli] = Counter()
        known: dict[int, Milli] = {}
        for need in needs:
            milli = known.get(id(need.milli))
            if milli is None:
                milli = known[id(need.milli)] = tuple(sorted(need.milli.items()))
            if any(kind in kinds for kind, _ in milli):
                counts[milli] += need.devices
        self._milli = sorted(counts)
        self._counts = np.array([counts[milli] for milli in self._milli], dtype=np.int64)
        self._sizes = {
            kind: [size if 0 < (size := dict(milli).get(kind, 0)) <= GPU_MILLI else 0 for milli in self._milli]
            for kind in sorted(kinds | {node.kind for node in free})
        }
        self.lower_bound = max((self._proven(duals) for duals in self._duals(list(prices))), default=0.0)
        """New GPUs by shares alone."""

    @property
    def least(self) -> int:
        """GPUs of new nodes by shares alone: of the shapes that there are, some sum to at least the bound."""
        bound = max(0, math.ceil(self.lower_bound - _ROUNDING))
        step = math.gcd(*(shape.gpus for shape in self._shapes)) or 1
        return -(-bound // step) * step

    def least_with_hosts(self) -> int:
        """As `least`, with CPU and memory of nodes, by an integer program."""
        loads = (
            Load(
                tuple(sorted(need.milli)),
                self._fitting(need),
                need.devices * min(need.milli.values()),
                need.devices if need.whole else 0,
                need.cpu_milli,
                need.memory_mib,
                1,
            )
            for need in self._needs
        )
        choice = ShapeChoice(loads, self._shapes, self._free)
        choice.require(self.least)
        choice.require_parts()
        return choice.least_gpus()

    def _fitting(self, need: PodNeed) -> frozenset[str]:
        key = (id(need.milli), need.devices, need.cpu_milli, need.memory_mib)
        found = self._known.get(key)
        if found is None:
            fitting = (shape.name for shape in self._shapes if shape.kind in need.milli and takes(shape, need))
            found = self._known[key] = frozenset(fitting)
        return found

    def _duals(self, prices: Sequence[Price]) -> Iterable[Values]:
        """Prices by size, and those of the earlier packing; of a new size that of the dearest that is no larger."""
        if not self._milli:
            return
        smallest = [min((row[item] for row in self._sizes.values() if row[item]), default=0) for item in
                    range(len(self._milli))]  # fmt: skip
        yield np.array(smallest) / GPU_MILLI
        if prices:
            exact = {price.milli: price.dual for price in prices}
            yield np.array([exact[milli] if milli in exact else _dual_of(dict(milli), prices) for milli in self._milli])

    def _proven(self, duals: Values) -> float:
        """The bound that these prices prove."""
        openable = {shape.kind for shape in self._shapes}
        most, worth = 1.0, 0.0
        free: Counter[tuple[str, int]] = Counter(
            (node.kind, gpu) for node in self._free for gpu in node.gpus if gpu > 0
        )
        unit = math.gcd(*(size for row in self._sizes.values() for size in row), GPU_MILLI)
        for kind, sizes in self._sizes.items():
            values = Knapsack([size // unit for size in sizes], GPU_MILLI // unit).price(duals).values
            if kind in openable:
                most = max(most, float(values[-1]))
            worth += sum(count * float(values[gpu // unit]) for (of, gpu), count in free.items() if of == kind)
        return (float(self._counts @ duals) - worth) / most


def _dual_of(milli: Mapping[str, int], prices: Iterable[Price]) -> float:
    """What stands in for the price of a size that had none: it takes the place of any that is smaller everywhere."""
    return max(
        (each.dual for each in prices if all(milli.get(kind, 0) >= size for kind, size in each.milli if kind in milli)),
        default=0.0,
    )
