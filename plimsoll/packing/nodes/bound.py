"""A lower bound on the GPUs of new nodes, from the prices of an earlier packing of much the same pods.

Any prices of shares prove a bound once they are scaled so that no new GPU can hold more than is worth 1: the dual of
the linear program over patterns. Those of its last optimum stay close to the best while few pods come and go.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from plimsoll.packing.gpus import Knapsack, Milli, Price, Values
from plimsoll.packing.nodes.need import FreeNode, NodeShape, PodNeed
from plimsoll.packing.nodes.shapes import Load, ShapeChoice
from plimsoll.packing.nodes.units import takes
from plimsoll.packing.units import GPU_MILLI

_ROUNDING = 1e-6
"""Floating-point noise that must not lift the bound to the next whole GPU."""


class ShareWorth:
    """What shares are worth by some prices, and what that proves of the new GPUs that they need beside free ones."""

    def __init__(self, needs: Iterable[PodNeed], shapes: Iterable[NodeShape], prices: Iterable[Price]) -> None:
        self._openable = {shape.kind for shape in shapes}
        counts: Counter[Milli] = Counter()
        known: dict[int, Milli] = {}
        for need in needs:
            milli = known.get(id(need.milli))
            if milli is None:
                milli = known[id(need.milli)] = tuple(sorted(need.milli.items()))
            if any(kind in self._openable for kind, _ in milli):
                counts[milli] += need.devices
        self._milli = sorted(counts)
        self._counts = np.array([counts[milli] for milli in self._milli], dtype=np.int64)
        sizes = {size for milli in self._milli for _, size in milli if size <= GPU_MILLI}
        self._unit = math.gcd(*sizes, GPU_MILLI)
        self._proofs = [_Priced(self, duals) for duals in self._duals(list(prices))]

    def bound(self, free: Sequence[FreeNode]) -> float:
        """New GPUs that no packing can do without beside these nodes."""
        return max((proof.bound(free) for proof in self._proofs), default=0.0)

    def _duals(self, prices: Sequence[Price]) -> Iterable[Values]:
        """Prices by size, and those of the earlier packing; of a new size that of the dearest that is no larger."""
        if not self._milli:
            return
        sizes = ([size for _, size in milli if 0 < size <= GPU_MILLI] for milli in self._milli)
        yield np.array([min(each, default=0) for each in sizes]) / GPU_MILLI
        if prices:
            exact = {price.milli: price.dual for price in prices}
            yield np.array([exact[milli] if milli in exact else _dual_of(dict(milli), prices) for milli in self._milli])

    def values(self, kind: str, duals: Values) -> Values:
        """The most that a GPU of the kind can hold, by units of its thousandths."""
        sizes = (dict(milli).get(kind, 0) for milli in self._milli)
        held = [size // self._unit if 0 < size <= GPU_MILLI else 0 for size in sizes]
        return Knapsack(held, GPU_MILLI // self._unit).price(duals).values

    @property
    def openable(self) -> Iterable[str]:
        """Kinds of new GPUs."""
        return self._openable

    @property
    def unit(self) -> int:
        """Thousandths of which every share is a multiple."""
        return self._unit

    def worth(self, duals: Values) -> float:
        """Of all shares."""
        return float(self._counts @ duals)


class _Priced:
    """One set of prices."""

    def __init__(self, of: ShareWorth, duals: Values) -> None:
        self._of = of
        self._duals = duals
        self._values: dict[str, Values] = {}
        self._free: dict[tuple[str, tuple[int, ...]], float] = {}
        """What nodes of a kind can hold on free GPUs; thousands of nodes are of a few kinds."""
        self._worth = of.worth(duals)
        self._most = max((float(self._of_kind(kind)[-1]) for kind in of.openable), default=0.0)

    def bound(self, free: Sequence[FreeNode]) -> float:
        return (self._worth - sum(map(self._on, free))) / max(1.0, self._most)

    def _on(self, node: FreeNode) -> float:
        found = self._free.get((node.kind, node.gpus))
        if found is None:
            values = self._of_kind(node.kind)
            found = sum(float(values[gpu // self._of.unit]) for gpu in node.gpus if gpu > 0)
            self._free[node.kind, node.gpus] = found
        return found

    def _of_kind(self, kind: str) -> Values:
        found = self._values.get(kind)
        if found is None:
            found = self._values[kind] = self._of.values(kind, self._duals)
        return found


class PackingProof:
    """What no packing of these pods onto free nodes and new ones can do without; `worth` is that of the pods."""

    def __init__(
        self, needs: Sequence[PodNeed], shapes: Sequence[NodeShape], free: Sequence[FreeNode], worth: ShareWorth
    ) -> None:
        self._needs = needs
        self._shapes = shapes
        self._free = free
        self._known: dict[tuple[int, ...], frozenset[str]] = {}
        """Names of shapes that take pods of a kind."""
        self.lower_bound = worth.bound(free)
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


def _dual_of(milli: Mapping[str, int], prices: Iterable[Price]) -> float:
    """What stands in for the price of a size that had none: it takes the place of any that is smaller everywhere."""
    return max(
        (each.dual for each in prices if all(milli.get(kind, 0) >= size for kind, size in each.milli if kind in milli)),
        default=0.0,
    )
