"""Data of a model that is not in the built-in catalog."""

from typing import Annotated

from pydantic import Field

from plimsoll.model.meta import Described, FreeForm


class ModelParameters(Described):
    """The data of a model: the size of its files, and its `config.json`."""

    size_gib: Annotated[float, Field(gt=0, le=1_000_000)] = Field(alias="sizeGiB")
    """Weights as files, GiB: `metadata.total_size` of the safetensors index."""
    config: FreeForm
    """Fields of the model's `config.json`; those on layers, heads and context are read."""


class DeclaredPreset(ModelParameters):
    """A preset that Workspaces may name."""

    name: str = Field(min_length=1, max_length=253)
    aliases: tuple[Annotated[str, Field(min_length=1, max_length=253)], ...] = ()
    repository: str = Field(min_length=1, max_length=253)
    """The model's name on Hugging Face, or a path in the server's image or volume."""
    spans_nodes: bool = True
    """Whether one replica may run on several nodes."""
    gated: bool = False
    """Whether the model is available only to users who accepted its license, so that Workspaces need a token."""
    options: dict[str, str] = Field(default_factory=dict)
    """Options of vLLM, without the leading dashes; an empty string for an option without a value."""
