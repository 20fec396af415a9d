"""Presets: models by name, with the figures that the estimator needs, and whether a replica may span nodes.

The registry is a data file (`presets.yaml`); each entry names its source.
"""

from collections.abc import Iterable
from functools import cache
from importlib import resources
from typing import Any, Final

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from plimsoll.errors import PlimsollError
from plimsoll.model.meta import describe_errors
from plimsoll.plan.estimating.estimator import ModelNeed
from plimsoll.text import nearest

DISK_HEADROOM_GIB: Final = 80
"""GiB of a node's disk for images and caches, besides the model's files."""


class InvalidPresetsError(PlimsollError):
    """An invalid registry; the message names entry and field."""


class ModelPreset(BaseModel):
    """A model, with its figures."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(min_length=1, max_length=253)
    aliases: tuple[str, ...] = ()
    """Other names of the same preset."""
    repository: str = Field(min_length=1)
    """The model's name on Hugging Face, which the inference server loads."""
    size_gib: float = Field(gt=0, le=1_000_000, allow_inf_nan=False)
    """Weights as files, GiB."""
    bytes_per_token: int = Field(gt=0)
    """KV cache of one token over all layers, bytes."""
    spans_nodes: bool
    """Whether one replica may run on several nodes (multi-node distributed inference)."""
    splits: bool = True
    """Whether one replica may be split over several GPUs (tensor parallelism)."""
    context_limit: int | None = Field(default=None, gt=0)
    """Maximum context length of the model, tokens."""
    source: str = Field(min_length=1)
    """Source of the figures."""

    @property
    def disk_gib(self) -> int:
        """Disk space that a node needs for the model, GiB."""
        return int(self.size_gib + DISK_HEADROOM_GIB)

    @property
    def need(self) -> ModelNeed:
        return ModelNeed(self.size_gib, self.bytes_per_token, self.spans_nodes, self.splits)


def preset(name: str) -> ModelPreset | None:
    """The preset of that name, alias or repository, case-insensitive; None if it is not known."""
    return _registry().get(name.strip().casefold())


def near(name: str) -> tuple[str, ...]:
    """At most three similar names, closest first."""
    return nearest(name, [name for each in presets() for name in (each.name, *each.aliases, each.repository)])


def presets() -> tuple[ModelPreset, ...]:
    """All presets, by name."""
    return tuple(sorted(set(_registry().values()), key=lambda each: each.name.casefold()))


def read_presets(entries: Iterable[Any]) -> dict[str, ModelPreset]:
    """Presets by each of their names in lower case. Raises InvalidPresetsError, which names entry and field."""
    registry: dict[str, ModelPreset] = {}
    for number, entry in enumerate(entries, start=1):
        try:
            read = ModelPreset.model_validate(entry)
        except ValidationError as error:
            name = entry.get("name") if isinstance(entry, dict) else None
            raise InvalidPresetsError(f"preset {name or f'number {number}'}: {describe_errors(error)}") from None
        for name in (read.name, *read.aliases):
            other = registry.setdefault(name.casefold(), read)
            if other is not read:
                raise InvalidPresetsError(f"preset {read.name}: {name} already names {other.name}")
    for each in tuple(registry.values()):
        registry.setdefault(each.repository.casefold(), each)
    return registry


@cache
def _registry() -> dict[str, ModelPreset]:
    text = resources.files("plimsoll.plan.estimating").joinpath("presets.yaml").read_text("utf-8")
    return read_presets(yaml.safe_load(text)["presets"])
