"""Annotations, and a label, of pods that request parts of GPUs from TensorFusion."""

from typing import Final

_DOMAIN: Final = "tensor-fusion.ai"

SCHEDULER: Final = "tensor-fusion-scheduler"
COMPONENT: Final = f"{_DOMAIN}/component"
"""Label; see CLIENT."""
CLIENT: Final = "client"
"""Value of COMPONENT for pods whose GPUs are in other pods, the workers."""

VRAM_REQUEST: Final = f"{_DOMAIN}/vram-request"
"""Memory of each GPU, as a quantity such as `4Gi`."""
VRAM_LIMIT: Final = f"{_DOMAIN}/vram-limit"
TFLOPS_REQUEST: Final = f"{_DOMAIN}/tflops-request"
"""TFLOPS of each GPU in half precision (FP16, dense, tensor cores), as a quantity such as `10` or `5000m`."""
TFLOPS_LIMIT: Final = f"{_DOMAIN}/tflops-limit"
GPU_COUNT: Final = f"{_DOMAIN}/gpu-count"
GPU_MODEL: Final = f"{_DOMAIN}/gpu-model"
"""Model of the GPUs, such as `A100_SXM_80G`."""
VENDOR: Final = f"{_DOMAIN}/vendor"
"""Vendor of the GPUs, such as `NVIDIA`, whatever its case; without it: NVIDIA."""
ISOLATION: Final = f"{_DOMAIN}/isolation"
"""`shared`, `soft`, `hard`, or `partitioned`: the share is a partition of a GPU, such as a MIG slice."""
PARTITIONED: Final = "partitioned"
DEDICATED_GPU: Final = f"{_DOMAIN}/dedicated-gpu"
"""`true`: whole GPUs."""
GPU_IDS: Final = f"{_DOMAIN}/gpu-ids"
"""UUIDs of the GPUs that the scheduler chose, separated by commas."""

COMPUTE_REQUEST: Final = f"{_DOMAIN}/compute-percent-request"
COMPUTE_LIMIT: Final = f"{_DOMAIN}/compute-percent-limit"
PROFILE: Final = f"{_DOMAIN}/workload-profile"
PARTITION: Final = f"{_DOMAIN}/partition"
PARTITION_ID: Final = f"{_DOMAIN}/partition-id"

REFUSED: Final = (COMPUTE_REQUEST, COMPUTE_LIMIT, PROFILE, PARTITION, PARTITION_ID)
"""Requests in a form that Plimsoll does not plan: refused by name."""
REQUESTS: Final = (VRAM_REQUEST, VRAM_LIMIT, TFLOPS_REQUEST, TFLOPS_LIMIT, DEDICATED_GPU, *REFUSED)
"""A pod with one of these requests GPUs."""
ANNOTATIONS: Final = (*REQUESTS, GPU_COUNT, GPU_MODEL, GPU_IDS, VENDOR, ISOLATION)
