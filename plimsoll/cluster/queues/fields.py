"""Checks of a single Queue: its fields, their types and their amounts."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from plimsoll.cluster.queues.amount import UNITS, Resource
from plimsoll.cluster.queues.tree import is_number
from plimsoll.model.kai import UNLIMITED, QueueResource, QueueResources, QueueSpec
from plimsoll.model.meta import Severity, parse_duration


class Fault(NamedTuple):
    """A rule that a field breaks; the message continues after the queue's name."""

    rule: str
    field: str
    message: str
    severity: Severity = Severity.ERROR


def _fields_of(model: type[QueueSpec | QueueResources | QueueResource]) -> frozenset[str]:
    return frozenset(field.alias or name for name, field in model.model_fields.items())


_SPEC: Final = _fields_of(QueueSpec)
_RESOURCES: Final = _fields_of(QueueResources)
_AMOUNTS: Final = _fields_of(QueueResource)


def faults(spec: Mapping[str, Any]) -> Iterator[Fault]:
    """Faults of a Queue's `spec`."""
    yield from _unknown(spec, _SPEC, "spec")
    yield from _texts(spec)
    priority = spec.get("priority")
    if priority is not None and (not is_number(priority) or priority != int(priority)):
        yield Fault("queue-invalid-field", "spec.priority", f"the priority {priority!r:.60} is not a whole number")
    resources = spec.get("resources")
    if resources is None:
        yield Fault(
            "queue-resources-missing",
            "spec.resources",
            "spec.resources is missing: KAI rejects the queue, or gives it nothing; set quota, limit and "
            "overQuotaWeight of gpu, cpu and memory",
        )
        return
    if not isinstance(resources, Mapping):
        yield Fault("queue-invalid-field", "spec.resources", "spec.resources must be an object")
        return
    yield from _unknown(resources, _RESOURCES, "spec.resources")
    for resource in Resource:
        if resource.value in resources:
            yield from _amount_faults(resources[resource.value], resource)
    for resource in (Resource.CPU, Resource.MEMORY):
        given = resources.get(resource.value, {})
        if isinstance(given, Mapping) and not given.get("limit", 0):
            stated = "is 0" if "limit" in given else "is not set, which KAI reads as 0"
            yield Fault(
                "queue-runs-nothing",
                f"spec.resources.{resource}.limit",
                f"its {resource} limit {stated}: a pod of the queue, or of one below it, that requests {resource} is "
                "OverLimit forever; set -1 for unlimited",
                Severity.WARNING,
            )


def _unknown(given: Mapping[str, Any], known: frozenset[str], path: str) -> Iterator[Fault]:
    for name in sorted(set(given) - known):
        yield Fault(
            "queue-unknown-field",
            f"{path}.{name}",
            f"{path} has no field {name}: the cluster drops it; known fields are {', '.join(sorted(known))}",
        )


def _texts(spec: Mapping[str, Any]) -> Iterator[Fault]:
    for name in ("displayName", "parentQueue"):
        if name in spec and not isinstance(spec[name], str):
            yield Fault(
                "queue-invalid-field", f"spec.{name}", f"{name} {spec[name]!r:.60} is not a string: put it in quotes"
            )
    for name in ("preemptMinRuntime", "reclaimMinRuntime"):
        if name not in spec:
            continue
        try:
            negative = parse_duration(str(spec[name])) < 0
            problem = "is below 0" if negative else ""
        except ValueError:
            problem = "is not a duration"
        if problem or not isinstance(spec[name], str):
            yield Fault(
                "queue-duration",
                f"spec.{name}",
                f"{name} {spec[name]!r:.60} {problem or 'is not a string'}: write one such as 30s, 10m or 1h30m",
            )


def _amount_faults(given: Any, resource: Resource) -> Iterator[Fault]:
    path = f"spec.resources.{resource}"
    if not isinstance(given, Mapping):
        yield Fault("queue-invalid-field", path, f"{path} must be an object with quota, limit and overQuotaWeight")
        return
    yield from _unknown(given, _AMOUNTS, path)
    sound: dict[str, float] = {}
    for name in sorted(_AMOUNTS):
        amount = given.get(name, 0)
        if not is_number(amount):
            yield Fault("queue-invalid-field", f"{path}.{name}", f"{resource} {name} {amount!r:.60} is not a number")
        elif amount < 0 and (name == "overQuotaWeight" or amount != UNLIMITED):
            allowed = "0 or more" if name == "overQuotaWeight" else "0 or more, or -1 for unlimited"
            yield Fault("queue-negative", f"{path}.{name}", f"{resource} {name} is {amount:g}: write {allowed}")
        else:
            sound[name] = amount
    if not {"quota", "limit"} <= set(sound):
        return
    quota, limit = sound["quota"], sound["limit"]
    if limit != UNLIMITED and (quota == UNLIMITED or quota > limit):
        unit = UNITS[resource]
        stated = f"limit is {limit:g} {unit}" if "limit" in given else "limit is not set, which KAI treats as 0,"
        guaranteed = "unlimited" if quota == UNLIMITED else f"{quota:g} {unit}"
        yield Fault(
            "queue-limit-below-quota",
            f"{path}.limit",
            f"{resource} {stated} below its quota, {guaranteed}: raise the limit (-1 is unlimited) or lower the quota",
        )
