"""Units in which GPUs are counted, and grids of whole numbers on which shares are exact."""

import math
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from typing import Final

GPU_MILLI: Final = 1000
"""Thousandths of one GPU."""

Milli = int | Fraction
"""Thousandths of a GPU, exact: a third of a GPU is `Fraction(1000, 3)`."""


@lru_cache(maxsize=16_384)
def exact_milli(numerator: int | Fraction, denominator: int = 1) -> Milli:
    """`numerator / denominator` of a GPU in thousandths; an int where it is whole."""
    found = Fraction(numerator * GPU_MILLI, denominator)
    return found.numerator if found.denominator == 1 else found


class Grid:
    """Whole units of a GPU in which given sizes are exact, as long as that takes at most `most` units.

    Otherwise sizes are rounded up and free parts down, so that what fits on the grid fits the GPU. An `optimistic` grid
    rounds the other way, so that what does not fit on the grid does not fit the GPU: for bounds.
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
        """What a share takes."""
        units = milli * self.gpu
        return int(units // GPU_MILLI if self._optimistic else -(-units // GPU_MILLI))

    def free(self, milli: Milli) -> int:
        """What a free part has."""
        units = milli * self.gpu
        return int(-(-units // GPU_MILLI) if self._optimistic else units // GPU_MILLI)
