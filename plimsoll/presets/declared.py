"""Presets that an Environment, a file or a Workspace declares."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import yaml
from pydantic import ValidationError

from plimsoll.model.api import DeclaredPreset, ModelParameters
from plimsoll.model.meta import describe_errors
from plimsoll.presets.catalog import InvalidPresetsError, ModelCatalog
from plimsoll.presets.model_config import InvalidModelConfigError, read_model_config
from plimsoll.presets.model_preset import ModelPreset
from plimsoll.yaml_text import problem_of

COMPUTED: Final = frozenset(
    {
        *("config", "data-parallel-size", "distributed-executor-backend", "enable-lora", "gpu-memory-utilization"),
        *("distributed-timeout-seconds", "headless", "lora-modules", "master-addr", "max-loras", "max-model-len"),
        *("model", "nnodes", "node-rank", "pipeline-parallel-size", "port", "served-model-name"),
        "tensor-parallel-size",
    }
)
"""Options of vLLM that follow from the Workspace and the estimate."""
_OPTION: Final = re.compile(r"[a-z][-_.a-z0-9]*")


def declared_preset(entry: DeclaredPreset) -> ModelPreset:
    """The preset that is served. Raises InvalidModelConfigError, which names the preset and the field."""
    try:
        shape = read_model_config(entry.config)
    except InvalidModelConfigError as error:
        raise InvalidModelConfigError(f"preset {entry.name}: config: {error.message}", error.hint) from None
    for option in entry.options:
        where = f"preset {entry.name}: options: {option!r}"
        if not _OPTION.fullmatch(option):
            raise InvalidModelConfigError(f"{where} is no option of vLLM without the leading dashes: correct it")
        if option.replace("_", "-") in COMPUTED:
            raise InvalidModelConfigError(f"{where} follows from the Workspace and the estimate: remove it")
    return ModelPreset(
        name=entry.name,
        repository=entry.repository,
        size_gib=entry.size_gib,
        shape=shape,
        source=f"declared; {shape}",
        aliases=entry.aliases,
        spans_nodes=entry.spans_nodes,
        gated=entry.gated,
        options=entry.options,
    )


def with_parameters(name: str, parameters: ModelParameters, known: ModelPreset | None = None) -> ModelPreset:
    """The preset of that name with the figures that a Workspace gives; `known` is one of the same name.

    Raises InvalidModelConfigError.
    """
    return ModelPreset(
        name=known.name if known is not None else name,
        repository=known.repository if known is not None else name,
        size_gib=parameters.size_gib,
        shape=read_model_config(parameters.config),
        source="preset.parameters of the Workspace",
        spans_nodes=known.spans_nodes if known is not None else True,
        gated=known.gated if known is not None else False,
        options=known.options if known is not None else {},
    )


def catalog_of(entries: Iterable[DeclaredPreset], hub_refusals: Mapping[str, str] | None = None) -> ModelCatalog:
    """The built-in catalog with the declared presets; it says of one that cannot be read why.

    `hub_refusals` says, by name, why a model cannot be had from the hub.
    """
    found = []
    refused = {name: f"cannot be had from the hub: {why}" for name, why in (hub_refusals or {}).items()}
    for entry in entries:
        try:
            found.append(declared_preset(entry))
        except InvalidModelConfigError as error:
            why = f"its declaration cannot be read: {error.message}"
            refused |= dict.fromkeys((entry.name, *entry.aliases), why)
    return ModelCatalog.builtin().with_presets(found, refused)


def read_presets(text: str) -> tuple[ModelPreset, ...]:
    """The presets of a file with a list `presets`, as in an Environment. Raises InvalidPresetsError."""
    try:
        content: Any = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InvalidPresetsError(f"not YAML: {problem_of(error)}", "give a file with a list `presets`") from None
    entries = content.get("presets") if isinstance(content, dict) else None
    if not isinstance(entries, list):
        raise InvalidPresetsError("it has no list `presets`", "give the field `presets` of an Environment's spec")
    found = []
    for number, entry in enumerate(entries, start=1):
        name = entry.get("name") if isinstance(entry, dict) else None
        try:
            found.append(declared_preset(DeclaredPreset.model_validate(entry)))
        except ValidationError as error:
            raise InvalidPresetsError(
                f"preset {name or f'number {number}'}: {describe_errors(error, DeclaredPreset)}"
            ) from None
    return tuple(found)
