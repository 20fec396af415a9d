"""Evaluates the CEL expressions by which classes and claims select devices, as the scheduler does.

`device` has `driver`, `attributes[domain].name`, `capacity[domain].name` and `allowMultipleAllocations`. An unknown
domain is an empty map; an unknown name is an error, which ends the scheduler's attempt. What cannot be evaluated here
is no answer, and is told by its name.
"""

import logging
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from plimsoll.cluster.claims.functions import FUNCTIONS, OPTIONAL_FIELD, quantity, version
from plimsoll.cluster.claims.work import MOST_WORK, STRING, without_comments, without_strings, work
from plimsoll.model.dra import Attribute, Claimable, SliceDevice

if TYPE_CHECKING:  # it imports a prompt and an event loop, and most clusters have no claims
    from cel import Context, Program

logging.getLogger("cel").setLevel(logging.CRITICAL)  # it logs each error of a function, which anyone may cause

_MOST: Final = 65_536
"""Answers that are kept: anyone may write selectors."""
_LITERAL_DOMAIN: Final = re.compile(r"""["']([-a-z0-9.]{1,63})["']""")
_WHOLE_MAP: Final = re.compile(r"\bdevice\s*\.\s*(attributes|capacity)\b(?!\s*(\[|\.\s*\w+\s*(?![\w\s(])))")
"""The attributes of all domains together: which domains there are is not known of a map in which each one is."""
_DOMAIN: Final = r"\bdevice\s*\.\s*attributes\s*(?:\[[^]]*]|\.\s*\w+)\s*"
_WHOLE_DOMAIN: Final = re.compile(
    rf"\bsize\s*\(\s*{_DOMAIN}\)|{_DOMAIN}\.\s*(?:size|all|exists|exists_one|map|filter)\s*\("
)
"""The attributes of a domain together, of which those of one device alone are not known."""
_BIND: Final = re.compile(r"\bcel\s*\.\s*bind\s*\(")
_OPTIONAL: Final = re.compile(r"\.\s*\?\s*([A-Za-z_]\w*)|\[\s*\?")
_MOST_REWRITES: Final = 64
"""Bindings and optional fields that are rewritten in an expression: tenants write these, and each takes a pass."""
_UNDEFINED: Final = re.compile(r"Undefined variable or function: '([^']*)'")
_PART_OF_NODE: Final = re.compile(
    r"""(?x)/(?:\w*uuid|serial\w*|\w*index|minor|\w*addr(?:ess)?|\w*root|\w*busid|numanode|(?:parent)?deviceid|gpumoduleid
    |partition\d+|healthy|addressingmode|\w*driver(?:src)?version)$""",
    re.IGNORECASE,
)
"""Attributes of one device alone, or of how a node runs at the moment, of the drivers of NVIDIA, AMD and Intel."""
_RUNS: Final = re.compile(r"/(?:healthy|addressingmode|\w*driver(?:src)?version)$", re.IGNORECASE)
"""Those of how a node runs."""


class NotEvaluatedError(Exception):
    """The expression uses what is not evaluated here; the text names it."""


class SelectorError(Exception):
    """The expression ends in an error for the device, as in the scheduler; the text says which."""


def is_lasting(attribute: Attribute) -> bool:
    """Whether an attribute is the same on each such device, whichever node it is in and whenever that starts."""
    return _is_lasting(attribute.name)


def lasting(device: SliceDevice, driver: str) -> Claimable:
    """What is the same of a device on each such node."""
    return Claimable(
        driver,
        tuple(filter(is_lasting, device.attributes)),
        device.capacity,
        device.special or ("consumesCounters" if device.consumes else ""),
        device.shared,
        device.policies,
    )


@lru_cache(maxsize=4096)
def is_of_one_device(name: str) -> bool:
    """Whether an attribute, by its name with the domain, is of one device alone, such as its UUID or its place."""
    return not _is_lasting(name) and _RUNS.search(name) is None


@lru_cache(maxsize=4096)
def _is_lasting(name: str) -> bool:
    return _PART_OF_NODE.search(name) is None


def selects(expression: str, device: Claimable) -> bool:
    """Whether the expression selects the device. Raises NotEvaluatedError and SelectorError."""
    found = _evaluated(expression, device)
    if isinstance(found, Exception):
        raise found
    return found


@lru_cache(maxsize=_MOST)
def _evaluated(expression: str, device: Claimable) -> bool | NotEvaluatedError | SelectorError:
    try:
        program = _compiled(expression)
        if isinstance(program, NotEvaluatedError):
            return program
        found = program.execute(_context(device, domains_in(expression)))
    except NotEvaluatedError as error:
        return error
    except KeyError as error:
        return SelectorError(f"its devices have no {error.args[0] if error.args else 'such attribute'!s}")
    except Exception as error:  # whatever the library raises, for one expression
        undefined = _UNDEFINED.search(str(error))
        if undefined is not None:
            return NotEvaluatedError(f"{undefined.group(1)} in a selector")
        return SelectorError(str(error).partition(". Check")[0])
    return found if isinstance(found, bool) else SelectorError(f"the result is {found!r}, not true or false")


@lru_cache(maxsize=4096)
def _compiled(expression: str) -> "Program | NotEvaluatedError":
    import cel

    expression = without_comments(expression)
    problem = _not_evaluated(expression)
    if problem:
        return NotEvaluatedError(problem)
    try:
        return cel.compile(_without_optional(_without_bind(expression)))
    except NotEvaluatedError as error:
        return error
    except ValueError as error:
        words = str(error).partition("ERROR: ")[2].partition("\n")[0] or str(error)
        return NotEvaluatedError(f"{words.rpartition(': ')[2]} in a selector")


def _not_evaluated(expression: str) -> str:
    """What of the expression is not evaluated; empty if nothing is known not to be."""
    if len(_BIND.findall(expression)) + len(_OPTIONAL.findall(expression)) > _MOST_REWRITES:
        return f"more than {_MOST_REWRITES} bindings and optional fields in a selector"
    if work(expression) > MOST_WORK:
        return "loops, repeated replacements or patterns in a selector that may take long"
    code = without_strings(expression)
    if _WHOLE_MAP.search(code):
        return "the attributes of all domains together in a selector"
    if _WHOLE_DOMAIN.search(code):
        return "the attributes of a domain together in a selector"
    for name in (*re.findall(r"\b\w+\b(?!\s*\()", code), *(text[1:-1] for text in STRING.findall(expression))):
        if not is_lasting(Attribute(f"/{name}", "string", "")):
            return f"attribute {name} in a selector: it is not the same on each such node"
    return ""


def domains_in(expression: str) -> frozenset[str]:
    """Texts of the expression that may be domains."""
    return frozenset(_LITERAL_DOMAIN.findall(expression)) | frozenset(
        re.findall(r"\bdevice\s*\.\s*(?:attributes|capacity)\s*\.\s*(\w+)", expression)
    )


def _context(device: Claimable, domains: frozenset[str]) -> "Context":
    import cel

    context = cel.Context()
    for name, function in FUNCTIONS.items():
        context.add_function(name, function)
    empty: dict[str, dict[str, Any]] = {domain: {} for domain in (*domains, device.driver)}
    attributes = {domain: dict(names) for domain, names in empty.items()}
    capacity = {domain: dict(names) for domain, names in empty.items()}
    for attribute in device.attributes:
        domain, _, name = attribute.name.partition("/")
        value = version(str(attribute.value)) if attribute.kind == "version" else attribute.value
        attributes.setdefault(domain, {})[name] = value
    for qualified, amount in device.capacity:
        domain, _, name = qualified.partition("/")
        capacity.setdefault(domain, {})[name] = quantity(amount)
    context.add_variable(
        "device",
        {
            "driver": device.driver,
            "attributes": attributes,
            "capacity": capacity,
            "allowMultipleAllocations": device.shared,
        },
    )
    return context


def _without_bind(expression: str) -> str:
    """`cel.bind(x, value, result)` as `[value].map(x, result)[0]`."""
    found = next((each for each in _BIND.finditer(expression) if not _in_string(expression, each.start())), None)
    if found is None:
        return expression
    parts, end = _arguments(expression, found.end())
    if len(parts) != 3:
        raise NotEvaluatedError("cel.bind in a selector")
    name, value, result = parts
    rewritten = f"([{value}].map({name.strip()}, {result})[0])"
    return _without_bind(expression[: found.start()] + rewritten + expression[end:])


def _without_optional(expression: str) -> str:
    """`value.?name` and `value[?key]` as calls of the function that reads an optional field."""
    found = next((each for each in _OPTIONAL.finditer(expression) if not _in_string(expression, each.start())), None)
    if found is None:
        return expression
    key, end = [f"'{found.group(1)}'"], found.end()
    if not found.group(1):
        key, end = _arguments(expression, end)
    rewritten = f".{OPTIONAL_FIELD}({','.join(key)})"
    return _without_optional(expression[: found.start()] + rewritten + expression[end:])


def _arguments(expression: str, start: int) -> tuple[list[str], int]:
    """The arguments of a call, or the key of an index, from after its parenthesis, and where it ends."""
    strings = {at for found in STRING.finditer(expression) for at in range(*found.span())}
    depth, begin, parts = 0, start, list[str]()
    for at, mark in _code(expression, start, strings):
        if mark in "([{":
            depth += 1
        elif depth and mark in ")]}":
            depth -= 1
        elif not depth and mark in ",)]":
            parts.append(expression[begin:at])
            begin = at + 1
            if mark != ",":
                return parts, begin
    return [], len(expression)


def _code(expression: str, start: int, strings: set[int]) -> Iterator[tuple[int, str]]:
    return ((at, expression[at]) for at in range(start, len(expression)) if at not in strings)


def _in_string(expression: str, position: int) -> bool:
    return any(found.start() <= position < found.end() for found in STRING.finditer(expression))
