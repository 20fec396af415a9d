"""ListPrice: what a cloud's price list says of an instance type."""

import math
from dataclasses import dataclass

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

    def __post_init__(self) -> None:
        if not 0 <= self.amount < math.inf:
            raise InvalidFigureError(f"a list price must be a number of at least 0, not {self.amount!r}")

    def __str__(self) -> str:
        """Such as `3.673 USD an hour (on-demand list of eastus, 2026-06-18)`."""
        return (
            f"{figure(self.amount)} {self.currency} an hour (on-demand list of {self.region}, {self.date or 'undated'})"
        )
