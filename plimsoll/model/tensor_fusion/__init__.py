"""TensorFusion's API: the annotations of pods that request parts of GPUs."""

from plimsoll.model.tensor_fusion.annotations import (
    ANNOTATIONS,
    COMPONENT,
    DEDICATED_GPU,
    GPU_COUNT,
    GPU_IDS,
    GPU_MODEL,
    REFUSED,
    REQUESTS,
    SCHEDULER,
    TFLOPS_LIMIT,
    TFLOPS_REQUEST,
    VRAM_LIMIT,
    VRAM_REQUEST,
)

__all__ = [
    "ANNOTATIONS",
    "COMPONENT",
    "DEDICATED_GPU",
    "GPU_COUNT",
    "GPU_IDS",
    "GPU_MODEL",
    "REFUSED",
    "REQUESTS",
    "SCHEDULER",
    "TFLOPS_LIMIT",
    "TFLOPS_REQUEST",
    "VRAM_LIMIT",
    "VRAM_REQUEST",
]
