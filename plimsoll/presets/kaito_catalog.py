"""Converts KAITO's `model_catalog.yaml` to the built-in catalog."""

import csv
import io
from collections.abc import Mapping
from typing import Any, Final

import yaml
from pydantic import ValidationError

from plimsoll.model.meta import describe_errors
from plimsoll.presets.catalog import CatalogModel, InvalidPresetsError
from plimsoll.quantity import parse_quantity
from plimsoll.yaml_text import problem_of

_FIELDS: Final = {
    "repository": "name",
    "context_limit": "modelTokenLimit",
    "hidden_size": "hiddenSize",
    "layers": "numHiddenLayers",
    "heads": "numAttentionHeads",
    "kv_heads": "numKeyValueHeads",
    "head_dim": "headDim",
    "kv_lora_rank": "kvLoraRank",
    "qk_rope_head_dim": "qkRopeHeadDim",
    "format": "loadFormat",
    "quantization": "quantMethod",
    "license": "license",
}


def from_kaito(text: str) -> tuple[CatalogModel, ...]:
    """The models of KAITO's file. Raises InvalidPresetsError, which names entry and field."""
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InvalidPresetsError(f"not YAML: {problem_of(error)}", "give KAITO's model_catalog.yaml") from None
    models = content.get("models") if isinstance(content, Mapping) else None
    if not isinstance(models, list) or not models:
        raise InvalidPresetsError("it has no list `models`", "give KAITO's model_catalog.yaml")
    return tuple(_model(entry, number) for number, entry in enumerate(models, start=1))


def _model(entry: Any, number: int) -> CatalogModel:
    given = entry if isinstance(entry, Mapping) else {}
    name = given.get("name") or f"number {number}"
    fields = {ours: value for ours, theirs in _FIELDS.items() if (value := given.get(theirs)) is not None}
    try:
        size = float(parse_quantity(str(given.get("modelFileSize")))) / 1024**3
        return CatalogModel.model_validate({**fields, "size_gib": round(size, 2)})
    except ValidationError as error:
        raise InvalidPresetsError(f"model {name}: {describe_errors(error)}") from None
    except ValueError as error:
        raise InvalidPresetsError(f"model {name}: modelFileSize: {error}") from None


def as_csv(models: tuple[CatalogModel, ...]) -> str:
    """The catalog as text: one line a model."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(CatalogModel.model_fields), lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        {key: "" if value is None else value for key, value in each.model_dump().items()} for each in models
    )
    return out.getvalue()
