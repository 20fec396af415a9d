"""The `pulumi.com/waitFor` annotation: `condition=Type[=Status]`, `jsonpath={...}[=value]`, or a JSON list of them."""

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import orjson

from plimsoll.errors import PlimsollError

# The subset of kubectl's JSONPath that waiting uses: fields, indexes and equality filters.
_STEP: Final = re.compile(
    r"""\.(?P<field>(?:[^.\[\]\\\s]|\\.)+)
    | \[\s*(?P<index>\d+|\*)\s*\]
    | \[\s*'(?P<quoted>[^']+)'\s*\]
    | \[\?\(\s*@\.(?P<key>[\w.-]+)\s*==\s*(?P<quote>["'])(?P<value>.*?)(?P=quote)\s*\)\]""",
    re.VERBOSE,
)


def wait_for(expression: str) -> Callable[[dict[str, Any]], str | None]:
    """Parses an annotation into a condition, which returns None if every part holds, else the first part that does not.

    Raises PlimsollError if the annotation is invalid.
    """
    try:
        parsed = orjson.loads(expression)
    except orjson.JSONDecodeError:
        parsed = expression
    parts = [_part(text) for text in (parsed if isinstance(parsed, list) else [expression])]
    if not parts:
        raise PlimsollError("pulumi.com/waitFor is an empty list", "write at least one condition, or remove it")

    def holds(obj: dict[str, Any]) -> str | None:
        return next((text for text, test in parts if not test(obj)), None)

    return holds


def _part(text: Any) -> tuple[str, Callable[[dict[str, Any]], bool]]:
    if isinstance(text, str) and text.startswith("condition="):
        name, _, wanted = text.removeprefix("condition=").partition("=")
        expected, conditions = [name.lower(), (wanted or "True").lower()], list(_steps(".status.conditions[*]", text))
        return text, lambda obj: any(
            isinstance(found, dict) and [_text(found.get(key)).lower() for key in ("type", "status")] == expected
            for found in _select(obj, conditions)
        )
    if isinstance(text, str) and text.startswith("jsonpath="):
        match = re.fullmatch(r"jsonpath=\{?(?P<path>[^{}]+?)\}?(?:=(?P<wanted>[^=\]]*))?", text)
        if match is not None:
            steps = list(_steps(match["path"], text))
            wanted = match["wanted"]
            return text, lambda obj: any(wanted is None or _text(found) == wanted for found in _select(obj, steps))
    raise PlimsollError(
        f"pulumi.com/waitFor cannot be read: {text!r}",
        "write condition=Type, condition=Type=Status, or jsonpath={.path.to.field}=value",
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _steps(path: str, text: str) -> Iterator[re.Match[str]]:
    position = 0
    path = path.removeprefix("$")
    path = path if path.startswith((".", "[")) else f".{path}"
    while position < len(path):
        match = _STEP.match(path, position)
        if match is None:
            raise PlimsollError(
                f"pulumi.com/waitFor: this JSONPath is not supported: {text!r}",
                'use fields, indexes and filters such as [?(@.type=="Ready")]',
            )
        yield match
        position = match.end()


def _select(value: Any, steps: list[re.Match[str]]) -> Iterator[Any]:
    if not steps:
        yield value
        return
    step, rest = steps[0], steps[1:]
    if (field := step["field"] or step["quoted"]) is not None:
        name = field.replace("\\", "")
        if isinstance(value, dict) and name in value:
            yield from _select(value[name], rest)
    elif isinstance(value, list):
        for position, item in enumerate(value):
            if step["key"] is not None:
                chosen = isinstance(item, dict) and _text(item.get(step["key"])) == step["value"]
            else:
                chosen = step["index"] in ("*", str(position))
            if chosen:
                yield from _select(item, rest)
