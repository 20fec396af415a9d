"""`requirements` of a NodePool or NodeClaim, as observed: parts of another type than theirs are ignored."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from plimsoll.labels import FORMER_KEYS, INSTANCE_TYPE
from plimsoll.model.meta import NodeRequirement, objects_of


def requirements_of(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The requirements in the spec of a node, by the current keys of labels."""
    items = objects_of(spec.get("requirements"))
    return [{**item, "key": FORMER_KEYS.get(str(item.get("key")), item.get("key"))} for item in items]


def allowed_types(spec: Mapping[str, Any]) -> tuple[str, ...]:
    """Instance types that the requirements allow by `In`; empty if they name none."""
    return allowed_values(spec).get(INSTANCE_TYPE, ())


def allowed_values(spec: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Values by label that the requirements allow by `In`; of several for one label, those of the first."""
    found: dict[str, tuple[str, ...]] = {}
    for item in requirements_of(spec):
        if item.get("operator") == "In":
            found.setdefault(str(item.get("key")), _values(item))
    return found


def forbidding(
    requirements: Iterable[Mapping[str, Any]], wanted: Mapping[str, Collection[str]]
) -> NodeRequirement | None:
    """The first requirement that allows none of the values that are wanted of its label; None if there is none."""
    for item in requirements:
        rule = NodeRequirement(str(item.get("key")), str(item.get("operator")), _values(item))
        values = wanted.get(rule.key)
        if values and not any(rule.allows(value) for value in values):
            return rule
    return None


def _values(item: Mapping[str, Any]) -> tuple[str, ...]:
    values = item.get("values")
    return tuple(str(value) for value in values) if isinstance(values, list | tuple) else ()
