"""Structural OpenAPI v3 schemas of models, for CustomResourceDefinitions.

The rules are those of apiextensions.k8s.io/v1: references are resolved, each value has one type, no `anyOf` contains
types, and `additionalProperties` and `properties` exclude each other.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel

Schema = dict[str, Any]

TEXT_LENGTH: Final = 1024
"""Maximum length of a text if the model sets none: CEL rules may only read values of bounded size."""
ITEMS: Final = 1000
"""Maximum number of items of a list if the model sets none."""
ENTRIES: Final = 64
"""Maximum number of entries of a map if the model sets none."""

_KEPT: Final = (
    "type", "format", "enum", "pattern", "minimum", "maximum",
    "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties",
)  # fmt: skip


def structural(model: type[BaseModel], *, bounded: bool = True) -> Schema:
    """The schema of a model's fields under their aliases.

    Defaults are left out: a field that is not set stays absent, so that a newer controller uses its own default for
    older objects. `bounded` gives every text, list and map a maximum size if the model sets none. Raises ValueError if
    a field may have more than one type.
    """
    generated = model.model_json_schema(mode="validation", by_alias=True)
    return _Inlining(generated.get("$defs", {}), bounded).convert(generated)


class _Inlining:
    def __init__(self, definitions: Mapping[str, Schema], bounded: bool) -> None:
        self._definitions = definitions
        self._bounded = bounded

    def convert(self, schema: Schema) -> Schema:
        schema = self._resolve(schema)
        converted: Schema = {key: schema[key] for key in _KEPT if key in schema}
        if "description" in schema:
            converted["description"] = _one_line(schema["description"])
        for bound, inclusive in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
            if bound in schema:
                converted[inclusive], converted[bound] = schema[bound], True
        if "const" in schema:
            converted["enum"] = [schema["const"]]
        match schema.get("type"):
            case "object":
                self._object(schema, converted)
            case "array":
                converted["items"] = self.convert(schema["items"])
                self._bound(converted, "maxItems", ITEMS)
            case "string" if "enum" not in converted:
                self._bound(converted, "maxLength", TEXT_LENGTH)
            case None:
                raise ValueError(f"no single type: {schema}")
        return converted

    def _object(self, schema: Schema, converted: Schema) -> None:
        if "properties" in schema:
            converted["properties"] = {name: self.convert(value) for name, value in schema["properties"].items()}
            if schema.get("required"):
                converted["required"] = schema["required"]
        elif isinstance(schema.get("additionalProperties"), dict):
            converted["additionalProperties"] = self.convert(schema["additionalProperties"])
            self._bound(converted, "maxProperties", ENTRIES)
        else:
            converted["x-kubernetes-preserve-unknown-fields"] = True

    def _bound(self, converted: Schema, name: str, bound: int) -> None:
        if self._bounded:
            converted.setdefault(name, bound)

    def _resolve(self, schema: Schema) -> Schema:
        """Replaces references and `X | None` by the schema to which they refer; keys beside them take precedence."""
        if "anyOf" in schema:
            some = [each for each in schema["anyOf"] if each.get("type") != "null"]
            if len(some) == 1:
                rest = {key: value for key, value in schema.items() if key != "anyOf"}
                return self._resolve({**some[0], **rest})
        if "$ref" in schema:
            rest = {key: value for key, value in schema.items() if key != "$ref"}
            return self._resolve({**self._definitions[schema["$ref"].rpartition("/")[2]], **rest})
        return schema


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text.replace("`", "'")).strip()
