"""Which declared fields of an object have another value in the cluster."""

from collections.abc import Iterator
from typing import Any, Final

from plimsoll.quantity import parse_quantity

Path = tuple[str | int, ...]
"""Keys and indices from an object to a field of it."""

_RESOURCE_LISTS: Final = frozenset({"capacity", "hard", "limits", "overhead", "podFixed", "requests"})
"""Fields of the type ResourceList: one quantity for each resource. Custom resources are assumed to use the same
names."""
_FIELDS: Final = frozenset({("emptyDir", "sizeLimit"), ("resourceFieldRef", "divisor")})


def differences(live: Any, declared: Any, path: Path = ()) -> Iterator[Path]:
    """Paths of the fields of `declared` that differ in `live`.

    Fields that only `live` has do not count, nor do further items of its lists. Quantities are compared by value:
    `1000m` and `1` of a resource are the same. Zero values of `declared` that are absent in `live` are the same outside
    metadata, because the apiserver leaves out many of them, such as `hostNetwork: false`; an absent and an empty map or
    list are the same everywhere.
    """
    if isinstance(live, dict) and isinstance(declared, dict):
        for key, wanted in declared.items():
            if key in live:
                yield from differences(live[key], wanted, (*path, key))
            elif wanted or (path[:1] == ("metadata",) and wanted not in ({}, [])):
                yield (*path, key)
    elif isinstance(live, list) and isinstance(declared, list):
        for index, wanted in enumerate(declared):
            if index < len(live):
                yield from differences(live[index], wanted, (*path, index))
            elif wanted:
                yield (*path, index)
    elif not _same(live, declared) and not (_is_quantity(path) and _same_quantity(live, declared)):
        yield path


def field_path(path: Path) -> str:
    """The path as text: `spec.containers[0].image`, `metadata.labels["a.b/c"]`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif any(mark in step for mark in '."[]'):
            quoted = step.replace('"', '\\"')
            text += f'["{quoted}"]'
        else:
            text += f".{step}" if text else step
    return text


def _is_quantity(path: Path) -> bool:
    return len(path) > 1 and (path[-2] in _RESOURCE_LISTS or path[-2:] in _FIELDS)


def _same(left: Any, right: Any) -> bool:
    return bool(left == right) and isinstance(left, bool) == isinstance(right, bool)


def _same_quantity(left: Any, right: Any) -> bool:
    try:
        return parse_quantity(left) == parse_quantity(right)
    except ValueError:
        return False
