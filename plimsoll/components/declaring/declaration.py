"""Converts a component's arguments to an object: validates them, and sets the metadata that all declared objects
have."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import pulumi
from pydantic import ValidationError
from pydantic.alias_generators import to_camel

from plimsoll.components.declaring.inputs import is_later, object_of, validate
from plimsoll.errors import InvalidObjectError
from plimsoll.model.meta import Declared, describe_errors

FIELD_MANAGER: Final = "plimsoll-stack"
PATCH_FORCE: Final = "pulumi.com/patchForce"

Model = TypeVar("Model", bound=Declared)


class InvalidArgumentError(InvalidObjectError, pulumi.RunError):
    """Invalid arguments. Pulumi ends the program with the message alone, without a traceback."""


def valid(model: type[Model], kind: str, name: str, fields: Mapping[str, Any]) -> Model:
    """The model made of `fields`. Raises InvalidArgumentError naming the kind, the object and each wrong field."""
    try:
        return validate(model, fields)
    except ValidationError as error:
        raise InvalidArgumentError(f"{kind} {name}: {describe_errors(error, model)}") from None


def checked(
    model: type[Model],
    kind: str,
    name: str,
    fields: Mapping[str, Any],
    convert: Callable[[Model], dict[str, Any]],
) -> pulumi.Input[dict[str, Any]]:
    """`convert` applied to the model made of `fields`, with an Output in the place of each value that is not known yet.
    Raises as `valid`."""
    return object_of(fields, lambda known: convert(valid(model, kind, name, known)))


def known(kind: str, name: str, args: Mapping[str, Any], *names: str) -> None:
    """Refuses Outputs in arguments that determine the number or the names of the objects.

    Raises InvalidArgumentError. `names` may be paths such as `gfd.mode`; the items of a list are checked, too.
    """
    for path in names:
        value: Any = args
        for step in path.split("."):
            value = value.get(step, value.get(to_camel(step))) if isinstance(value, Mapping) else value
            items = value if isinstance(value, list | tuple) else ()
            if is_later(value) or any(is_later(each) for each in items):
                raise InvalidArgumentError(
                    f"{kind} {name}: {path}: is an Output, but it determines which objects are declared",
                    "set a plain value, such as one of pulumi.Config; in a stack file, no secret under the same key",
                )


def fields_of(args: Mapping[str, Any], *others: str) -> dict[str, Any]:
    """The given arguments without `others`, which are not fields of the model."""
    return {key: value for key, value in args.items() if value is not None and key not in others}


def metadata(
    name: pulumi.Input[str],
    namespace: pulumi.Input[str] | None = None,
    labels: pulumi.Input[Mapping[str, pulumi.Input[str]]] | None = None,
    *,
    annotations: pulumi.Input[Mapping[str, Any]] | None = None,
    skip_await: bool = False,
    patch_force: pulumi.Input[bool] | None = None,
) -> dict[str, Any]:
    """Metadata with a fixed field manager, so that every update uses the same one, whatever `annotations` contain.

    `skip_await`: an update does not wait until the object is ready, while the stack is locked. `patch_force`: an update
    overwrites fields of other field managers.
    """
    ours: dict[str, pulumi.Input[str]] = {"pulumi.com/patchFieldManager": FIELD_MANAGER}
    if skip_await:
        ours["pulumi.com/skipAwait"] = "true"
    if patch_force is not None:
        later = pulumi.Output.from_input(patch_force) if is_later(patch_force) else None
        ours[PATCH_FORCE] = _bool_text(patch_force) if later is None else later.apply(_bool_text)
    made: dict[str, Any] = {"name": name, "annotations": _with(annotations or {}, ours)}
    if namespace is not None:
        made["namespace"] = namespace
    if labels is not None:
        made["labels"] = labels
    return made


def _with(given: Any, ours: dict[str, pulumi.Input[str]]) -> pulumi.Input[dict[str, pulumi.Input[str]]]:
    if is_later(given):
        return pulumi.Output.from_input(given).apply(lambda known: {**(known or {}), **ours})
    return {**given, **ours}


def _bool_text(value: Any) -> Any:
    return None if value is None else "true" if value else "false"
