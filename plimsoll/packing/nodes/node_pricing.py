"""The most valuable pods for a node: bounded knapsack of two dimensions, by dynamic programming on grids.

GPUs are counted in parts, CPU or memory in steps.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from plimsoll.packing.units import GPU_MILLI, Milli

_BATCH = 40
"""Patterns that one round of pricing finds for a node."""

Counts = NDArray[np.int64]
Values = NDArray[np.float64]
Held = tuple[tuple[int, int], ...]
"""(item, copies)"""


@dataclass(frozen=True, slots=True)
class NodeGrid:
    """Units in which one kind of node is counted. An optimistic one is for bounds: it rounds the other way."""

    parts: int
    """Of a GPU."""
    powers: bool
    """Whether shares are rounded to powers of two."""
    steps: int
    """Of the largest CPU or memory."""
    largest: int
    optimistic: bool = False

    def of_item(self, milli: Milli, devices: int, amount: int) -> tuple[int, int]:
        """Parts and steps."""
        if self.optimistic:
            return devices * int(milli * self.parts // GPU_MILLI), amount * self.steps // self.largest
        parts = int(-(-milli * self.parts // GPU_MILLI))
        return devices * (1 << (parts - 1).bit_length() if self.powers else parts), -(
            -amount * self.steps // self.largest
        )

    def of_node(self, gpus: Sequence[Milli], amount: int) -> tuple[int, int]:
        """Parts and steps."""
        if self.optimistic:
            return sum(int(-(-free * self.parts // GPU_MILLI)) for free in gpus), -(
                -amount * self.steps // self.largest
            )
        return sum(int(free * self.parts // GPU_MILLI) for free in gpus), amount * self.steps // self.largest


@dataclass(frozen=True, slots=True)
class PricedNodes:
    values: Values
    """The most that a node with so many parts and steps can hold."""
    _taken: Sequence[tuple[int, int, int, int, NDArray[np.bool_]]]

    def pattern(self, parts: int, steps: int) -> Counter[int]:
        """How many of each item reach the value."""
        found: Counter[int] = Counter()
        for item, copies, own_parts, own_steps, taken in reversed(self._taken):
            if parts >= own_parts and steps >= own_steps and taken[parts - own_parts, steps - own_steps]:
                found[item] += copies
                parts, steps = parts - own_parts, steps - own_steps
        return found


class NodeKnapsack:
    """What items take of nodes of one kind."""

    def __init__(self, sizes: NDArray[np.int64], rooms: Sequence[tuple[int, int]]) -> None:
        """Parts and steps of items, -1 where one may not go there, and of nodes."""
        self.parts, self.steps = sizes.T
        self._shape = tuple(np.array(rooms).max(axis=0) + 1)

    @property
    def work(self) -> float:
        """Seconds that pricing takes, about."""
        return float(np.count_nonzero(self.parts >= 0) * np.prod(self._shape)) * 4e-9

    def price(self, values: Values, limits: Counts) -> PricedNodes:
        """Bounded, of two dimensions; items that are worth nothing are left out."""
        best = np.zeros(self._shape)
        taken = []
        for item in np.flatnonzero((values > 0) & (self.parts >= 0) & (limits > 0)):
            size = np.array([self.parts[item], self.steps[item]])
            most = [(room - 1) // each for room, each in zip(self._shape, size, strict=True) if each]
            left, copies = int(min([limits[item], *most])), 1
            # Powers of two and a rest reach every number of copies up to the limit.
            while left > 0:
                copies = min(copies, left)
                left -= copies
                parts, steps = (int(each) for each in copies * size)
                tail = best[parts:, steps:]
                gained = best[: self._shape[0] - parts, : self._shape[1] - steps] + values[item] * copies
                better = gained > tail + 1e-12
                taken.append((int(item), copies, parts, steps, better))
                np.copyto(tail, gained, where=better)
                copies *= 2
        return PricedNodes(best, taken)

    def with_each(self, priced: PricedNodes, duals: Values, room: tuple[int, int]) -> Iterator[Held]:
        """For one item after the other the best pattern that contains it; those that stand in one are passed over."""
        items = np.flatnonzero((duals > 0) & (self.parts >= 0) & (self.parts <= room[0]) & (self.steps <= room[1]))
        parts, steps = room[0] - self.parts[items], room[1] - self.steps[items]
        covered: set[int] = set()
        added = 0
        for at in np.argsort(-(duals[items] + priced.values[parts, steps]), kind="stable"):
            item = int(items[at])
            if item not in covered:
                held = priced.pattern(int(parts[at]), int(steps[at]))
                held[item] += 1
                covered |= held.keys()
                yield sorted_items(held)
                added += 1
                if added == _BATCH:
                    return


def finest(amounts: Values, counts: Counts, steps: Counts, optimistic: bool) -> int:
    """The number of steps on which amounts, which are parts of 1, are rounded the least."""
    scaled = np.round(amounts[:, None] * steps, 9)
    rounded = np.floor(scaled) if optimistic else np.ceil(scaled)
    return int(steps[np.argmin(counts @ (np.abs(rounded - scaled) / steps))])


def sorted_items(held: Counter[int]) -> Held:
    return tuple(sorted(held.items()))
