"""Resource quantities in objects: their paths and their canonical form."""

from typing import Any, Final

from plimsoll.provider.values import PropertyPath, is_unknown
from plimsoll.quantity import canonical_quantity, parse_quantity

_LISTS: Final = frozenset({"capacity", "hard", "limits", "overhead", "podFixed", "requests"})
"""Fields of the type ResourceList: one quantity for each resource."""
_LISTS_OF_LIMIT_RANGES: Final = frozenset({"default", "defaultRequest", "max", "maxLimitRequestRatio", "min"})
_FIELDS: Final = frozenset({("emptyDir", "sizeLimit"), ("resourceFieldRef", "divisor")})
_FIELDS_OF_METRICS: Final = frozenset({("target", "averageValue"), ("target", "value")})


def is_quantity(path: PropertyPath) -> bool:
    """Whether Kubernetes' API has a quantity at this path of an object. Custom resources are assumed to use the same
    names."""
    if len(path) < 2:
        return False
    holder, name = path[-2:]
    return (
        holder in _LISTS
        or (holder, name) in _FIELDS
        or (path[:2] == ("spec", "limits") and holder in _LISTS_OF_LIMIT_RANGES)
        or (path[:2] == ("spec", "metrics") and (holder, name) in _FIELDS_OF_METRICS)
    )


def same_quantity(left: Any, right: Any) -> bool:
    """Whether both are quantities of the same value: `1000m` and `1`, `0.5Gi` and `512Mi`."""
    try:
        return parse_quantity(left) == parse_quantity(right)
    except ValueError:
        return False


def with_canonical_quantities(value: Any, path: PropertyPath = ()) -> Any:
    """A copy of an object with all quantities in canonical form. Other values are not changed."""
    if isinstance(value, dict):
        return {key: with_canonical_quantities(item, (*path, key)) for key, item in value.items()}
    if isinstance(value, list):
        return [with_canonical_quantities(item, (*path, index)) for index, item in enumerate(value)]
    return _canonical(value) if is_quantity(path) else value


def _canonical(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, str | int | float) or is_unknown(value):
        return value
    try:
        return canonical_quantity(value)
    except ValueError:
        return value  # the apiserver refuses it, and names the field
