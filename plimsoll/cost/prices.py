"""Prices of instance types."""

from collections.abc import Iterable, Mapping

from plimsoll.cluster.catalog import Catalog
from plimsoll.model import Snapshot


class Prices:
    """The price of one instance for an hour, by instance type, case-insensitive."""

    def __init__(self, prices: Mapping[str, float]) -> None:
        self._prices = {name.strip().casefold(): price for name, price in prices.items()}

    @classmethod
    def of(cls, snapshot: Snapshot) -> "Prices":
        """The Environment's prices, and those of the catalog."""
        listed = {each.name: each.price_per_hour for each in Catalog.of(snapshot).types}
        known = {name: price for name, price in listed.items() if price is not None}
        return cls(known | dict(snapshot.environment.spec.catalog.prices))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Prices) and self._prices == other._prices

    def __hash__(self) -> int:
        return hash(frozenset(self._prices.items()))

    def __bool__(self) -> bool:
        """Whether any price is known."""
        return bool(self._prices)

    def of_type(self, name: str) -> float | None:
        """None if the price is not known."""
        return self._prices.get(name.strip().casefold())

    def cheapest(self, names: Iterable[str]) -> float | None:
        """The lowest price of these types, as far as prices are known: the autoscaler chooses among them."""
        return min((price for name in names if (price := self.of_type(name)) is not None), default=None)
