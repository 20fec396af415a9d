"""A lower bound of the GPUs for shares that needs no search."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from plimsoll.packing.units import GPU_MILLI, Milli

_MOST: Final = 19
"""Up to which k: more than any number of equal shares on one GPU that matters, at 20 microseconds each."""


def least_gpus(shares: Mapping[Milli, int]) -> int:
    """GPUs that no packing can do without of `shares`: the number of each size, in thousandths of a GPU.

    The best of their plain sum and of the dual feasible functions u(k) of Fekete and Schepers (2001): a share x of a
    GPU counts x where (k + 1) x is whole, else floor((k + 1) x) / k. Seven shares of 0.6 need seven GPUs by u(1); six
    of 0.35 need three by u(2).
    """
    best = -(-sum(size * count for size, count in shares.items()) // GPU_MILLI)
    for k in range(1, _MOST + 1):
        whole, floors = 0, 0
        for size, count in shares.items():
            parts, rest = divmod(size * (k + 1), GPU_MILLI)
            if rest:
                floors += int(parts) * count
            else:
                whole += int(parts) * count
        best = max(best, -(-(Fraction(whole, k + 1) + Fraction(floors, k)) // 1))
    return int(best)
