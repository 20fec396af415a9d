"""Prices of instance types, and where they are from."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from plimsoll.cluster.catalog import Catalog
from plimsoll.model import Snapshot
from plimsoll.model.cluster import InstanceType, ListPrice


class PriceBasis(NamedTuple):
    """Where the prices of a sum are from. All are in one currency."""

    currency: str = ""
    """ISO 4217; empty if the Environment does not name that of its prices, or nothing has a price."""
    own: bool = False
    """Whether the Environment's prices are among them."""
    lists: tuple[tuple[str, str], ...] = ()
    """Region and date of each on-demand price list; a date may be empty."""
    discount: float = 0.0
    """Percent by which the prices are less than those of the lists."""

    def __bool__(self) -> bool:
        """Whether anything has a price."""
        return self.own or bool(self.lists)

    def __str__(self) -> str:
        """Such as `Prices in USD: on-demand list of us-east-1 (2026-07-20)`."""
        if not self:
            return "No price is known"
        lists = ", ".join(f"{region} ({date or 'undated'})" for region, date in self.lists)
        less = f" less {self.discount:g} %" if self.discount else ""
        sources = [
            *(["the Environment's own"] if self.own else []),
            *([f"on-demand list of {lists}{less}"] if lists else []),
        ]
        return f"Prices{f' in {self.currency}' if self.currency else ''}: {'; '.join(sources)}"

    def as_json(self) -> dict[str, Any]:
        return {
            "currency": self.currency or None,
            "own": self.own,
            "lists": [{"region": region, "date": date or None} for region, date in self.lists],
            "discountPercent": self.discount,
        }


UNPRICED: Final = PriceBasis()


class Prices:
    """The price of one instance for an hour, by instance type, case-insensitive."""

    def __init__(
        self, own: Mapping[str, float], listed: Mapping[str, ListPrice] | None = None, currency: str | None = None
    ) -> None:
        """`listed` are on-demand prices of types without an own price; `currency` is that of the own ones."""
        self._own = {_key(name): price for name, price in own.items()}
        self._listed = {_key(name): price for name, price in (listed or {}).items()}
        self._currency = currency or ""

    @classmethod
    def of(cls, snapshot: Snapshot) -> "Prices":
        """The Environment's prices, and those of the catalog."""
        settings = snapshot.environment.spec.catalog
        return cls.of_types(Catalog.of(snapshot).types, settings.currency, settings.prices)

    @classmethod
    def of_types(
        cls, types: Iterable[InstanceType], currency: str | None, more: Mapping[str, float] | None = None
    ) -> "Prices":
        """The prices of these types, and `more` own ones of others."""
        every = tuple(types)
        own = {each.name: each.price_per_hour for each in every if each.price_per_hour is not None}
        return cls({**(more or {}), **own}, {each.name: each.list_price for each in every if each.list_price}, currency)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Prices) and self._values == other._values

    def __hash__(self) -> int:
        return hash((frozenset(self._own.items()), frozenset(self._listed.items()), self._currency))

    @property
    def _values(self) -> tuple[object, ...]:
        return self._own, self._listed, self._currency

    def of_type(self, name: str) -> float | None:
        """None if the price is not known."""
        own, listed = self._own.get(_key(name)), self._listed.get(_key(name))
        return listed.amount if own is None and listed is not None else own

    def cheapest(self, names: Iterable[str]) -> float | None:
        """The lowest price of these types, as far as prices are known: the autoscaler chooses among them."""
        return min((price for name in names if (price := self.of_type(name)) is not None), default=None)

    def basis(self, names: Iterable[str]) -> PriceBasis:
        """Where the prices of these types are from."""
        keys = set(map(_key, names))
        own = not keys.isdisjoint(self._own)
        listed = [self._listed[key] for key in keys - self._own.keys() if key in self._listed]
        currency = next((each.currency for each in listed), self._currency if own else "")
        lists = tuple(sorted({(each.region, each.date) for each in listed}))
        return PriceBasis(currency, own, lists, max((each.discount for each in listed), default=0.0))


def _key(name: str) -> str:
    return name.strip().casefold()
