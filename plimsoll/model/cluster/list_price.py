"""ListPrice: what a cloud's price list says of an instance type."""

import math
from dataclasses import dataclass, replace

from plimsoll.model.cluster.figures import InvalidFigureError
from plimsoll.text import figure


@dataclass(frozen=True, slots=True)
class ListPrice:
    """The on-demand price of one instance for an hour. Raises InvalidFigureError if it is no amount."""

    amount: float
    currency: str
    """ISO 4217, such as USD."""
    region: str
    date: str = ""
    """Of the list, ISO 8601; empty if it has none."""
    discount: float = 0.0
    """Percent by which `amount` is less than the list says."""

    def __post_init__(self) -> None:
        if not 0 <= self.amount < math.inf:
            raise InvalidFigureError(f"a list price must be a number of at least 0, not {self.amount!r}")

    def __str__(self) -> str:
        """Such as `3.673 USD an hour (on-demand list of eastus, 2026-06-18)`."""
        less = f" less {self.discount:g} %" if self.discount else ""
        of_list = f"on-demand list of {self.region}, {self.date or 'undated'}{less}"
        return f"{figure(self.amount)} {self.currency} an hour ({of_list})"

    def less(self, percent: float) -> "ListPrice":
        """With a discount on what the list says."""
        return replace(self, amount=self.amount * (100 - percent) / 100, discount=percent)
