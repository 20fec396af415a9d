"""Kubernetes quantities as numbers (the `resource.Quantity` grammar of apimachinery)."""

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

_SUFFIX: Final[dict[str, Decimal]] = {
    "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "": Decimal(1),
    "k": Decimal(10**3), "M": Decimal(10**6), "G": Decimal(10**9), "T": Decimal(10**12), "P": Decimal(10**15),
    "E": Decimal(10**18),
    "Ki": Decimal(2**10), "Mi": Decimal(2**20), "Gi": Decimal(2**30), "Ti": Decimal(2**40), "Pi": Decimal(2**50),
    "Ei": Decimal(2**60),
}  # fmt: skip
_DECIMAL: Final = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_MOST_TEXTS: Final = 4096
"""Of one cache: anyone may write requests."""
_LARGEST: Final = 2**63 - 1
"""Larger amounts count as this: anyone may write requests."""
_MOST_ZEROS: Final = 99
"""A larger exponent counts as this: Kubernetes takes it, and its number is larger than every amount or rounded up."""
_QUANTITY = re.compile(
    r"([+-]?(?:\d+\.?\d*|\.\d+))(?:[eE]([+-]?\d{1,18})|(Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E))?", re.ASCII
)


def parse_quantity(text: str | int | float) -> Decimal:
    """The number that a quantity such as `500m`, `1152Gi`, `1e3` or `8` stands for.

    Raises ValueError, naming the text, where it is no quantity.
    """
    match = _QUANTITY.fullmatch(str(text))
    if match is None:
        raise ValueError(f"{text!r} is not a Kubernetes quantity such as 8, 500m or 64Gi")
    number, exponent, suffix = match.groups()
    zeros = min(max(int(exponent or 0), -_MOST_ZEROS), _MOST_ZEROS)
    return Decimal(f"{number}e{zeros}") * _SUFFIX[suffix or ""]


def canonical_quantity(text: str | int | float) -> str:
    """The quantity as Kubernetes writes it: `8` for 8, `500m` for 0.5, `1Gi` for 1024Mi, `1k` for 1000.

    Whoever reads an object and writes it back writes it so. Raises ValueError as `parse_quantity`.
    """
    value = parse_quantity(text)
    suffix = str(text).lstrip("+-.0123456789")
    if suffix.endswith("i") and abs(value) >= 1024 and value == int(value):
        number, power = _without_factors(int(value), 1024)
        return f"{number}{_BINARY[power]}"
    # Nothing is smaller than 1e-9.
    number, power = _without_factors(_ceil(value * 10**9), 1000)
    exponent = 3 * (power - 3)
    if suffix[:1] in ("e", "E") and suffix[1:] not in ("", "i"):
        return f"{number}e{exponent}" if exponent else str(number)
    return f"{number}{_DECIMAL[power]}"


def parse_cpu_milli(text: str | int | float) -> int:
    """Thousandths of a CPU, rounded up as the scheduler does."""
    return _cpu_milli(str(text))


def parse_memory_mib(text: str | int | float) -> int:
    """MiB, rounded up."""
    return mib_of(parse_bytes(text))


def parse_bytes(text: str | int | float) -> int:
    """Bytes, rounded up."""
    return _bytes(str(text))


def mib_of(number: int) -> int:
    """MiB of that many bytes, rounded up."""
    return -(-number // 2**20)


def parse_devices(text: str | int | float) -> int:
    """Whole devices of an extended resource; raises ValueError where the number is not whole."""
    return _devices(str(text))


def amount_in(amounts: Mapping[str, Any], resource: str, parse: Callable[[Any], int], unknown: int = 0) -> int:
    """The amount of a resource by one of the above: `unknown` where there is none, 0 where it cannot be read."""
    try:
        return parse(amounts.get(resource, unknown))
    except ValueError:
        return 0


# Cached by their text, because the objects of a cluster repeat few amounts.
@lru_cache(maxsize=_MOST_TEXTS)
def _cpu_milli(text: str) -> int:
    return min(_ceil(parse_quantity(text) * 1000), _LARGEST)


@lru_cache(maxsize=_MOST_TEXTS)
def _bytes(text: str) -> int:
    return min(_ceil(parse_quantity(text)), _LARGEST)


@lru_cache(maxsize=_MOST_TEXTS)
def _devices(text: str) -> int:
    value = parse_quantity(text)
    if value != int(value):
        raise ValueError(f"{text!r} is not a whole number of devices")
    return min(int(value), _LARGEST)


def _without_factors(number: int, base: int) -> tuple[int, int]:
    """The number without its factors of `base`, and how many they were: as many as there are suffixes."""
    if number == 0:
        return 0, 3
    power, most = 0, len(_DECIMAL if base == 1000 else _BINARY) - 1
    while number % base == 0 and power < most:
        number, power = number // base, power + 1
    return number, power


def _ceil(value: Decimal) -> int:
    return int(value.to_integral_value(rounding="ROUND_CEILING"))
