"""Reads fields of objects that nothing has validated: a field of an unexpected type counts as absent."""

from collections.abc import Mapping
from typing import Any


def dig(value: Any, path: str) -> Any:
    """The value at a dotted path; None if a step is missing or null."""
    for step in path.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(step)
    return value


def section(value: Any, *path: str) -> Mapping[str, Any]:
    """The object at that path; an empty one where there is none."""
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def objects_of(items: Any) -> list[dict[str, Any]]:
    """The objects of a list; none of what is no list."""
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
