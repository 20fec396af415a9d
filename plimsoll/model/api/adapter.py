"""Adapters: LoRA weights that are served beside a preset's own (KAITO's `inference.adapters`)."""

from typing import Annotated, Any, Final

from pydantic import Field, model_validator

from plimsoll.model.meta import Declared

SOURCE_NEEDS_ONE: Final = "a source needs exactly one of image, volumeSource and urls"
ADAPTER_NEEDS_NAME: Final = "an adapter's source needs a name"

Name = Annotated[str, Field(min_length=1, max_length=253)]


class DataSource(Declared):
    """Where data comes from."""

    name: str | None = Field(default=None, max_length=63, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    """A DNS label: it names a container and a folder."""
    image: str | None = Field(default=None, min_length=1, max_length=1024)
    """An image with the data in its folder `/data`."""
    image_pull_secrets: tuple[Name, ...] = Field(default=(), max_length=16)
    volume_source: dict[str, Any] | None = None
    """A volume that holds the data, as in a pod's `volumes` (`persistentVolumeClaim`, `nfs`, ...)."""
    urls: tuple[Annotated[str, Field(min_length=1, max_length=2048)], ...] = Field(default=(), max_length=64)

    @model_validator(mode="after")
    def _one_place(self) -> "DataSource":
        if sum((self.image is not None, self.volume_source is not None, bool(self.urls))) != 1:
            raise ValueError(SOURCE_NEEDS_ONE)
        return self


class Adapter(Declared):
    source: DataSource
    strength: str | None = Field(default=None, max_length=16, pattern=r"^(0(\.[0-9]+)?|1(\.0+)?)$")
    """Multiplier of the weights, 0 to 1, as text."""

    @model_validator(mode="after")
    def _named(self) -> "Adapter":
        if self.source.name is None:
            raise ValueError(ADAPTER_NEEDS_NAME)
        return self
