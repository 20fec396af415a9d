"""Preset: a model by name, and what is needed to fetch it."""

from pydantic import Field

from plimsoll.model.meta import Declared


class PresetOptions(Declared):
    model_access_secret: str | None = Field(default=None, min_length=1, max_length=253)
    """Secret of the Workspace's namespace whose key HF_TOKEN may read the model on Hugging Face."""


class Preset(Declared):
    name: str = Field(min_length=1, max_length=253)
    preset_options: PresetOptions | None = None
