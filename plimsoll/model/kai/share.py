"""GPU share: the GPU request of a pod, a part of a GPU or whole GPUs."""

from dataclasses import dataclass
from typing import Final

from plimsoll.model import tensor_fusion
from plimsoll.model.dra import ClaimRequest
from plimsoll.packing import GPU_MILLI, Milli, exact_milli

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
_STEP_MIB: Final = 100
_BYTES_FROM: Final = 2**20


def is_share_annotation(key: str) -> bool:
    """Whether an annotation of a pod requests a share of a GPU, in any form that Plimsoll reads or refuses."""
    return key in _KNOWN or key.startswith(CONTAINER_PREFIXES)


def shareable_memory_mib(memory: int) -> int:
    """MiB of a GPU that KAI divides into shares: the memory of the node's label, rounded down to whole hundreds.

    KAI reads a label of 2^20 or more as bytes. So two pods with `gpu-memory: 40960` do not fit a GPU of 81920 MiB.
    """
    return _label_mib(memory) // _STEP_MIB * _STEP_MIB


def _label_mib(memory: int) -> int:
    return memory // 2**20 if memory >= _BYTES_FROM else memory


@dataclass(frozen=True, slots=True)
class GPUShare:
    """On each of `devices` different GPUs of one node: a fraction of it, or MiB and TFLOPS of it."""

    milli: Milli | None = None
    """Thousandths of one GPU; 1000: whole GPUs, which are not shared."""
    memory_mib: int | None = None
    """MiB of one GPU."""
    by_tensor_fusion: bool = False
    """Whether TensorFusion's scheduler, which divides all MiB of a GPU, places the pod, not KAI's, which divides whole
    hundreds."""
    tflops_milli: int | None = None
    """Thousandths of a TFLOPS (FP16, dense) of one GPU."""
    model: str = ""
    """Model that the GPUs must have, as TensorFusion writes it; empty: any."""
    devices: int = 1
    resource: str = ""
    """Extended resource of devices that each are a part of a GPU (time-slicing, MPS, MIG), or a whole GPU of another
    vendor than NVIDIA; then `devices` counts these. Nothing else is set, but `milli` of whole GPUs for which nothing is
    planned. Empty: GPUs of the Environment's resource."""
    claims: tuple[ClaimRequest, ...] = ()
    """Claims of whole GPUs, which say themselves how many; `devices` is that of GPUs that meet their first
    alternatives."""
    by_annotation: bool = False
    """Whether it is a request for whole GPUs by annotation, which no autoscaler sees."""

    @property
    def whole(self) -> bool:
        """Whether an autoscaler sees the request by itself."""
        # Whole thousandths are an int, and a fraction takes long to compare.
        return isinstance(self.milli, int) and self.milli == GPU_MILLI and not self.by_annotation and not self.claims

    def divided_mib(self, gpu_memory_mib: int) -> int:
        """MiB that the pod's scheduler divides into shares, of a GPU with that memory by its label."""
        return _label_mib(gpu_memory_mib) if self.by_tensor_fusion else shareable_memory_mib(gpu_memory_mib)

    def milli_of(self, gpu_memory_mib: int, gpu_tflops_milli: int = 0) -> Milli:
        """Thousandths of a GPU with that memory by its label and that many thousandths of a TFLOPS; above 1000 if it
        does not fit. What the share does not request is not read; an unknown figure (0) counts as unlimited."""
        if self.milli is not None:
            return self.milli
        requests = ((self.memory_mib, self.divided_mib(gpu_memory_mib)), (self.tflops_milli, gpu_tflops_milli))
        return max((exact_milli(amount, total) for amount, total in requests if amount and total), default=1)

    def __str__(self) -> str:
        if self.claims:
            return f"{' and '.join(map(str, self.claims))} by claim{'s' if len(self.claims) > 1 else ''}"
        if self.resource:
            return f"{self.devices} {self.resource}"
        if self.whole:
            return f"{self.devices} GPU{'s' if self.devices > 1 else ''}"
        parts = [f"{self.memory_mib} MiB"] if self.memory_mib else []
        parts += [f"{self.tflops_milli / 1000:g} TFLOPS"] if self.tflops_milli else []
        amount = " and ".join(parts) if self.milli is None else f"{float(self.milli) / GPU_MILLI:g}"
        kind = f"{self.model} GPU" if self.model else "GPU"
        return f"{amount} of {f'each of {self.devices} {kind}s' if self.devices > 1 else f'a {kind}'}"
