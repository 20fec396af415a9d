"""Functions that Kubernetes adds to CEL: quantities, versions, strings and lists.

Of https://kubernetes.io/docs/reference/using-api/cel/ and of the extensions of cel-go that it names. A quantity, and a
version, is a map with one key, which no expression can write: CEL here knows no further types. Left out: `find` and
`findAll`, because tenants write the patterns and those of Python may take for ever; `matches` is CEL's own.
"""

import re
from collections.abc import Callable, Mapping
from decimal import ROUND_DOWN, Decimal
from typing import Any, Final

from semver import Version

from plimsoll.quantity import parse_quantity

_QUANTITY: Final = "\0quantity"
_VERSION: Final = "\0version"
_LARGEST: Final = 2**63
OPTIONAL_FIELD: Final = "_optional_field"
"""The function that reads a field of a value as an optional one."""

Function = Callable[..., Any]


def quantity(text: str) -> dict[str, str]:
    """A quantity as a value of an expression; equal for equal amounts. Raises ValueError where it is none."""
    return _as_quantity(parse_quantity(text))


def version(text: str, normalize: bool = False) -> dict[str, str]:
    """A version as a value of an expression. With `normalize`, a leading `v`, missing parts and leading zeros are
    mended, as `semver(text, true)` does. Raises ValueError where it is none."""
    found = Version.parse(_normalized(text) if normalize else text)
    return {_VERSION: str(found.replace(build=None))}  # which says nothing of the order, nor of equality


def _normalized(text: str) -> str:
    core, mark, rest = re.fullmatch(r"v?([0-9.]*)([-+]?)(.*)", text, re.DOTALL).groups()  # type: ignore[union-attr]
    parts = [part.lstrip("0") or "0" for part in core.split(".")]
    return ".".join(parts + ["0"] * (3 - len(parts))) + mark + rest


def _as_quantity(amount: Decimal) -> dict[str, str]:
    return {_QUANTITY: str(amount.normalize() + 0)}


def _amount(value: Any) -> Decimal:
    """The amount of a quantity, or of an integer beside one."""
    if isinstance(value, Mapping) and _QUANTITY in value:
        return Decimal(value[_QUANTITY])
    if isinstance(value, int) and not isinstance(value, bool):
        return Decimal(value)
    raise TypeError("no quantity")


def _compared(left: Any, right: Any) -> int:
    """Below 0, 0 or above 0."""
    if isinstance(left, Mapping) and _VERSION in left:
        if not isinstance(right, Mapping) or _VERSION not in right:
            raise TypeError("no version")
        return Version.parse(left[_VERSION]).compare(right[_VERSION])
    if not isinstance(left, Mapping) or not isinstance(right, Mapping):
        raise TypeError("no quantity")
    one, other = _amount(left), _amount(right)
    return (one > other) - (one < other)


def _as_integer(value: Any) -> int:
    amount = _amount(value)
    if not _is_integer(value):
        raise ValueError("cannot convert value to integer")
    return int(amount)


def _is_integer(value: Any) -> bool:
    amount = _amount(value)
    return amount == amount.to_integral_value(ROUND_DOWN) and -_LARGEST <= amount < _LARGEST


def _reads(read: Callable[..., object]) -> Callable[..., bool]:
    def can(*given: Any) -> bool:
        try:
            read(*given)
        except ValueError:
            return False
        return True

    return can


def _part(name: str) -> Function:
    return lambda value: getattr(Version.parse(value[_VERSION]), name)


def _index_of(given: Any, wanted: Any, start: int = 0) -> int:
    if isinstance(given, str):
        return given.find(wanted, _position(start))
    return given.index(wanted) if wanted in given else -1


def _last_index_of(given: Any, wanted: Any, end: int | None = None) -> int:
    if isinstance(given, str):
        return given.rfind(wanted) if end is None else given.rfind(wanted, 0, _position(end) + len(wanted))
    return len(given) - 1 - given[::-1].index(wanted) if wanted in given else -1


def _position(given: int) -> int:
    if given < 0:
        raise ValueError("index out of range")
    return given


def _char_at(text: str, position: int) -> str:
    if not 0 <= position <= len(text):
        raise ValueError("index out of range")
    return text[position : position + 1]


def _substring(text: str, start: int, end: int | None = None) -> str:
    last = len(text) if end is None else end
    if not 0 <= start <= last <= len(text):
        raise ValueError("invalid substring range")
    return text[start:last]


def _split(text: str, mark: str, most: int = -1) -> list[str]:
    if most == 0:
        return []
    parts = text.split(mark) if mark else list(text)
    return parts if most < 0 or len(parts) <= most else [*parts[: most - 1], mark.join(parts[most - 1 :])]


def _replace(text: str, old: str, new: str, most: int = -1) -> str:
    return text.replace(old, new, most)


def _optional_field(value: Any, name: Any) -> Any:
    """What `value.?name` is: a field that may be missing, of a value that may be missing."""
    from cel import OptionalValue  # it imports a prompt and an event loop

    if isinstance(value, OptionalValue):
        if not value.has_value():
            return value
        value = value.value()
    if not isinstance(value, Mapping):
        raise TypeError("no map")
    return OptionalValue.of(value[name]) if name in value else OptionalValue.none()


FUNCTIONS: Final[Mapping[str, Function]] = {
    OPTIONAL_FIELD: _optional_field,
    "quantity": quantity,
    "isQuantity": _reads(parse_quantity),
    "isInteger": _is_integer,
    "asInteger": _as_integer,
    "asApproximateFloat": lambda value: float(_amount(value)),
    "sign": lambda value: (_amount(value) > 0) - (_amount(value) < 0),
    "add": lambda left, right: _as_quantity(_amount(left) + _amount(right)),
    "sub": lambda left, right: _as_quantity(_amount(left) - _amount(right)),
    "semver": version,
    "isSemver": _reads(version),
    "major": _part("major"),
    "minor": _part("minor"),
    "patch": _part("patch"),
    "compareTo": _compared,
    "isGreaterThan": lambda left, right: _compared(left, right) > 0,
    "isLessThan": lambda left, right: _compared(left, right) < 0,
    "charAt": _char_at,
    "indexOf": _index_of,
    "lastIndexOf": _last_index_of,
    "lowerAscii": lambda text: re.sub("[A-Z]+", lambda found: found.group().lower(), text),
    "upperAscii": lambda text: re.sub("[a-z]+", lambda found: found.group().upper(), text),
    "replace": _replace,
    "split": _split,
    "substring": _substring,
    "trim": str.strip,
    "join": lambda parts, mark="": mark.join(parts),
    "isSorted": lambda values: values == sorted(values),
    "sum": sum,
    "min": min,
    "max": max,
}
"""By name. Every one is also called on its first argument."""
