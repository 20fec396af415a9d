"""The models that are known by name: KAITO's catalog, and those that an Environment or a file declares.

The built-in catalog is data: `catalog.csv` has the figures of KAITO's `model_catalog.yaml`, one model a line,
`weights.csv` what is published of the size of each one's weights, and `names.yaml` the short names.
`plimsoll presets --from` writes the first from KAITO's file.
"""

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Any, Final

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from plimsoll.errors import PlimsollError
from plimsoll.model.meta import describe_errors
from plimsoll.presets.model_preset import ModelPreset
from plimsoll.presets.shape import ModelShape
from plimsoll.text import nearest

GATED_LICENSES: Final = ("llama", "gemma")
"""Beginnings of the licenses that Hugging Face asks to accept before it gives the weights."""
MISTRAL: Final = {"tokenizer-mode": "mistral", "config-format": "mistral", "load-format": "mistral"}
SOURCE: Final = "KAITO model_catalog.yaml"
_ROUNDING: Final = 0.05
"""By how much a published size may differ from KAITO's, which is used then: published ones are rounded, and count small
files. Where they differ by more, KAITO counted other files with the weights."""


class InvalidPresetsError(PlimsollError):
    """An invalid catalog; the message names entry and field."""


class CatalogModel(BaseModel):
    """One line of the catalog."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    repository: str = Field(min_length=1, max_length=253)
    size_gib: float = Field(gt=0, le=1_000_000, allow_inf_nan=False)
    context_limit: int | None = Field(default=None, gt=0)
    hidden_size: int | None = Field(default=None, gt=0)
    layers: int = Field(gt=0)
    heads: int = Field(gt=0)
    kv_heads: int = Field(gt=0)
    head_dim: int | None = Field(default=None, gt=0)
    """Absent: the hidden size by the heads."""
    kv_lora_rank: int | None = Field(default=None, gt=0)
    qk_rope_head_dim: int | None = Field(default=None, gt=0)
    format: str = ""
    """`mistral` where the files are Mistral's own, not Hugging Face's."""
    quantization: str = ""
    license: str = ""

    @property
    def shape(self) -> ModelShape:
        latent = None if self.kv_lora_rank is None else self.kv_lora_rank + (self.qk_rope_head_dim or 0)
        head_dim = self.head_dim or (self.hidden_size or 0) // self.heads
        return ModelShape(self.layers, self.heads, self.kv_heads, head_dim, latent, self.context_limit)


class ModelCatalog:
    """Presets by name, alias and repository, case-insensitive; immutable."""

    def __init__(
        self,
        presets: Iterable[ModelPreset],
        refused: Mapping[str, str] | None = None,
        others: "ModelCatalog | None" = None,
    ) -> None:
        """Names and aliases come before repositories, as two presets may serve one repository, and repositories before
        their last parts. Of presets with the same name, the last counts.

        `refused` says, by name, why a model cannot be had, whatever else has that name. `others` are presets whose
        names and repositories these take, so that an Environment can correct the built-in catalog.
        """
        presets = tuple(presets)
        parts = {each.repository.rpartition("/")[2].casefold(): each for each in reversed(presets)}
        repositories = {each.repository.casefold(): each for each in presets}
        names = {name.casefold(): each for each in presets for name in (each.name, *each.aliases)}
        inherited = {} if others is None else {n: why for n, why in others._refused.items() if n not in names}
        self._refused: dict[str, str] = inherited | {name.casefold(): why for name, why in (refused or {}).items()}
        self._by_name: dict[str, ModelPreset] = {
            **parts,
            **(others._by_name if others is not None else {}),
            **repositories,
            **names,
        }

    @classmethod
    def builtin(cls) -> "ModelCatalog":
        return _builtin()

    @property
    def presets(self) -> tuple[ModelPreset, ...]:
        """All presets, by name."""
        found = {id(each): each for each in self._by_name.values()}
        return tuple(sorted(found.values(), key=lambda each: each.name.casefold()))

    def find(self, name: str) -> ModelPreset | None:
        """The preset of that name, alias or repository; None if it is not known, or cannot be had."""
        wanted = name.strip().casefold()
        return None if wanted in self._refused else self._by_name.get(wanted)

    def why_not(self, name: str) -> str:
        """Why the model of that name is not available, as the end of a sentence; empty if there is no known reason."""
        return self._refused.get(name.strip().casefold(), "")

    def near(self, name: str) -> tuple[str, ...]:
        """At most three similar names, closest first."""
        return nearest(name, [name for each in self.presets for name in (each.name, *each.aliases, each.repository)])

    def with_presets(self, presets: Iterable[ModelPreset], refused: Mapping[str, str] | None = None) -> "ModelCatalog":
        """A catalog with further presets, which take precedence, and with reasons why others cannot be had."""
        added = tuple(presets)
        return ModelCatalog(added, refused, self) if added or refused else self


def read_catalog(text: str) -> tuple[CatalogModel, ...]:
    """The lines of a catalog in CSV. Raises InvalidPresetsError, which names line and field."""
    found = []
    for number, row in enumerate(csv.DictReader(io.StringIO(text)), start=2):
        given = {key: value for key, value in row.items() if key is not None and value}
        try:
            found.append(CatalogModel.model_validate(given))
        except ValidationError as error:
            name = given.get("repository", "")
            raise InvalidPresetsError(f"line {number} {name}: {describe_errors(error)}".replace("  ", " ")) from None
    return tuple(found)


def _options(model: CatalogModel, entry: Mapping[str, Any]) -> dict[str, str]:
    template = {"chat-template": entry["chat_template"]} if "chat_template" in entry else {}
    return {**(MISTRAL if model.format == "mistral" else {}), **template, **entry.get("options", {})}


@cache
def _builtin() -> ModelCatalog:
    folder = resources.files("plimsoll.presets")
    published = {
        row["repository"]: int(row["bytes"]) / 1024**3
        for row in csv.DictReader(io.StringIO(folder.joinpath("weights.csv").read_text("utf-8")))
        if row["bytes"]
    }
    listed = read_catalog(folder.joinpath("catalog.csv").read_text("utf-8"))
    sizes = {
        each.repository: {"size_gib": round(size, 2)}
        for each in listed
        if (size := published.get(each.repository, 0)) and abs(each.size_gib / size - 1) > _ROUNDING
    }
    models = {each.repository: each.model_copy(update=sizes.get(each.repository)) for each in listed}
    names = yaml.safe_load(folder.joinpath("names.yaml").read_text("utf-8"))
    releases = {model: release for release, lacking in names["newer_than"].items() for model in lacking}
    found = [
        _named(model, names["models"].get(name) or {}, f"{SOURCE}, size published" if name in sizes else SOURCE)
        for name, model in models.items()
    ]
    for entry in names["presets"]:
        known = models.get(entry["repository"])
        fields = {key: value for key, value in entry.items() if key in CatalogModel.model_fields}
        model = known or CatalogModel.model_validate(fields)
        found.append(_named(model, entry, str(entry.get("source") or "KAITO builtin_models.yaml")))
    newer = [replace(each, newer_than=releases.get(each.repository, "")) for each in found]
    return ModelCatalog(newer, names["refused"])


def _named(model: CatalogModel, entry: Mapping[str, Any], source: str) -> ModelPreset:
    return ModelPreset(
        name=entry.get("name") or model.repository.rpartition("/")[2].casefold(),
        repository=model.repository,
        size_gib=model.size_gib,
        shape=replace(
            model.shape,
            divisors=(*model.shape.divisors, *entry.get("divisors", ())),
            experts=entry.get("experts", False),
        ),
        source=f"{source}; {model.shape}",
        aliases=tuple(entry.get("aliases", ())),
        spans_nodes=entry.get("spans_nodes", True),
        gated=model.license.startswith(GATED_LICENSES),
        options=_options(model, entry),
    )
