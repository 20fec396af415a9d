"""Computes the changes of an update: compares the live object, limited to the declared fields, with the new
declaration."""

import re
from typing import Any, Literal, NamedTuple

from plimsoll.provider.quantities import is_quantity, same_quantity
from plimsoll.provider.values import PropertyPath

_STEP = re.compile(r'\["(?P<quoted>(?:\\"|[^"])*)"\]|\[(?P<index>\d+)\]|\[\*\]|\.?(?P<field>[^.\[\]]+)')

Path = PropertyPath
Verb = Literal["add", "delete", "update"]


class Change(NamedTuple):
    """A property that differs."""

    path: Path
    verb: Verb
    value: Any
    """The new value; the old value of a deletion."""


class _Missing:
    pass


_MISSING = _Missing()


def prune(live: Any, shape: Any, path: Path = ()) -> Any:
    """Limits `live` to the fields of `shape`. Lists are cut by index, to the length of `shape`.

    If both values mean the same to the apiserver (a missing and an empty map; `1000m` and `1` of a resource), the
    spelling of `shape` is used.
    """
    if isinstance(live, dict) and isinstance(shape, dict):
        pruned = {key: prune(live[key], wanted, (*path, key)) for key, wanted in shape.items() if key in live}
        return pruned | {key: wanted for key, wanted in shape.items() if key not in live and wanted in ({}, [])}
    if isinstance(live, list) and isinstance(shape, list):
        return [prune(item, wanted, (*path, at)) for at, (item, wanted) in enumerate(zip(live, shape, strict=False))]
    return shape if is_quantity(path) and same_quantity(live, shape) else live


def changes(old: Any, new: Any, path: Path = ()) -> list[Change]:
    """The properties in which `new` differs from `old`, as deep as both have the same structure. Quantities are
    compared by value."""
    if isinstance(old, dict) and isinstance(new, dict):
        found: list[Change] = []
        for key in old.keys() | new.keys():
            found += _differ(old.get(key, _MISSING), new.get(key, _MISSING), (*path, key))
        return found
    if isinstance(old, list) and isinstance(new, list):
        found = []
        for index in range(max(len(old), len(new))):
            before = old[index] if index < len(old) else _MISSING
            after = new[index] if index < len(new) else _MISSING
            found += _differ(before, after, (*path, index))
        return found
    same = _same(old, new) or (is_quantity(path) and same_quantity(old, new))
    return [] if same else [Change(path, "update", new)]


def _differ(old: Any, new: Any, path: Path) -> list[Change]:
    if old is _MISSING:
        return [Change(path, "add", new)]
    if new is _MISSING:
        return [Change(path, "delete", old)]
    return changes(old, new, path)


def _same(left: Any, right: Any) -> bool:
    return bool(left == right) and isinstance(left, bool) == isinstance(right, bool)


def property_path(path: Path) -> str:
    """The path in Pulumi's syntax: `spec.containers[0].image`, `metadata.labels["a.b/c"]`."""
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


def parse_property_path(text: str) -> Path:
    """The inverse of `property_path`."""
    path: list[str | int] = []
    for match in _STEP.finditer(text):
        if match["quoted"] is not None:
            path.append(match["quoted"].replace('\\"', '"'))
        elif match["index"] is not None:
            path.append(int(match["index"]))
        else:
            path.append(match["field"] or "*")
    return tuple(path)


def covers(pattern: Path, path: Path) -> bool:
    """Whether `path` is `pattern` or below it; `*` in the pattern matches any step."""
    return len(pattern) <= len(path) and all(wanted in ("*", step) for wanted, step in zip(pattern, path, strict=False))


def touches(pattern: Path, change: Change) -> bool:
    """Whether a change is at `pattern`, below it, or above it as a part of a larger value."""
    if covers(pattern, change.path):
        return True
    head, tail = pattern[: len(change.path)], pattern[len(change.path) :]
    return bool(tail) and covers(head, change.path) and _holds(change.value, tail)


def _holds(value: Any, tail: Path) -> bool:
    if not tail:
        return True
    step, rest = tail[0], tail[1:]
    if step == "*":
        items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return any(_holds(item, rest) for item in items)
    return isinstance(value, dict) and step in value and _holds(value[step], rest)
