"""Checks the parts of a PodTemplateSpec that a workload is built on; the apiserver checks the rest."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from plimsoll.model.meta.fields import dig
from plimsoll.quantity import canonical_quantity

_NODE_SELECTOR_TERMS: Final = (
    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
)
_SHAPES: Final[tuple[tuple[str, type, str], ...]] = (
    ("metadata", dict, "an object"),
    ("metadata.labels", dict, "an object"),
    ("metadata.annotations", dict, "an object"),
    ("spec", dict, "an object"),
    ("spec.containers", list, "a list"),
    ("spec.initContainers", list, "a list"),
    ("spec.tolerations", list, "a list"),
    ("spec.affinity", dict, "an object"),
    ("spec.affinity.nodeAffinity", dict, "an object"),
    ("spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution", dict, "an object"),
    (_NODE_SELECTOR_TERMS, list, "a list"),
    ("spec.affinity.podAntiAffinity", dict, "an object"),
    ("spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution", list, "a list"),
)


_QUANTITIES: Final = ("limits", "requests", "overhead")
_QUANTITY: Final = ("sizeLimit", "divisor")
"""Fields of a PodSpec with quantities: maps, and single values."""


def check_pod_template(template: Mapping[str, Any]) -> None:
    """Raises ValueError, which names the field of a wrong type."""
    for path, kind, expected in _SHAPES:
        value = dig(template, path)
        if value is not None and not isinstance(value, kind):
            raise ValueError(f"{path} must be {expected}")
    for key, value in labels_of(template).items():
        if not isinstance(value, str):
            raise ValueError(f"metadata.labels.{key} must be text, not {value!r}: put it in quotes")
    containers = dig(template, "spec.containers")
    if not containers:
        raise ValueError("spec.containers needs at least one container")
    for position, container in enumerate(containers):
        _check_container(container, f"spec.containers[{position}]")
    for term in dig(template, _NODE_SELECTOR_TERMS) or ():
        if not isinstance(term, dict) or not isinstance(term.get("matchExpressions") or [], list):
            raise ValueError("spec.affinity.nodeAffinity: a nodeSelectorTerm must have matchExpressions as a list")


def _check_container(container: Any, path: str) -> None:
    if not isinstance(container, dict) or not isinstance(container.get("name"), str):
        raise ValueError(f"{path} must be an object with a name")
    for field in ("resources", "resources.requests", "resources.limits"):
        value = dig(container, field)
        if value is not None and not isinstance(value, dict):
            raise ValueError(f"{path}.{field} must be an object")


def check_quantities(spec: Mapping[str, Any], path: str = "") -> None:
    """Raises ValueError, which names a field of a pod's spec, which is at `path`, that is not a quantity."""

    def check(amount: Any, field: str) -> None:
        try:
            canonical_quantity(amount)
        except ValueError as error:
            raise ValueError(f"{field.lstrip('.')}: {error}") from None

    _each_quantity(spec, path, check)


def with_canonical_quantities(template: Mapping[str, Any]) -> dict[str, Any]:
    """The template with the quantities of its `spec` in Kubernetes' canonical form; what is none stays as it is.

    Otherwise, a controller that reads and writes back an object with the template would become the owner of the fields
    that it respells.
    """

    def canonical(amount: Any, _: str) -> Any:
        try:
            return canonical_quantity(amount)
        except ValueError:
            return amount

    return {**template, "spec": _each_quantity(template.get("spec"), "spec", canonical)}


def _each_quantity(value: Any, path: str, change: Callable[[Any, str], Any]) -> Any:
    """The value with `change(quantity, path)` in the place of each quantity in it."""
    if isinstance(value, list):
        return [_each_quantity(item, f"{path}[{position}]", change) for position, item in enumerate(value)]
    if not isinstance(value, Mapping):
        return value
    made: dict[str, Any] = {}
    for name, item in value.items():
        here = f"{path}.{name}"
        if name in _QUANTITIES and isinstance(item, Mapping):
            made[name] = {key: change(amount, f"{here}.{key}") for key, amount in item.items()}
        elif name in _QUANTITY and not isinstance(item, Mapping | list | None):
            made[name] = change(item, here)
        else:
            made[name] = _each_quantity(item, here, change)
    return made


def labels_of(template: Mapping[str, Any]) -> dict[str, Any]:
    """The pods' labels."""
    labels = dig(template, "metadata.labels")
    return labels if isinstance(labels, dict) else {}
