"""Arguments that may be Outputs, whose values are secret, or known only when the program's other resources exist.

Such a value becomes an Output in its own place in the object. The rest of the object is validated at once, so that a
preview, and the policies in it, see it. The value itself is validated as soon as it is known.
"""

import asyncio
import re
import types
import warnings
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final, NamedTuple, NoReturn, TypeVar

import pulumi
from pydantic import BaseModel
from pydantic_core import SchemaValidator

Model = TypeVar("Model", bound=BaseModel)
Path = tuple[str | int, ...]

_TOKEN: Final = re.compile("__plimsoll_later_([0-9]+)__")
_WHOLE: Final = frozenset({"default", "definitions", "definition-ref", "model-field", "model-fields"})
"""Types of pydantic's core schemas that wrap or name other schemas and validate no value themselves."""


class Later(str):
    """Placeholder in a model for a value that is not known yet. Its text contains the number of the value.

    It may be a part of other texts, and a number may be added to it. Code that compares it or reads a part of it gets a
    TypeError or AttributeError: an object that depends on such a decision is known only when the value is.
    """

    __slots__ = ()
    __hash__ = str.__hash__

    @classmethod
    def number(cls, position: int) -> "Later":
        return cls(f"__plimsoll_later_{position}__")

    def __iter__(self) -> NoReturn:
        raise TypeError("a value that is not known yet has no parts")

    def __eq__(self, other: object) -> bool:
        if self is not other and isinstance(other, str | int | float):
            raise TypeError("a value that is not known yet equals no other")
        return self is other

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __format__(self, _: str) -> str:
        return str(self)

    def __add__(self, other: Any) -> Any:
        return str(self) + other if isinstance(other, str) else self


class LaterFlag(Later):
    """Placeholder for a boolean: a test whether it is true raises TypeError."""

    __slots__ = ()

    def __bool__(self) -> NoReturn:
        raise TypeError("a boolean that is not known yet decides nothing")


class _Settled(NamedTuple):
    value: Any
    known: bool
    secret: bool
    resources: set[pulumi.Resource]


class _WhenAwaited(Awaitable[Any]):
    """Creates its coroutine only when it is awaited. Python warns of every coroutine that is never awaited, and a
    program may end when an Output has awaited only the first of its four."""

    def __init__(self, make: Callable[[], Awaitable[Any]]) -> None:
        self._make = make

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._make().__await__()


def is_later(value: Any) -> bool:
    """Whether the value itself, regardless of its items, is an Output or another awaitable."""
    return isinstance(value, pulumi.Output | Awaitable)


def validate(model: type[Model], fields: Mapping[str, Any]) -> Model:
    """The model of `fields`, in which any value may be a `Later`. Raises ValidationError.

    Rules on several fields are checked only if all of them are known.
    """
    if not any(isinstance(each, Later) for each in _leaves(fields)):
        return model.model_validate(fields)
    made: Model = _lenient(model).validate_python(fields)
    return made


def object_of(
    fields: Mapping[str, Any], convert: Callable[[Mapping[str, Any]], dict[str, Any]]
) -> pulumi.Input[dict[str, Any]]:
    """`convert` applied to the fields, with an Output in each place that depends on a value that is not known yet.

    `convert` gets a `Later` in the place of each such value. Errors that it raises end the program: at once if the
    known values cause them, otherwise when the value is known. If `convert` needs the value itself, the whole result is
    one Output.
    """
    later: list[pulumi.Output[Any]] = []
    numbered = _numbered(fields, later)
    if not later:
        return convert(numbered)
    try:
        with warnings.catch_warnings():
            # pydantic warns of a text in the place of a number.
            warnings.simplefilter("ignore", UserWarning)
            skeleton = convert(numbered)
    except (AttributeError, LookupError, TypeError):
        return pulumi.Output.from_input(dict(fields)).apply(lambda known: convert(_given(known)))

    async def settle() -> tuple[list[_Settled], dict[str, Any]]:
        settled = [
            _Settled(
                await output.future(with_unknowns=True),
                await output.is_known(),
                await output.is_secret(),
                await output.resources(),
            )
            for output in later
        ]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            made = convert(_replaced(numbered, settled))
        _require_same_shape(skeleton, made)
        return settled, made

    outcome = asyncio.ensure_future(settle())

    def place(path: Path, numbers: Sequence[int]) -> pulumi.Output[Any]:
        async def of_all(read: Callable[[list[_Settled]], Any]) -> Any:
            settled, _ = await outcome
            return read([settled[number] for number in numbers])

        async def value() -> Any:
            return _at((await outcome)[1], path)

        return pulumi.Output(
            _WhenAwaited(lambda: of_all(lambda them: set[pulumi.Resource]().union(*(each.resources for each in them)))),
            _WhenAwaited(value),
            _WhenAwaited(lambda: of_all(lambda them: all(each.known for each in them))),
            _WhenAwaited(lambda: of_all(lambda them: any(each.secret for each in them))),
        )

    made: dict[str, Any] = _with_places(skeleton, (), place)
    return made


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, BaseModel):
        yield from _leaves(value.__dict__)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def with_later(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields with a `Later` in the place of each value that is not known yet."""
    numbered: dict[str, Any] = _numbered(fields, [])
    return numbered


def _numbered(value: Any, later: list[pulumi.Output[Any]]) -> Any:
    if is_later(value):
        later.append(pulumi.Output.from_input(value))
        return Later.number(len(later) - 1)
    if isinstance(value, Mapping):
        return {key: _numbered(item, later) for key, item in value.items() if item is not None}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_numbered(item, later) for item in value]
    return value


def _replaced(value: Any, settled: list[_Settled]) -> Any:
    """The fields with the values that are known by now in the place of their `Later`."""
    if isinstance(value, Later):
        (number,) = _numbers(value)
        return _given(settled[number].value) if settled[number].known else value
    if isinstance(value, dict):
        replaced = {key: _replaced(item, settled) for key, item in value.items()}
        return {key: item for key, item in replaced.items() if item is not None}
    return [_replaced(item, settled) for item in value] if isinstance(value, list) else value


def _given(value: Any) -> Any:
    """The value without fields that are None: for Pulumi, such a field is absent."""
    if isinstance(value, Mapping):
        return {key: _given(item) for key, item in value.items() if item is not None}
    return [_given(item) for item in value] if isinstance(value, list | tuple) else value


def _with_places(value: Any, path: Path, place: Callable[[Path, Sequence[int]], Any]) -> Any:
    if isinstance(value, str):
        numbers = _numbers(value)
        return place(path, numbers) if numbers else value
    if isinstance(value, dict):
        return {key: _with_places(item, (*path, key), place) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_places(item, (*path, at), place) for at, item in enumerate(value)]
    return value


def _numbers(text: str) -> list[int]:
    return [int(number) for number in _TOKEN.findall(text)]


def _require_same_shape(shown: Any, made: Any, place: str = "") -> None:
    """Raises RunError if there are further fields, or a list has another number of items, now that values are known:
    the fields would be lost, and Outputs would be at wrong places."""
    if isinstance(shown, dict) and isinstance(made, dict):
        for key, item in made.items():
            here = f"{place}.{key}" if place else str(key)
            if key not in shown:
                raise pulumi.RunError(
                    f"{here}: an Output is None, and without its value the object has this field, too: leave the "
                    "argument out, or give a value"
                )
            _require_same_shape(shown[key], item, here)
    elif isinstance(shown, list) and isinstance(made, list):
        if len(shown) != len(made):
            raise pulumi.RunError(
                f"{place}: an Output is None, and this list has no item for it: leave the argument out, or give a value"
            )
        for at, item in enumerate(shown):
            _require_same_shape(item, made[at], f"{place}[{at}]")


def _at(value: Any, path: Path) -> Any:
    """The value at the path; None if the object has no such place now that values are known."""
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return value


@cache
def _lenient(model: type[BaseModel]) -> SchemaValidator:
    return SchemaValidator(_taking_later(model.__pydantic_core_schema__))


def _taking_later(schema: Any) -> Any:
    """The schema, extended to accept a `Later` for the value and for everything in it."""
    inner = {key: _within(key, value) for key, value in schema.items()}
    if schema["type"] in _WHOLE:
        return inner
    if schema["type"] == "model":
        inner["cls"] = _unbuilt(schema["cls"])
    if schema["type"] == "function-after":
        inner["function"] = {**schema["function"], "function": _where_known(schema["function"]["function"])}
    # References to this schema must lead to the outermost one.
    reference = {"ref": inner.pop("ref")} if "ref" in inner else {}
    return {
        "type": "function-wrap",
        "function": {"type": "no-info", "function": _pass_flag if _is_flag(schema) else _pass_later},
        "schema": inner,
        **reference,
    }


def _unbuilt(model: type[BaseModel]) -> type[BaseModel]:
    """A subclass without a validator of its own. Pydantic would use that of the class, which accepts no `Later`.

    A new subclass for each call, because pydantic builds its validator when an instance is first dumped.
    """
    return types.new_class(model.__name__, (model,), {"defer_build": True})


def _within(key: str, value: Any) -> Any:
    match key:
        case "schema" | "keys_schema" | "values_schema":
            return _taking_later(value)
        case "items_schema":
            return [_taking_later(each) for each in value] if isinstance(value, list) else _taking_later(value)
        case "choices" | "definitions":
            return [_taking_later(each) for each in value]
        case "fields" if isinstance(value, dict):
            return {name: _taking_later(field) for name, field in value.items()}
    return value


def _pass_later(value: Any, handler: Callable[[Any], Any]) -> Any:
    return value if isinstance(value, Later) else handler(value)


def _is_flag(schema: Any) -> bool:
    inner = schema["schema"] if schema["type"] in ("nullable", "default") else schema
    return bool(inner["type"] == "bool")


def _pass_flag(value: Any, handler: Callable[[Any], Any]) -> Any:
    return LaterFlag(value) if isinstance(value, Later) else handler(value)


def _where_known(check: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def checked(value: Any) -> Any:
        return value if any(isinstance(each, Later) for each in _leaves(value)) else check(value)

    return checked
