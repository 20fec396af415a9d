"""`requirements` of a NodePool or NodeClaim, as observed: parts of another type than theirs are ignored."""

from collections.abc import Mapping
from typing import Any

from plimsoll.labels import FORMER_KEYS, INSTANCE_TYPE


def requirements_of(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The requirements in the spec of a node, by the current keys of labels."""
    items = spec.get("requirements")
    found = [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
    return [{**item, "key": FORMER_KEYS.get(str(item.get("key")), item.get("key"))} for item in found]


def allowed_types(spec: Mapping[str, Any]) -> tuple[str, ...]:
    """Instance types that the requirements allow by `In`; empty if they name none."""
    for item in requirements_of(spec):
        if item.get("key") == INSTANCE_TYPE and item.get("operator") == "In":
            values = item.get("values")
            return tuple(str(value) for value in values) if isinstance(values, list | tuple) else ()
    return ()
