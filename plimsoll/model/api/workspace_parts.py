"""Parts of a Workspace's spec: preset, adapters, partition, tuning."""

from typing import Annotated, Final, Literal

from pydantic import Field, model_validator

from plimsoll.model.api.model_parameters import ModelParameters
from plimsoll.model.meta import Described, FreeForm

SOURCE_NEEDS_ONE: Final = "a source needs exactly one of image, volumeSource and urls"
ADAPTER_NEEDS_NAME: Final = "an adapter's source needs a name"

Name = Annotated[str, Field(min_length=1, max_length=253)]


class DataSource(Described):
    """Source of data."""

    name: str | None = Field(default=None, max_length=253, pattern=r"^[A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?$")
    """Name of the folder and, for an adapter, of the model in requests."""
    image: str | None = Field(default=None, min_length=1, max_length=1024)
    """An image with the data in its directory `/data`."""
    image_pull_secrets: tuple[Name, ...] = Field(default=(), max_length=16)
    volume_source: FreeForm | None = None
    """A volume with the data, as in a pod's `volumes` (`persistentVolumeClaim`, `nfs`, ...)."""
    urls: tuple[Annotated[str, Field(min_length=1, max_length=2048)], ...] = Field(default=(), max_length=64)

    @model_validator(mode="after")
    def _one_place(self) -> "DataSource":
        if sum((self.image is not None, self.volume_source is not None, bool(self.urls))) != 1:
            raise ValueError(SOURCE_NEEDS_ONE)
        return self


class Adapter(Described):
    """A LoRA adapter of the model."""

    source: DataSource
    strength: str | None = Field(default=None, max_length=16, pattern=r"^(0(\.[0-9]+)?|1(\.0+)?)$")
    """Multiplier of the weights, 0 to 1, as text."""

    @model_validator(mode="after")
    def _named(self) -> "Adapter":
        if self.source.name is None:
            raise ValueError(ADAPTER_NEEDS_NAME)
        return self


MIG_NEEDS_PROFILE: Final = "a partition of mode mig needs a profile, and no count"
ACCELERATOR_NEEDS_COUNT: Final = "a partition of mode accelerator needs a count, and no profile"


class Partition(Described):
    """A MIG slice (NVIDIA's Multi-Instance GPU), or some of a node's GPUs."""

    mode: Literal["mig", "accelerator"]
    profile: str | None = Field(default=None, max_length=32, pattern=r"^[1-7]g\.[1-9][0-9]{0,3}gb([.+-][a-z.]+)?$")
    """Mode mig: profile of the slice that a pod requests, such as 1g.10gb."""
    count: int | None = Field(default=None, ge=1, le=64)
    """Mode accelerator: number of GPUs that a pod requests."""

    @model_validator(mode="after")
    def _by_mode(self) -> "Partition":
        if self.mode == "mig" and (self.profile is None or self.count is not None):
            raise ValueError(MIG_NEEDS_PROFILE)
        if self.mode == "accelerator" and (self.count is None or self.profile is not None):
            raise ValueError(ACCELERATOR_NEEDS_COUNT)
        return self


class PresetOptions(Described):
    """How the model of a preset is fetched."""

    model_access_secret: str | None = Field(default=None, min_length=1, max_length=253)
    """Secret in the Workspace's namespace whose key HF_TOKEN grants access to the model on Hugging Face."""


class Preset(Described):
    """A model by its name."""

    name: str = Field(min_length=1, max_length=253)
    preset_options: PresetOptions | None = None
    parameters: ModelParameters | None = None
    """Data of the model, for a model that is not known by its name, or to correct the catalog."""


class Weights(Described):
    """Where the model's files are kept. Absent: on the node's disk, as long as the pod exists."""

    volume_source: FreeForm
    """A volume, as in a pod's `volumes` (`persistentVolumeClaim`, `hostPath`, `ephemeral`, ...). It is the server's
    Hugging Face cache (HF_HOME)."""
    read_only: bool = False
    """Whether the volume contains the files already and is only read, such as a claim that many nodes mount; nothing is
    then downloaded."""


class Rollout(Described):
    """How the pods of a Workspace are replaced when its template changes."""

    strategy: Literal["Recreate", "Surge"] = "Recreate"
    """`Recreate`: an old pod is deleted before its replacement starts, on the same nodes. `Surge`: the old pod serves
    until its replacement, on a temporary or free node, is Ready."""
    max_surge: int | None = Field(default=None, ge=1, le=100)
    """Temporary nodes at a time, for `Surge`; absent: 1."""
    deadline_seconds: int | None = Field(default=None, ge=1, le=604_800)
    """How long pods may make no progress until the temporary nodes go and the old pods stay; absent: the time that the
    server may take to start, and 10 minutes."""


class ServiceSettings(Described):
    """The Service of a preset's replicas."""

    enabled: bool = True
    name: str | None = Field(default=None, max_length=63, pattern=r"^[a-z]([-a-z0-9]*[a-z0-9])?$")
    """Absent: that of the Workspace."""
    port: int = Field(default=80, ge=1, le=65535)


OUTPUT_NEEDS_ONE: Final = "an output needs exactly one of image and volumeSource"


class DataDestination(Described):
    """Destination of the tuned weights."""

    image: str | None = Field(default=None, min_length=1, max_length=1024)
    image_push_secret: str | None = Field(default=None, min_length=1, max_length=253)
    volume_source: FreeForm | None = None

    @model_validator(mode="after")
    def _one_place(self) -> "DataDestination":
        if (self.image is None) == (self.volume_source is None):
            raise ValueError(OUTPUT_NEEDS_ONE)
        return self


class Tuning(Described):
    """A model that is tuned."""

    preset: Preset | None = None
    method: Literal["lora", "qlora"] | None = None
    config: str | None = Field(default=None, min_length=1, max_length=253)
    """ConfigMap with the arguments of the tuning."""
    input: DataSource
    output: DataDestination
