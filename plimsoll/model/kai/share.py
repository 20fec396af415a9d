"""GPU share: what a pod asks of GPUs, a part of one or whole ones."""

from typing import Final

from pydantic import Field, model_validator

from plimsoll.model.meta import Observed
from plimsoll.packing import GPU_MILLI

GPU_FRACTION: Final = "gpu-fraction"
"""KAI's annotation: the part of one GPU, `0.5`, above 0 and below 1."""
GPU_MEMORY_SHARE: Final = "gpu-memory"
"""KAI's annotation: MiB of one GPU."""
GPU_FRACTION_DEVICES: Final = "gpu-fraction-num-devices"
"""KAI's annotation: on how many different GPUs of one node the pod asks the same part."""
SHARE_ANNOTATIONS: Final = (GPU_FRACTION, GPU_MEMORY_SHARE, GPU_FRACTION_DEVICES)
"""Of a pod that asks for a share of a GPU."""

MAX_DEVICES: Final = 1024
"""More GPUs than any node has: a request beyond is a mistake, and must not cost memory."""


class GPUShare(Observed):
    """Either thousandths or MiB, on each of `devices` different GPUs of one node."""

    milli: int | None = Field(default=None, ge=1, le=GPU_MILLI)
    """Thousandths of one GPU; 1000: whole GPUs, which nobody else shares."""
    memory_mib: int | None = Field(default=None, ge=1)
    """MiB of one GPU."""
    devices: int = Field(default=1, ge=1, le=MAX_DEVICES)
    rounded: bool = False
    """Whether it is a part, asked by annotation, that only rounds up to 1000 thousandths."""

    @model_validator(mode="after")
    def _one_amount(self) -> "GPUShare":
        if (self.milli is None) == (self.memory_mib is None):
            raise ValueError("a share is either thousandths or MiB of a GPU")
        return self

    @property
    def whole(self) -> bool:
        return self.milli == GPU_MILLI and not self.rounded

    def milli_of(self, gpu_memory_mib: int) -> int:
        """Thousandths that it takes of a GPU with that memory, rounded up; above 1000 where it does not fit."""
        if self.memory_mib is None:
            return self.milli or 0
        return -(-self.memory_mib * GPU_MILLI // gpu_memory_mib)

    def __str__(self) -> str:
        if self.whole:
            return f"{self.devices} GPU{'s' if self.devices > 1 else ''}"
        amount = f"{self.memory_mib} MiB" if self.milli is None else f"{self.milli / GPU_MILLI:g}"
        return f"{amount} of {f'each of {self.devices} GPUs' if self.devices > 1 else 'a GPU'}"
