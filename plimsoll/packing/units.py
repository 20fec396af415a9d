"""The unit of GPU shares, and grids on which shares are whole numbers."""

import math
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from typing import Final

GPU_MILLI: Final = 1000
"""Thousandths of one GPU."""

Milli = int | Fraction
"""Thousandths of a GPU, exact: a third of a GPU is `Fraction(1000, 3)`."""


UNBOUNDED: Final = 2**40
"""Stands for an amount of CPU, memory or pods that is not known and counts as sufficient."""


@lru_cache(maxsize=16_384)
def exact_milli(numerator: int | Fraction, denominator: int = 1) -> Milli:
    """`numerator / denominator` of a GPU in thousandths; an int where it is whole."""
    found = Fraction(numerator * GPU_MILLI, denominator)
    return found.numerator if found.denominator == 1 else found


class Grid:
    """The unit in which given sizes are whole numbers, if a GPU then has at most `most` units.

    Otherwise sizes are rounded up and free parts down, so that what fits on the grid fits the GPU. An `optimistic` grid
    rounds the other way, so that what does not fit on the grid does not fit the GPU; it is used for lower bounds.
    """

    def __init__(self, sizes: Iterable[Milli], most: int, optimistic: bool = False) -> None:
        self.gpu = 1
        """Units of a whole GPU."""
        self.exact = True
        for size in set(sizes):
            self.gpu = math.lcm(self.gpu, (Fraction(size) / GPU_MILLI).denominator)
            if self.gpu > most:
                self.gpu, self.exact = most, False
                break
        self._optimistic = optimistic

    def size(self, milli: Milli) -> int:
        """Units that a share of `milli` thousandths takes."""
        units = milli * self.gpu
        return int(units // GPU_MILLI if self._optimistic else -(-units // GPU_MILLI))

    def free(self, milli: Milli) -> int:
        """Units that a free part of `milli` thousandths has."""
        units = milli * self.gpu
        return int(-(-units // GPU_MILLI) if self._optimistic else units // GPU_MILLI)


def less(amount: int, taken: int) -> int:
    """The amount less `taken`, at least 0. An unbounded amount stays unbounded."""
    return amount if amount >= UNBOUNDED else max(0, amount - taken)
