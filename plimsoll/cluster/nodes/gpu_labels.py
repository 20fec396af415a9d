"""GPUs of a node, from the labels of NVIDIA's GPU Feature Discovery (GFD).

Label names and units: documentation of gpu-feature-discovery in NVIDIA's k8s-device-plugin. Memory is whole MiB of one
GPU; old releases wrote bytes, and labels that people write may have a unit.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from plimsoll.labels import GPU_COUNT, GPU_MEMORY, GPU_PRODUCT

GPU_REPLICAS: Final = "nvidia.com/gpu.replicas"
GPU_SHARING: Final = "nvidia.com/gpu.sharing-strategy"
MIG_STRATEGY: Final = "nvidia.com/mig.strategy"
MIG_CONFIG: Final = "nvidia.com/mig.config"
MIG_CONFIG_STATE: Final = "nvidia.com/mig.config.state"
MPS: Final = "mps"
SHARED_PRODUCT: Final = "-SHARED"
"""Suffix that GFD adds to the product name if GPUs are shared."""

READ: Final = (
    GPU_PRODUCT,
    GPU_COUNT,
    GPU_MEMORY,
    GPU_REPLICAS,
    GPU_SHARING,
    MIG_STRATEGY,
    MIG_CONFIG,
    MIG_CONFIG_STATE,
)
"""Every label with a fixed name that describes a node's GPUs."""

MIB: Final = 2**20
MEMORY_TO: Final = 2**24
"""Maximum MiB of one GPU (16 TiB); larger values are not MiB."""
BYTES_FROM: Final = 2**30
"""A memory label of at least this value is in bytes, as old releases of GFD wrote it."""
COUNT_TO: Final = 1024
"""Maximum devices of a node; larger values are errors."""

_INTEGER = re.compile(r"[+-]?[0-9]+")
_MEMORY = re.compile(r"([+-]?[0-9]+)(?:([KMGT])iB?)?")
_UNITS: Final = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


@dataclass(frozen=True, slots=True)
class GpuLabels:
    """The GPUs that the labels of one node describe."""

    product: str
    count: int
    """Physical GPUs (or MIG devices, where `mig.strategy` is `single`)."""
    memory_mib: int
    """MiB of one GPU."""
    replicas: int = 1
    """Devices per GPU, with time-slicing or MPS."""
    sharing_strategy: str = ""
    in_bytes: bool = False
    """The memory label was in bytes and has been converted."""

    @property
    def devices(self) -> int:
        """Devices of the extended resource that the whole node offers."""
        return self.count * self.replicas

    @property
    def shared(self) -> bool:
        """Whether one GPU is offered as several devices, by time-slicing or MPS."""
        return self.replicas > 1 or self.product.endswith(SHARED_PRODUCT)

    def __str__(self) -> str:
        return f"{GPU_PRODUCT}={self.product}, {GPU_COUNT}={self.count}, {GPU_MEMORY}={self.memory_mib} MiB"


@dataclass(frozen=True, slots=True)
class InvalidGpuLabel:
    """The first label that is missing or invalid; `value` is None if it is missing."""

    label: str
    value: str | None
    problem: str

    def __str__(self) -> str:
        if self.value is None:
            return f"label {self.label} is missing"
        return f"label {self.label} is {self.value!r}: {self.problem}"


def parse_gpu_labels(labels: Mapping[str, str]) -> GpuLabels | InvalidGpuLabel:
    """The GPUs that the labels of a node describe, or the label that is missing or invalid."""
    return _parsed(tuple([labels.get(label) for label in READ]))


@lru_cache(maxsize=4096)
def _parsed(values: tuple[str | None, ...]) -> GpuLabels | InvalidGpuLabel:
    """Cached, because most nodes of a cluster have the GPUs of others."""
    labels = {label: value for label, value in zip(READ, values, strict=True) if value is not None}
    product = labels.get(GPU_PRODUCT)
    if not product:
        return InvalidGpuLabel(GPU_PRODUCT, product, "a product name is needed")
    count = _positive(labels, GPU_COUNT, "the number of GPUs, a whole number of at least 1, is needed")
    if isinstance(count, InvalidGpuLabel):
        return count
    memory = _memory(labels)
    if isinstance(memory, InvalidGpuLabel):
        return memory
    memory_mib, in_bytes = memory
    replicas = _replicas(labels)
    if isinstance(replicas, InvalidGpuLabel):
        return replicas
    return GpuLabels(
        product=product,
        count=count,
        memory_mib=memory_mib,
        replicas=replicas,
        sharing_strategy=labels.get(GPU_SHARING, ""),
        in_bytes=in_bytes,
    )


def _positive(labels: Mapping[str, str], label: str, problem: str) -> int | InvalidGpuLabel:
    text = labels.get(label)
    if text is None or not _INTEGER.fullmatch(text) or int(text) < 1:
        return InvalidGpuLabel(label, text, problem)
    if int(text) > COUNT_TO:
        return InvalidGpuLabel(label, text, f"no node has more than {COUNT_TO}")
    return int(text)


def _memory(labels: Mapping[str, str]) -> tuple[int, bool] | InvalidGpuLabel:
    """MiB of one GPU, rounded down as GFD does, and whether the label was in bytes."""
    text = labels.get(GPU_MEMORY)
    match = None if text is None else _MEMORY.fullmatch(text)
    if match is None or int(match[1]) < 1:
        return InvalidGpuLabel(GPU_MEMORY, text, "MiB of one GPU, a whole number of at least 1, is needed")
    number, unit = int(match[1]), match[2]
    in_bytes = unit is None and number >= BYTES_FROM
    mib = number // MIB if in_bytes else number if unit is None else number * _UNITS[unit] // MIB
    if not 1 <= mib <= MEMORY_TO:
        why = "less than a MiB" if mib < 1 else "too large for MiB, and no bytes of a GPU"
        return InvalidGpuLabel(GPU_MEMORY, text, why)
    return mib, in_bytes


def _replicas(labels: Mapping[str, str]) -> int | InvalidGpuLabel:
    """GFD writes 0 if sharing is off for the resource; then each GPU is one device, as with 1."""
    text = labels.get(GPU_REPLICAS, "1")
    if not _INTEGER.fullmatch(text) or int(text) < 0:
        return InvalidGpuLabel(GPU_REPLICAS, text, "devices for each GPU, a whole number of at least 0, are needed")
    if int(text) > COUNT_TO:
        return InvalidGpuLabel(GPU_REPLICAS, text, f"no GPU is shared by more than {COUNT_TO}")
    return max(int(text), 1)
