"""GPU share: the GPU request of a pod, a fraction of a GPU or whole GPUs."""

from typing import Final

from pydantic import Field, model_validator

from plimsoll.model.meta import Observed
from plimsoll.packing import GPU_MILLI

GPU_FRACTION: Final = "gpu-fraction"
"""KAI's annotation: fraction of one GPU, such as `0.5`, above 0 and below 1."""
GPU_MEMORY_SHARE: Final = "gpu-memory"
"""KAI's annotation: MiB of one GPU."""
GPU_FRACTION_DEVICES: Final = "gpu-fraction-num-devices"
"""KAI's annotation: number of GPUs of one node on which the pod requests the same share."""
SHARE_ANNOTATIONS: Final = (GPU_FRACTION, GPU_MEMORY_SHARE, GPU_FRACTION_DEVICES)
"""Annotations of a pod that requests a share of a GPU."""

MAX_DEVICES: Final = 1024
"""Maximum devices of a request; larger values are errors, and must not use memory."""


class GPUShare(Observed):
    """Either thousandths or MiB, on each of `devices` different GPUs of one node."""

    milli: int | None = Field(default=None, ge=1, le=GPU_MILLI)
    """Thousandths of one GPU; 1000: whole GPUs, which are not shared."""
    memory_mib: int | None = Field(default=None, ge=1)
    """MiB of one GPU."""
    devices: int = Field(default=1, ge=1, le=MAX_DEVICES)
    rounded: bool = False
    """Whether it is a fraction by annotation that only rounds up to 1000 thousandths."""

    @model_validator(mode="after")
    def _one_amount(self) -> "GPUShare":
        if (self.milli is None) == (self.memory_mib is None):
            raise ValueError("a share is either thousandths or MiB of a GPU")
        return self

    @property
    def whole(self) -> bool:
        return self.milli == GPU_MILLI and not self.rounded

    def milli_of(self, gpu_memory_mib: int) -> int:
        """Thousandths of a GPU with that memory, rounded up; above 1000 if it does not fit."""
        if self.memory_mib is None:
            return self.milli or 0
        return -(-self.memory_mib * GPU_MILLI // gpu_memory_mib)

    def __str__(self) -> str:
        if self.whole:
            return f"{self.devices} GPU{'s' if self.devices > 1 else ''}"
        amount = f"{self.memory_mib} MiB" if self.milli is None else f"{self.milli / GPU_MILLI:g}"
        return f"{amount} of {f'each of {self.devices} GPUs' if self.devices > 1 else 'a GPU'}"
