"""The two base classes of all models: declared and observed values."""

from collections.abc import Iterator, Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, Final, Self, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidatorFunctionWrapHandler, field_validator
from pydantic.alias_generators import to_camel
from pydantic.aliases import AliasPath

from plimsoll.errors import InvalidObjectError
from plimsoll.labels import WORKSPACE, WORKSPACE_NAMESPACE, WORKSPACE_UID
from plimsoll.text import did_you_mean, nearest

_PROBLEMS: Final = {
    "tuple_type": "must be a list",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "extra_forbidden": "unknown field",
    "missing": "is required",
}
"""In the words of YAML, where pydantic has those of Python."""

_FEW: Final = 8
"""Fields of an object that are all named where none is near."""

PositiveInt = Annotated[int, Field(ge=1, le=10_000)]


def describe_errors(error: ValidationError, model: type[BaseModel] | None = None) -> str:
    """Each invalid field with its path and the problem, separated by semicolons; `model` is what was read."""
    return "; ".join(f"{path}: {wrong}" if path else wrong for path, wrong in wrong_fields(error, model))


def wrong_fields(error: ValidationError, model: type[BaseModel] | None = None) -> Iterator[tuple[str, str]]:
    """The path of each invalid field, empty for the object as a whole, and the problem. For unknown fields of `model`,
    which was read, it has the fields of the same object that could have been meant."""
    found = error.errors(include_url=False)
    for item in found:
        path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in item["loc"]).lstrip(".")
        if item["type"] in _PROBLEMS:
            near = _meant(model, item["loc"]) if item["type"] == "extra_forbidden" else None
            yield path, _PROBLEMS[item["type"]] + (f" ({near})" if near else "")
            continue
        if item["type"] == "too_short":
            # Pydantic counts the valid entries only.
            if not any(_within(each["loc"], item["loc"]) for each in found):
                least = item["ctx"]["min_length"]
                yield path, f"needs at least {'one entry' if least == 1 else f'{least} entries'}"
            continue
        given = item["input"]
        if item["type"] == "string_type" and isinstance(given, bool | int | float):
            yield path, f"must be a string: put the value in quotes (given: {given!r})"
            continue
        shown = f" (given: {given!r})" if isinstance(given, str | int | float | bool) else ""
        yield path, f"{item['msg'].removeprefix('Value error, ')}{shown}"


def _meant(model: type[BaseModel] | None, location: Sequence[int | str]) -> str | None:
    """The fields of the object that an unknown field at this place may stand for; all where it has few."""
    found: Any = model
    for part in location[:-1]:
        found = _part_of(found, part)
    given, known = str(location[-1]), _model_in(found)
    if known is None:
        return None
    snake = "_" in given  # as in a program in Python
    names = [name if snake else field.alias or name for name, field in known.model_fields.items()]
    begun = [name for name in names if len(name) > 3 and given.casefold().startswith(name.casefold())]
    every = f"its fields: {', '.join(names)}" if 0 < len(names) <= _FEW else None
    return did_you_mean(nearest(given, names) or begun[:1]) or every


def _part_of(kind: Any, part: int | str) -> Any:
    """The type of a field, an entry or a value in values of a type; None if that is not plain."""
    model = _model_in(kind)
    if model is not None:
        fields = model.model_fields.items()
        return next((field.annotation for name, field in fields if part in (name, field.alias)), None)
    for each in _kinds(kind):
        arguments = get_args(each)
        if arguments and isinstance(get_origin(each), type) and issubclass(get_origin(each), Mapping | Sequence):
            return arguments[0] if isinstance(part, int) else arguments[-1]
    return None


def _model_in(kind: Any) -> type[BaseModel] | None:
    """The model that a value of the type is, if it is not absent."""
    models = [each for each in _kinds(kind) if isinstance(each, type) and issubclass(each, BaseModel)]
    return models[0] if len(models) == 1 else None


def _kinds(kind: Any) -> Iterator[Any]:
    """The types that a type is made of: those of a union, and an annotated one."""
    if get_origin(kind) is Annotated:
        yield from _kinds(get_args(kind)[0])
    elif get_origin(kind) in (Union, UnionType):
        for each in get_args(kind):
            yield from _kinds(each)
    else:
        yield kind


def _within(location: tuple[int | str, ...], outer: tuple[int | str, ...]) -> bool:
    return len(location) > len(outer) and location[: len(outer)] == outer


class Declared(BaseModel):
    """A declared value: camelCase fields, unknown fields forbidden, immutable."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        alias_generator=to_camel,
        populate_by_name=True,
        strict=False,
    )

    def manifest(self) -> dict[str, Any]:
        """The fields that are set, as in a Kubernetes object: camelCase, without nulls."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude_none=True)

    def complete_manifest(self) -> dict[str, Any]:
        """The fields that are set, and defaults of the others; empty fields are left out. Maps such as labels
        stay as they are, because a label may have an empty value."""
        manifest: dict[str, Any] = _complete(self, self.model_dump(mode="json", by_alias=True))
        return manifest


class Described(Declared):
    """A declared value in a CustomResourceDefinition. Docstrings of fields are their descriptions in its schema."""

    # Not for everything that is declared: to read the docstrings of a class takes about 2 ms at import.
    model_config = ConfigDict(use_attribute_docstrings=True)

    @field_validator("*", mode="wrap")
    @classmethod
    def _of_its_type(cls, given: Any, read: ValidatorFunctionWrapHandler) -> Any:
        """Refuses what its schema refuses and pydantic converts: a string or a boolean for a number, and a string or a
        number for a boolean."""
        value = read(given)
        if isinstance(value, dict):
            for key, item in value.items():
                _check_type(given[key], item, f"{key}: ")
        else:
            _check_type(given, value)
        return value


class Observed(BaseModel):
    """An observed value: only the needed fields, others ignored, immutable."""

    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)

    @classmethod
    def read(cls, manifest: Mapping[str, Any]) -> Self:
        """Reads a Kubernetes object. Raises InvalidObjectError, which names kind, object and field."""
        for part in ("spec", "status"):
            # A path into a part that is no object would find nothing, as if the part were absent.
            if not isinstance(manifest.get(part) or {}, Mapping):
                raise InvalidObjectError(f"{identify(manifest)}: {part} must be an object")
        try:
            return cls.model_validate(manifest)
        except ValidationError as error:
            raise InvalidObjectError(f"{identify(manifest)}: {describe_errors(error, cls)}") from None
        except (AttributeError, TypeError) as error:
            raise InvalidObjectError(f"{identify(manifest)}: a field has the wrong type ({error})") from None


class Reported(Observed):
    """A part of a status that the engine writes. Docstrings of fields are their descriptions in the schema."""

    model_config = ConfigDict(use_attribute_docstrings=True)  # see Described


class ObservedObject(Observed):
    """Metadata of an object."""

    name: str = Field(validation_alias=AliasPath("metadata", "name"), min_length=1)
    namespace: str = Field(default="", validation_alias=AliasPath("metadata", "namespace"))
    uid: str = Field(default="", validation_alias=AliasPath("metadata", "uid"))
    labels: dict[str, str] = Field(default_factory=dict, validation_alias=AliasPath("metadata", "labels"))
    annotations: dict[str, str] = Field(default_factory=dict, validation_alias=AliasPath("metadata", "annotations"))
    creation_timestamp: str = Field(default="", validation_alias=AliasPath("metadata", "creationTimestamp"))
    """RFC 3339 in UTC, so that text order is time order; empty in a manifest from a file."""
    deletion_timestamp: str | None = Field(default=None, validation_alias=AliasPath("metadata", "deletionTimestamp"))
    resource_version: str = Field(default="", validation_alias=AliasPath("metadata", "resourceVersion"))

    @property
    def deleting(self) -> bool:
        return self.deletion_timestamp is not None

    @property
    def key(self) -> tuple[str, str]:
        """(namespace, name)"""
        return (self.namespace, self.name)

    @property
    def owner(self) -> tuple[str, str, str]:
        """(namespace, name, UID) of the Workspace in the labels; each empty if missing."""
        labels = self.labels
        return (labels.get(WORKSPACE_NAMESPACE, ""), labels.get(WORKSPACE, ""), labels.get(WORKSPACE_UID, ""))


def _check_type(given: Any, read: Any, where: str = "") -> None:
    if isinstance(read, bool) and not isinstance(given, bool):
        raise ValueError(f"{where}must be true or false")
    if isinstance(read, int | float) and isinstance(given, str | bool) and not isinstance(read, bool):
        raise ValueError(f"{where}must be a number")


def _complete(value: Any, written: Any) -> Any:
    """What is written of a value, without the empty fields of declared values."""
    if isinstance(value, Declared):
        fields = zip(type(value).model_fields, written.items(), strict=True)
        found = ((key, _complete(getattr(value, name), item)) for name, (key, item) in fields)
        return {key: item for key, item in found if item not in (None, "", [], {})}
    if isinstance(value, tuple):
        return [_complete(*each) for each in zip(value, written, strict=True)]
    return written


def identify(manifest: Mapping[str, Any]) -> str:
    """`Kind namespace/name` of a manifest, as far as it has them."""
    metadata = manifest.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    name = metadata.get("name") or "(no name)"
    namespace = metadata.get("namespace")
    return f"{manifest.get('kind') or 'object'} {f'{namespace}/' if namespace else ''}{name}"
