"""Settings of an environment stack as a Python program with typed arguments."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from pydantic.alias_generators import to_snake

_WIDTH: Final = 88
"""Of lines, as formatters of Python have it by default."""
_KINDS: Final = {"nodePools": "NodePool", "queues": "Queue", "workspaces": "Workspace"}
"""Components by the settings that declare them."""
_ARGS: Final = {
    "demand": "DemandArgs",
    "disruption": "DisruptionArgs",
    "inference": "InferenceArgs",
    "labelSelector": "LabelSelectorArgs",
    "nodeClaims": "NodeClaimsArgs",
    "nodeClassRef": "NodeClassRefArgs",
    "preset": "PresetArgs",
    "requirements": "RequirementArgs",
    "resource": "ResourceArgs",
    "resources": "QueueResourcesArgs",
    "taints": "TaintArgs",
}
"""Classes of arguments by their fields; for lists, of the items."""
_WITHIN: Final = {
    "EnvironmentArgs": {"limits": "LimitsArgs"},
    "QueueResourcesArgs": dict.fromkeys(("gpu", "cpu", "memory"), "QueueResourceArgs"),
}
"""The same where a field of the same name is another one elsewhere."""


class _Name(str):
    """A name in the program, not a text."""

    __slots__ = ()


class _Call(NamedTuple):
    function: str
    arguments: tuple[tuple[str, Any], ...]
    """By name; positional ones have an empty name."""


def python_program(settings: Mapping[str, Any]) -> str:
    """The text of `__main__.py`. `settings` are those of the stack's file."""
    statements = dict(_statements(settings))
    indent = " " * 4
    body = "\n".join(f"{indent}{name}{_source(call, indent, len(indent + name))}" for name, call in statements.items())
    declared = ["Environment", "Guard", *(kind for field, kind in _KINDS.items() if settings.get(field))]
    names = sorted({*declared, *re.findall(r"\b[A-Z]\w*Args\b", body)})
    kubernetes = "import pulumi_kubernetes as k8s\n" if settings.get("namespaces") else ""
    return f'''"""`pulumi up` starts here. The stack environment is what `declare` declares; other
stacks, such as foundation, are their settings in stacks/."""

import pulumi
{kubernetes}
from plimsoll.components import (
{"".join(f"{indent}{name},{chr(10)}" for name in names)})
from plimsoll.stacks import run


def declare() -> None:
{body}


if pulumi.Config().require("layer") == "environment":
    declare()
else:
    run()
'''


def _statements(settings: Mapping[str, Any]) -> Iterator[tuple[str, _Call]]:
    """Calls by what is before them on the line."""
    environment = dict(settings["environment"])
    name = environment.pop("name")
    yield "environment = ", _component("Environment", name, environment)
    made = [_Name("environment")]
    for namespace in settings.get("namespaces", ()):
        made.append(_variable(namespace, "namespace"))
        arguments = (("", namespace), ("metadata", {"name": namespace}))
        yield f"{made[-1]} = ", _Call("k8s.core.v1.Namespace", arguments)
    for field, kind in _KINDS.items():
        for key, values in settings.get(field, {}).items():
            needs = [each for each in _needs(values) if each in made] if kind == "Workspace" else []
            made.append(_variable(key, to_snake(kind)))
            yield f"{made[-1]} = ", _component(kind, key, values, needs)
    guarded = {
        "layer": "environment",
        "environment": name,
        "explanation": "Run `plimsoll destroy` first: nodes and workloads exist.",
    }
    yield "", _component("Guard", f"plimsoll-environment-{name}", guarded, made)
    yield "pulumi.", _Call("export", (("", "environment"), ("", _Name("environment.environment_name"))))


def _needs(workspace: Mapping[str, Any]) -> Iterator[_Name]:
    yield _Name("environment")
    for kind in ("namespace", "queue"):
        if kind in workspace:
            yield _variable(workspace[kind], kind)


def _variable(name: str, kind: str) -> _Name:
    return _Name(f"{re.sub(r'[^a-z0-9]', '_', name)}_{kind}")


def _component(kind: str, name: str, values: Mapping[str, Any], needs: list[_Name] | None = None) -> _Call:
    options = _Call("pulumi.ResourceOptions", (("depends_on", needs),))
    return _Call(kind, (("", name), ("", _typed(values, f"{kind}Args")), *([("", options)] if needs else [])))


def _typed(value: Any, kind: str) -> Any:
    """The settings with calls of the classes of arguments."""
    if isinstance(value, list):
        return [_typed(item, kind) for item in value]
    if not kind or not isinstance(value, Mapping):
        return value
    classes = _ARGS | _WITHIN.get(kind, {})
    return _Call(kind, tuple((to_snake(key), _typed(item, classes.get(key, ""))) for key, item in value.items()))


def _source(value: Any, indent: str, column: int) -> str:
    """The value as Python, from the column on: on one line where it fits, else each item on a line of its own."""
    match value:
        case _Name():
            return str(value)
        case str():
            return json.dumps(value, ensure_ascii=False)
        case _Call():
            opened, closed = f"{value.function}(", ")"
            items = [(f"{name}=" if name else "", item) for name, item in value.arguments]
        case Mapping():
            opened, closed = "{", "}"
            items = [(f"{json.dumps(key)}: ", item) for key, item in value.items()]
        case list():
            opened, closed = "[", "]"
            items = [("", item) for item in value]
        case _:
            return repr(value)
    deeper = indent + "    "
    parts = [f"{name}{_source(item, deeper, len(deeper + name))}" for name, item in items]
    single = f"{opened}{', '.join(parts)}{closed}"
    # With the comma after it.
    if "\n" not in single and column + len(single) < _WIDTH:
        return single
    return f"{opened}\n" + "".join(f"{deeper}{part},\n" for part in parts) + f"{indent}{closed}"
