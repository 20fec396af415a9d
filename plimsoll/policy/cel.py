"""CEL expressions that several rules share; each reads `object`, which may be replaced by an update's `oldObject`."""

import re
from collections.abc import Iterable
from typing import Final

from plimsoll.model.api import EnvironmentSpec

_FIELDS: Final = EnvironmentSpec.model_fields


def text(value: str) -> str:
    """A string literal."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def texts(values: Iterable[str]) -> str:
    """A list of string literals."""
    return f"[{', '.join(map(text, values))}]"


def matches(value: str, pattern: str) -> str:
    """Whether a pattern with the same meaning in Python and RE2 matches the whole text."""
    flags = "(?i)" if pattern.startswith("(?i)") else ""
    return f"{value}.matches({text(f'{flags}^(?:{pattern.removeprefix(flags)})$')})"


def has(whole: str, path: str) -> str:
    """Whether every step of a path exists."""
    steps = path.split(".")
    return " && ".join(f"has({whole}.{'.'.join(steps[: end + 1])})" for end in range(len(steps)))


def value(whole: str, path: str, otherwise: str) -> str:
    """The value at a path, or another expression if there is none."""
    return f"({has(whole, path)} ? {whole}.{path} : {otherwise})"


def setting(field: str) -> str:
    """The Environment's value of a field, or the model's default."""
    alias, default = _FIELDS[field].alias, _FIELDS[field].default
    otherwise = texts(default) if isinstance(default, tuple) else text(default)
    return f"(has(params.spec.{alias}) ? params.spec.{alias} : {otherwise})"


def option(rule: str, name: str, otherwise: str) -> str:
    """An option that the Environment sets for a rule; an expression where it sets none of the expression's type."""
    found = f"params.spec.policies.rules[{text(rule)}]"
    given = f"{found}.options.{name}"
    return (
        f"({has('params', 'spec.policies.rules')} && {text(rule)} in params.spec.policies.rules"
        f" && has({found}.options) && has({given}) && type({given}) == type({otherwise}) ? {given} : {otherwise})"
    )


def message(template: str, **expressions: str) -> str:
    """An expression that fills a message's `{fields}` with the values of the expressions of the same names."""
    parts = re.split(r"\{(\w+)\}", template)
    return " + ".join(expressions[part] if odd % 2 else text(part) for odd, part in enumerate(parts) if part)


def has_controller(condition: str = "") -> str:
    """Whether the object has a controller as its owner that meets a condition on `each`. Anyone can set an owner: check
    who sent the request, too."""
    among = "object.metadata.ownerReferences"
    more = f" && {condition}" if condition else ""
    return f"has({among}) && {among}.exists(each, has(each.controller) && each.controller{more})"


def requests_any(condition: str) -> str:
    """Whether a container requests, not 0 of, a resource that meets a condition on `name`."""
    return (
        "variables.containers.exists(each, ["
        f"{value('each', 'resources.limits', '{}')}, {value('each', 'resources.requests', '{}')}"
        f"].exists(amounts, amounts.exists(name, {condition} && string(amounts[name]) != '0')))"
    )


POD_VARIABLES: Final = {
    "pod": "object.kind == 'Pod' ? object : object.kind == 'CronJob' ? object.spec.jobTemplate.spec.template"
    " : object.spec.template",
    "annotations": value("variables.pod", "metadata.annotations", "{}"),
    "labels": value("variables.pod", "metadata.labels", "{}"),
    "containers": "variables.pod.spec.containers + "
    + value("variables.pod", "spec.initContainers", "[]")
    + " + "
    + value("variables.pod", "spec.ephemeralContainers", "[]"),
    "wantsDevices": requests_any("name.startsWith('nvidia.com/')"),
    "scheduler": value("variables.pod", "spec.schedulerName", "'default-scheduler'"),
}
"""Variables of every rule on pods: the pod or pod template, and the parts that rules read."""
