"""Partition: the part of a node's GPUs that each pod of a Workspace asks for (KAITO's `resource.partition`)."""

from typing import Final, Literal

from pydantic import Field, model_validator

from plimsoll.model.meta import Declared

MIG_NEEDS_PROFILE: Final = "a partition of mode mig needs a profile, and takes no count"
ACCELERATOR_NEEDS_COUNT: Final = "a partition of mode accelerator needs a count, and takes no profile"


class Partition(Declared):
    """A slice of a GPU by NVIDIA's Multi-Instance GPU (MIG), or some of a node's GPUs."""

    mode: Literal["mig", "accelerator"]
    profile: str | None = Field(default=None, max_length=32, pattern=r"^[1-7]g\.[1-9][0-9]{0,3}gb([.+][a-z.]+)?$")
    """Mode mig: the slice that a pod asks for, such as 1g.10gb."""
    count: int | None = Field(default=None, ge=1, le=64)
    """Mode accelerator: GPUs that a pod asks for."""

    @model_validator(mode="after")
    def _by_mode(self) -> "Partition":
        if self.mode == "mig" and (self.profile is None or self.count is not None):
            raise ValueError(MIG_NEEDS_PROFILE)
        if self.mode == "accelerator" and (self.count is None or self.profile is not None):
            raise ValueError(ACCELERATOR_NEEDS_COUNT)
        return self
