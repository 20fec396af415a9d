"""From a component's arguments to an object: checked against the model, with the annotations of all our objects."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import pulumi
from pydantic import ValidationError

from plimsoll.errors import InvalidObjectError
from plimsoll.model.meta import Declared, describe_errors

FIELD_MANAGER: Final = "plimsoll-stack"

Model = TypeVar("Model", bound=Declared)


def valid(model: type[Model], kind: str, name: str, fields: Mapping[str, Any]) -> Model:
    """The model made of `fields`. Raises InvalidObjectError naming the kind, the object and each wrong field."""
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        raise InvalidObjectError(f"{kind} {name}: {describe_errors(error)}") from None


def checked(
    model: type[Model],
    kind: str,
    name: str,
    fields: Mapping[str, Any],
    convert: Callable[[Model], dict[str, Any]],
) -> pulumi.Input[dict[str, Any]]:
    """`convert` of the model made of `fields`: at once where all are known, else when they are; raises as `valid`."""

    def check(known: Mapping[str, Any]) -> dict[str, Any]:
        return convert(valid(model, kind, name, known))

    if _has_output(fields):
        return pulumi.Output.from_input(dict(fields)).apply(check)
    return check(fields)


def fields_of(args: Mapping[str, Any], *others: str) -> dict[str, Any]:
    """The arguments that were given, without `others`, which are not the model's."""
    return {key: value for key, value in args.items() if value is not None and key not in others}


def metadata(
    name: pulumi.Input[str],
    namespace: pulumi.Input[str] | None = None,
    labels: pulumi.Input[dict[str, pulumi.Input[str]]] | None = None,
    *,
    skip_await: bool = False,
) -> dict[str, Any]:
    """Metadata with a pinned field manager, so that each update is by the same one.

    `skip_await`: nobody waits for the object while the stack is locked.
    """
    annotations = {"pulumi.com/patchFieldManager": FIELD_MANAGER}
    if skip_await:
        annotations["pulumi.com/skipAwait"] = "true"
    made: dict[str, Any] = {"name": name, "annotations": annotations}
    if namespace is not None:
        made["namespace"] = namespace
    if labels is not None:
        made["labels"] = labels
    return made


def child_of(parent: pulumi.Resource, *depends_on: pulumi.Resource) -> pulumi.ResourceOptions:
    return pulumi.ResourceOptions(parent=parent, depends_on=list(depends_on) or None)


def _has_output(value: Any) -> bool:
    if isinstance(value, pulumi.Output | Awaitable):
        return True
    if isinstance(value, Mapping):
        return any(_has_output(item) for item in value.values())
    return isinstance(value, Sequence) and not isinstance(value, str) and any(_has_output(item) for item in value)
