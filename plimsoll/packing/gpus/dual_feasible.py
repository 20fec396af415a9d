"""A lower bound of the number of GPUs for shares, without a search."""

import math
from collections.abc import Mapping
from typing import Final

from plimsoll.packing.units import GPU_MILLI, Milli

_MOST: Final = 19
"""Largest k that is tried: more than the number of equal shares on one GPU in practice. Each k takes about 2
microseconds."""


def least_gpus(shares: Mapping[Milli, int]) -> int:
    """Lower bound of the number of GPUs for `shares`, the number of shares by size in thousandths of a GPU.

    The maximum of the plain sum and of the dual feasible functions u(k) of Fekete and Schepers (2001): a share x of a
    GPU counts x if (k + 1) x is whole, else floor((k + 1) x) / k. Seven shares of 0.6 need seven GPUs by u(1); six of
    0.35 need three by u(2).
    """
    if not shares:
        return 0
    parts = math.lcm(*(size.denominator for size in shares))
    gpu = GPU_MILLI * parts
    counts = [(int(size * parts), count) for size, count in shares.items()]
    best = -(-sum(size * count for size, count in counts) // gpu)
    for k in range(1, _MOST + 1):
        whole, floors = 0, 0
        for size, count in counts:
            floor, rest = divmod(size * (k + 1), gpu)
            if rest:
                floors += floor * count
            else:
                whole += floor * count
        best = max(best, -(-(whole * k + floors * (k + 1)) // (k * (k + 1))))
    return best
