"""Shares equal parts of values in memory: a hundred thousand pods have only a few thousand different ones."""

from functools import lru_cache
from typing import Any, Final, TypeVar

import orjson

from plimsoll.model.meta import ObservedObject

T = TypeVar("T", bound=ObservedObject)

_OWN: Final = frozenset({"name", "uid", "resource_version"})
"""Fields that differ between all objects."""
_LISTS: Final = frozenset({"containers", "init_containers"})
_NO_FIELDS: Final[set[str]] = set()


def with_shared_parts(value: T) -> T:
    """The value itself, with strings and containers replaced by equal ones of earlier values."""
    # pydantic's set of given fields takes 216 bytes for each object, and nothing reads it.
    object.__setattr__(value, "__pydantic_fields_set__", _NO_FIELDS)
    fields = vars(value)
    for name, held in fields.items():
        if name in _OWN:
            continue
        if type(held) is str:
            fields[name] = _text(held)
        elif type(held) is dict:
            held.update({key: _text(item) for key, item in held.items() if type(item) is str})
        elif held and name in _LISTS:
            fields[name] = _containers(orjson.dumps(held))
    return value


@lru_cache(maxsize=65_536)
def _text(text: str) -> str:
    return text


@lru_cache(maxsize=16_384)
def _containers(text: bytes) -> tuple[dict[str, Any], ...]:
    return tuple(orjson.loads(text))
