"""Tuning: what KAITO's Workspaces say of fine-tuning. It is read, so that it is refused by name and never ignored."""

from typing import Any, Final, Literal

from pydantic import Field, model_validator

from plimsoll.model.api.adapter import DataSource
from plimsoll.model.api.preset import Preset
from plimsoll.model.meta import Declared

OUTPUT_NEEDS_ONE: Final = "an output needs exactly one of image and volumeSource"


class DataDestination(Declared):
    """Where the tuned weights go."""

    image: str | None = Field(default=None, min_length=1, max_length=1024)
    image_push_secret: str | None = Field(default=None, min_length=1, max_length=253)
    volume_source: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _one_place(self) -> "DataDestination":
        if (self.image is None) == (self.volume_source is None):
            raise ValueError(OUTPUT_NEEDS_ONE)
        return self


class Tuning(Declared):
    preset: Preset | None = None
    method: Literal["lora", "qlora"] | None = None
    config: str | None = Field(default=None, min_length=1, max_length=253)
    """ConfigMap with the tuning's arguments."""
    input: DataSource
    output: DataDestination
