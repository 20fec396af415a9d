"""Scale: amounts of nodes and pods as coefficients of an integer program."""

from typing import Final

_BITS: Final = 16
"""The largest amount is at most 2^16 steps. Amounts are rounded to whole steps."""


class Scale:
    """Scales amounts for the solver, which ignores or exaggerates differences below 1e-6.

    Amounts are whole numbers of steps, and a step is well above that tolerance. Requested amounts are rounded down and
    offered ones up, so that the program stays a relaxation.
    """

    def __init__(self, most: int) -> None:
        # A power of two, so that whole GiB are whole steps.
        self._step = 1 << max(0, (most - 1).bit_length() - _BITS)
        # A power of two keeps numbers exact: the largest amount becomes 1 to 2, a step at least 1.5e-5.
        self._size = 2.0 ** max(0, (most // self._step).bit_length() - 1)

    def down(self, amount: int) -> float:
        return amount // self._step / self._size

    def up(self, amount: int) -> float:
        return -(-amount // self._step) / self._size
