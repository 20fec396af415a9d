"""Pricing of patterns of nodes: the most valuable pods for a node, and an upper bound of the value of all others.

CPU (or memory) gets a price. The most valuable pods for each GPU at that price, by a knapsack, give an upper bound for
the node (Lagrangian relaxation). A label is a set of pods on one or several GPUs; its waste is how much less it is
worth than that bound. Labels whose waste is too large to be useful are left out, so the result is optimal for nodes of
the sizes that clouds offer. If there are too many labels, those with the least waste are kept, and the bound accounts
for the others.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from plimsoll.packing.gpus import Knapsack

Counts = NDArray[np.int64]
Values = NDArray[np.float64]
Held = tuple[tuple[int, int], ...]
"""(item, copies) pairs"""

FEW_LABELS: Final = 50
"""Maximum number of labels of one or several GPUs: enough to find good patterns."""
MANY_LABELS: Final = 1000
"""Maximum number of labels for a proof that no better pattern exists, sufficient for most traces."""
_LAST: Final = 300
"""Number of labels of all GPUs of a node from which patterns are taken."""
_SECONDS: Final = 6e-5
"""Approximate seconds for comparing a set of labels with each other, without those for each label."""
_SECONDS_OF_A_LABEL: Final = 1.5e-7
"""Approximate seconds for each label of the set."""
_SECONDS_OF_A_CELL: Final = 1.5e-8
"""Approximate seconds for each cell of the table by which they are compared."""
_MOST_CELLS: Final = 80
"""Maximum cells of that table for each label. With more, comparing the labels in turn takes less time."""
_BISECTIONS: Final = 8
"""Steps of the search for the price of CPU. The bound holds at every price, so that it need not be exact."""
_NOISE: Final = 1e-10
"""Smaller differences of worth are floating-point noise."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of items on nodes of one kind."""

    units: Counts
    """Units of one GPU; 0 if the item cannot use this kind."""
    devices: Counts
    """Number of whole GPUs of an item; 1 for a share of a GPU or for one GPU."""
    amounts: Counts
    """CPU or memory."""
    whole: int
    """Units of a whole GPU."""


@dataclass(frozen=True, slots=True)
class Room:
    """The free units of a node's GPUs, largest first, and its CPU or memory."""

    gpus: tuple[int, ...]
    amount: int


@dataclass(frozen=True, slots=True)
class _Labels:
    amount: Counts
    waste: Values
    held: NDArray[np.int16]
    """Copies of each item by label."""
    missed: float = np.inf
    """Lower bound of the waste of the labels that were left out because of their number."""


class PricedItems:
    """Prices patterns for nodes of one kind, at given values of items."""

    def __init__(
        self, sizes: Sizes, values: Values, limits: Counts, room: Room, worth: float, *,
        labels: int = FEW_LABELS, strict: bool = False,
    ) -> None:  # fmt: skip
        """CPU is priced for `room`, the node with the most of it. Only patterns worth more than `worth` are searched.

        At most `labels` labels are kept. With `strict`, no pattern has more copies of an item than `limits`, and there
        is no bound.
        """
        self._sizes = sizes
        self._values = values
        self._limits = limits
        self._labels = labels
        self._strict = strict
        self.work = 0.0
        """Approximate seconds that pricing took."""
        able = (values > 0) & (limits > 0) & (sizes.units > 0) & (sizes.amounts <= room.amount)
        self._shares = np.flatnonzero(able & (sizes.devices == 1))
        self._blocks = np.flatnonzero(able & (sizes.devices > 1))
        self._knapsack = Knapsack(
            [int(each) for each in sizes.units[self._shares]], sizes.whole, [int(each) for each in limits[self._shares]]
        )
        self._price = self._price_for(room)
        self._worth = values - self._price * sizes.amounts
        """Value of each item, less the price of its CPU or memory."""
        self._best = self._knapsack.price(self._worth[self._shares]).values
        self._most = room.amount
        self._slack = self._most_worth(room) - worth if labels > FEW_LABELS else np.inf
        """Waste from which a label is in no pattern that is worth more than `worth`."""
        self._of_gpu: dict[int, _Labels] = {}
        """Labels of shares on one GPU, by its free units."""
        self._varied: dict[int, _Labels] = {}
        """For each item the label with it that has the least waste, by the GPU's free units."""

    def _price_for(self, room: Room) -> float:
        """The price of CPU or memory at which the most valuable pods of all GPUs use about the amount of the node; 0 if
        there is enough."""
        values, amounts = self._values[self._shares], self._sizes.amounts[self._shares]

        def too_low(price: float) -> bool:
            held = self._knapsack.price(values - price * amounts).pattern(room.gpus[0])
            return len(room.gpus) * sum(int(amounts[item]) * copies for item, copies in held.items()) > room.amount

        if not too_low(0.0):
            return 0.0
        low, high = 0.0, float(np.max(values / np.maximum(1, amounts), initial=0.0))
        for _ in range(_BISECTIONS):
            price = (low + high) / 2
            low, high = (price, high) if too_low(price) else (low, price)
        return high

    def patterns(self, room: Room, worth: float) -> tuple[list[Held], float]:
        """Sets of pods that are worth more than `worth`, best first, and an upper bound of the worth of any set."""
        most = self._most_worth(room)
        slack = min(most - worth, self._slack) if self._labels > FEW_LABELS else np.inf
        if slack <= _NOISE:
            return [], max(worth, most - slack)
        self._of_gpu |= {units: self._on_gpu(units) for units in set(room.gpus) - self._of_gpu.keys()}
        gpus = [self._of_gpu[units] for units in room.gpus]
        nothing = np.zeros((1, len(self._values)), dtype=np.int16)
        steps: list[list[_Labels]] = [[] for _ in range(len(gpus) + 1)]
        steps[0].append(_Labels(np.zeros(1, dtype=np.int64), np.zeros(1), nothing))
        missed = min(slack, *(each.missed for each in gpus))
        for at, gpu in enumerate(gpus):
            labels = self._best_of(steps[at])
            missed = min(missed, labels.missed)
            last = at + 1 == len(gpus)
            steps[at + 1].append(self._joined(labels, gpu, room.amount, slack, last))
            if last:
                steps[at + 1].append(self._joined(labels, self._varied[room.gpus[at]], room.amount, slack, last))
            for block in self._blocks:
                devices = int(self._sizes.devices[block])
                if at + devices <= len(gpus) and room.gpus[at + devices - 1] == self._sizes.whole:
                    steps[at + devices].append(self._joined(labels, self._block(int(block)), room.amount, slack))
        found = _all_of(steps[-1])
        values = found.held @ self._values
        return self._distinct(found, values), max(worth, float(values.max(initial=0.0)), most - missed)

    def _distinct(self, labels: _Labels, values: Values) -> list[Held]:
        """For each item, the best pattern that contains it."""
        if not len(values):
            return []
        best = np.argmax(np.where(labels.held > 0, values[:, None], -np.inf), axis=0)
        found = dict.fromkeys(int(at) for at in best[np.argsort(-values[best], kind="stable")])
        return [
            tuple((int(item), int(labels.held[at, item])) for item in np.flatnonzero(labels.held[at])) for at in found
        ]

    def _most_worth(self, room: Room) -> float:
        """An upper bound of the worth of any set of pods on the node."""
        return sum(self._gpu_worth(units) for units in room.gpus) + self._price * room.amount

    def _gpu_worth(self, units: int) -> float:
        """The largest worth of a GPU's pods, less the price of their CPU."""
        blocks = self._worth[self._blocks] / self._sizes.devices[self._blocks]
        return max(float(self._best[units]), float(blocks.max(initial=0.0)) if units == self._sizes.whole else 0.0)

    def _block(self, item: int) -> _Labels:
        devices = int(self._sizes.devices[item])
        held = np.zeros((1, len(self._values)), dtype=np.int16)
        held[0, item] = 1
        waste = devices * self._gpu_worth(self._sizes.whole) - self._worth[item]
        return _Labels(self._sizes.amounts[[item]], np.array([waste]), held)

    def _on_gpu(self, units: int) -> _Labels:
        """Labels of shares on one GPU with this many free units."""
        # The waste assumes that the rest of the GPU is filled in the best way.
        free = np.array([units])
        amount = np.zeros(1, dtype=np.int64)
        waste = np.array([self._gpu_worth(units) - self._best[units]])
        held = np.zeros((1, len(self._values)), dtype=np.int16)
        missed = self._slack
        for item in sorted(self._shares, key=lambda each: (-self._sizes.units[each], each)):
            size, taken = int(self._sizes.units[item]), int(self._sizes.amounts[item])
            every = [(free, amount, waste, held)]
            for _ in range(int(min(self._limits[item], units // size))):
                free, amount, waste, held = every[-1]
                fits = (free >= size) & (amount + taken <= self._most)
                if not fits.any():
                    break
                free, amount, waste, held = free[fits], amount[fits], waste[fits], held[fits]
                held[:, item] += 1
                waste = waste + self._best[free] - self._best[free - size] - self._worth[item]
                useful = waste < self._slack
                every.append((free[useful] - size, amount[useful] + taken, waste[useful], held[useful]))
            if len(every) > 1:
                free, amount, waste, held = (np.concatenate(each) for each in zip(*every, strict=True))
                if len(free) <= 2 * self._labels:
                    continue
                kept, least = self._undominated(free, amount, waste)
                missed = min(missed, least)
                free, amount, waste, held = free[kept], amount[kept], waste[kept], held[kept]
            else:
                free, amount, waste, held = every[0]
        waste = waste + self._best[free]
        kept, least = self._undominated(np.zeros_like(free), amount, waste)
        best = np.argmin(np.where(held > 0, waste[:, None], np.inf), axis=0)
        self._varied[units] = _Labels(amount[best], waste[best], held[best])
        return _Labels(amount[kept], waste[kept], held[kept], min(missed, least))

    def _undominated(self, free: Counts, amount: Counts, waste: Values) -> tuple[Counts, float]:
        """The labels without those that another dominates: worth at least as much, with as much free capacity and no
        more of the amount."""
        worth = self._price * amount - waste - self._best[free]
        order = np.argsort(worth, kind="stable")
        _, row = np.unique(-free[order], return_inverse=True)
        _, column = np.unique(amount[order], return_inverse=True)
        shape, most = (int(row.max(initial=0)) + 2, int(column.max(initial=0)) + 2), _MOST_CELLS * len(waste)
        cells = shape[0] * shape[1]
        self.work += _SECONDS + _SECONDS_OF_A_LABEL * len(waste) + _SECONDS_OF_A_CELL * min(cells, most)
        if cells > most:
            kept = np.sort(order[_best_in_turn(row, column, worth[order])])
        else:
            best, owner = np.full(shape, -np.inf), np.full(shape, -1)
            best[row + 1, column + 1], owner[row + 1, column + 1] = worth[order], order
            before = np.maximum.accumulate(np.maximum.accumulate(best, axis=0), axis=1)
            better = best[1:, 1:] > np.maximum(before[:-1, 1:], before[1:, :-1]) + _NOISE
            kept = np.sort(owner[1:, 1:][better])
        if len(kept) <= self._labels:
            return kept, np.inf
        kept = kept[np.argsort(waste[kept], kind="stable")]
        return np.sort(kept[: self._labels]), float(waste[kept[self._labels]])

    def _joined(self, some: _Labels, others: _Labels, most: int, slack: float, last: bool = False) -> _Labels:
        """All combinations of two sets of labels; for the last GPU, only those with the largest worth."""
        amount = np.add.outer(some.amount, others.amount)
        waste = np.add.outer(some.waste, others.waste)
        first, second = np.nonzero((amount <= most) & (waste < slack))
        amount, waste = amount[first, second], waste[first, second]
        if last:
            kept, missed = np.argsort(waste - self._price * amount, kind="stable")[:_LAST], np.inf
        else:
            kept, missed = self._undominated(np.zeros_like(amount), amount, waste)
        held = some.held[first[kept]] + others.held[second[kept]]
        return self._within(_Labels(amount[kept], waste[kept], held, missed))

    def _within(self, labels: _Labels) -> _Labels:
        if not self._strict:
            return labels
        kept = (labels.held <= self._limits).all(axis=1)
        return _Labels(labels.amount[kept], labels.waste[kept], labels.held[kept], labels.missed)

    def _best_of(self, labels: Sequence[_Labels]) -> _Labels:
        if len(labels) == 1:
            return labels[0]
        every = _all_of(labels)
        kept, missed = self._undominated(np.zeros_like(every.amount), every.amount, every.waste)
        return _Labels(every.amount[kept], every.waste[kept], every.held[kept], min(missed, every.missed))


def _all_of(labels: Sequence[_Labels]) -> _Labels:
    return _Labels(
        np.concatenate([each.amount for each in labels]),
        np.concatenate([each.waste for each in labels]),
        np.concatenate([each.held for each in labels]),
        min(each.missed for each in labels),
    )


def _best_in_turn(row: Counts, column: Counts, worth: Values) -> list[int]:
    """The labels, ordered by worth, without those of which another is worth as much in a lower or equal row and
    column."""
    kept, columns, worths = list[int](), [-1], [-np.inf]
    column_of, worth_of = column.tolist(), worth.tolist()
    for at in np.lexsort((-np.arange(len(row)), column, row)).tolist():
        place = bisect_right(columns, column_of[at])
        if worth_of[at] > worths[place - 1] + _NOISE:
            kept.append(at)
        if worth_of[at] > worths[place - 1]:
            end = bisect_right(worths, worth_of[at], place)
            columns[place:end], worths[place:end] = [column_of[at]], [worth_of[at]]
    return kept
