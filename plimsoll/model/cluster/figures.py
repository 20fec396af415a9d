"""Figures of GPUs and models, and which are possible."""

from typing import Final

from plimsoll.errors import PlimsollError

MIB_PER_GIB: Final = 1024
LARGEST: Final = 1e15
"""Upper limit of figures; up to here the estimator's floats neither overflow nor lose a GPU."""


class InvalidFigureError(PlimsollError):
    """An impossible figure of a model, GPU or setting, such as a negative size; the message names it."""


def check_figure(name: str, value: float, *, zero: bool = False) -> None:
    """Raises InvalidFigureError on values that are not finite numbers above 0 (or of at least 0)."""
    if not (value > 0 or (zero and value == 0)) or value > LARGEST:
        least = "of at least 0" if zero else "above 0"
        raise InvalidFigureError(f"{name} must be a number {least} and at most {LARGEST:.0e}, not {value!r}")


def check_count(name: str, value: int) -> None:
    """Raises InvalidFigureError on values that are not whole numbers of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= LARGEST:
        raise InvalidFigureError(f"{name} must be a whole number of at least 1, not {value!r}")


def product_words(product: str) -> frozenset[str]:
    """Words of a product's name in lower case: those of `NVIDIA A100` (table) are in `NVIDIA-A100-SXM4-80GB` (label).

    Words rather than text, because `A10` is not part of `A100`.
    """
    return frozenset(product.casefold().replace("-", " ").replace("_", " ").split())
