"""A preset: a model that is served by name, with its figures."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from plimsoll.presets.shape import ModelShape

DISK_HEADROOM_GIB: Final = 80
"""GiB of a node's disk for images and caches, besides the model's files."""


@dataclass(frozen=True)
class ModelPreset:
    name: str
    repository: str
    """The model's name on Hugging Face, which the inference server loads."""
    size_gib: float
    """Weights as files, GiB."""
    shape: ModelShape
    source: str
    """Source of the figures."""
    spans_nodes: bool
    """Whether one replica may run on several nodes (multi-node distributed inference)."""
    gated: bool
    """Whether Hugging Face gives the weights only to those who accepted the license: a token is needed."""
    options: Mapping[str, str] = field(hash=False)
    """Options of vLLM that the model needs, without the leading dashes."""
    aliases: tuple[str, ...] = ()
    """Other names of the same preset."""
    newer_than: str = ""
    """The newest release of vLLM, such as `0.17.1`, that is known not to have its architecture."""

    @property
    def disk_gib(self) -> int:
        """Disk space that a node needs for the model, GiB."""
        return int(self.size_gib + DISK_HEADROOM_GIB)

    @property
    def bytes_per_token(self) -> int:
        """KV cache of one token over all layers, bytes."""
        return self.shape.bytes_per_token

    @property
    def context_limit(self) -> int | None:
        """Maximum context length of the model, tokens."""
        return self.shape.context_limit
