"""`requirements` of a NodePool or NodeClaim, as observed: parts of another type than theirs are ignored."""

from collections.abc import Mapping
from typing import Any

from plimsoll.labels import INSTANCE_TYPE


def requirements_of(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The requirements in the spec of a node."""
    items = spec.get("requirements")
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def allowed_types(spec: Mapping[str, Any]) -> tuple[str, ...]:
    """Instance types that the requirements allow by `In`; empty if they name none."""
    for item in requirements_of(spec):
        if item.get("key") == INSTANCE_TYPE and item.get("operator") == "In":
            values = item.get("values")
            return tuple(str(value) for value in values) if isinstance(values, list | tuple) else ()
    return ()
