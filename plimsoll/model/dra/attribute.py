"""Attributes of devices, as drivers publish them and selectors read them."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from plimsoll.quantity import parse_quantity

KINDS: Final = ("bool", "int", "string", "version")
"""The types of attributes. Lists of them (alpha) are not read: selectors that use one cannot be evaluated."""


class Attribute(NamedTuple):
    """One attribute of a device."""

    name: str
    """With its domain: `gpu.nvidia.com/productName`."""
    kind: str
    """One of KINDS."""
    value: bool | int | str
    """A version as semantic versioning writes it."""


def qualified(name: str, driver: str) -> str:
    """The name with its domain, which is the driver's where it has none."""
    return name if "/" in name else f"{driver}/{name}"


def read_attributes(given: Any, driver: str) -> tuple[Attribute, ...]:
    """The attributes of a device, sorted. Raises ValueError where one has no value."""
    found = []
    for name, value in (given or {}).items():
        if not isinstance(value, Mapping):
            raise ValueError(f"attribute {name}: must be an object")
        kind = next((kind for kind in KINDS if kind in value), None)
        if kind is not None:
            found.append(Attribute(qualified(name, driver), kind, value[kind]))
    return tuple(sorted(found))


def read_capacity(given: Any, driver: str) -> tuple[tuple[str, str], ...]:
    """(name with its domain, quantity) of what a device has, sorted. Raises ValueError where one is no quantity."""
    return tuple(sorted((qualified(name, driver), amount) for name, amount in read_amounts(given)))


def read_amounts(given: Any) -> tuple[tuple[str, str], ...]:
    """(name, quantity), sorted. Raises ValueError where one is no quantity."""
    amounts = ((name, amount.get("value") if isinstance(amount, Mapping) else amount) for name, amount in given.items())
    found = [(name, str(amount)) for name, amount in amounts if amount is not None]
    for _, amount in found:
        parse_quantity(amount)
    return tuple(sorted(found))
