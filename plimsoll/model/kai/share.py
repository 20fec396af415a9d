"""GPU share: the GPU request of a pod, a part of a GPU or whole GPUs."""

from typing import Final

from pydantic import Field, model_validator

from plimsoll.model import tensor_fusion
from plimsoll.model.meta import Observed
from plimsoll.packing import GPU_MILLI

GPU_FRACTION: Final = "gpu-fraction"
"""KAI's annotation: fraction of one GPU, such as `0.5`, above 0 and below 1."""
GPU_MEMORY_SHARE: Final = "gpu-memory"
"""KAI's annotation: MiB of one GPU."""
GPU_FRACTION_DEVICES: Final = "gpu-fraction-num-devices"
"""KAI's annotation: number of GPUs of one node on which the pod requests the same share."""
GPU_FRACTION_CONTAINER: Final = "gpu-fraction-container-name"
"""KAI's annotation: the container that gets the GPU; the first one without it."""
MPS: Final = "mps"
"""KAI's annotation: `true` requests MPS, which needs a share."""
CONTAINER_PREFIXES: Final = ("nvidia.com/container.", "kai.scheduler/container.")
"""Prefixes of the annotations for one container of KAI 0.18 (NvFractions)."""
SHARE_ANNOTATIONS: Final = (GPU_FRACTION, GPU_MEMORY_SHARE, GPU_FRACTION_DEVICES)
"""Annotations of a pod that requests a share of a GPU."""

_KNOWN: Final = frozenset({*SHARE_ANNOTATIONS, GPU_FRACTION_CONTAINER, MPS, *tensor_fusion.ANNOTATIONS})

MAX_DEVICES: Final = 1024
"""Maximum devices of a request; larger values are errors, and must not use memory."""


def is_share_annotation(key: str) -> bool:
    """Whether an annotation of a pod requests a share of a GPU, in any form that Plimsoll reads or refuses."""
    return key in _KNOWN or key.startswith(CONTAINER_PREFIXES)


class GPUShare(Observed):
    """On each of `devices` different GPUs of one node: a fraction of it, or MiB and TFLOPS of it."""

    milli: int | None = Field(default=None, ge=1, le=GPU_MILLI)
    """Thousandths of one GPU; 1000: whole GPUs, which are not shared."""
    memory_mib: int | None = Field(default=None, ge=1)
    """MiB of one GPU."""
    tflops_milli: int | None = Field(default=None, ge=1)
    """Thousandths of a TFLOPS (FP16, dense) of one GPU."""
    model: str = ""
    """Model that the GPUs must have, as TensorFusion writes it; empty: any."""
    devices: int = Field(default=1, ge=1, le=MAX_DEVICES)
    rounded: bool = False
    """Whether it is a request by annotation, which no autoscaler sees, for 1000 thousandths."""

    @model_validator(mode="after")
    def _one_amount(self) -> "GPUShare":
        if (self.milli is None) == (self.memory_mib is None and self.tflops_milli is None):
            raise ValueError("a share is either thousandths, or MiB and TFLOPS, of a GPU")
        return self

    @property
    def whole(self) -> bool:
        return self.milli == GPU_MILLI and not self.rounded

    def milli_of(self, gpu_memory_mib: int, gpu_tflops_milli: int = 0) -> int:
        """Thousandths of a GPU with that memory and that many thousandths of a TFLOPS, rounded up; above 1000 if it
        does not fit. What the share does not request is not read; an unknown figure (0) counts as unlimited."""
        if self.milli is not None:
            return self.milli
        requests = ((self.memory_mib, gpu_memory_mib), (self.tflops_milli, gpu_tflops_milli))
        return max([1, *(-(-amount * GPU_MILLI // total) for amount, total in requests if amount and total)])

    def __str__(self) -> str:
        if self.whole:
            return f"{self.devices} GPU{'s' if self.devices > 1 else ''}"
        parts = [f"{self.memory_mib} MiB"] if self.memory_mib else []
        parts += [f"{self.tflops_milli / 1000:g} TFLOPS"] if self.tflops_milli else []
        amount = " and ".join(parts) if self.milli is None else f"{self.milli / GPU_MILLI:g}"
        kind = f"{self.model} GPU" if self.model else "GPU"
        return f"{amount} of {f'each of {self.devices} {kind}s' if self.devices > 1 else f'a {kind}'}"
