"""GPUs of a node, from the labels of NVIDIA's GPU Feature Discovery (GFD).

Label names and units: documentation of gpu-feature-discovery in NVIDIA's k8s-device-plugin. Memory is whole MiB of one
GPU; old releases wrote bytes, and labels that people write may have a unit.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from plimsoll.labels import GPU_COUNT, GPU_MEMORY, GPU_PRODUCT, MIG_CONFIG
from plimsoll.model.kai import MAX_DEVICES

GPU_REPLICAS: Final = "nvidia.com/gpu.replicas"
GPU_SHARING: Final = "nvidia.com/gpu.sharing-strategy"
MIG_STRATEGY: Final = "nvidia.com/mig.strategy"
MIG_CONFIG_STATE: Final = "nvidia.com/mig.config.state"
MPS: Final = "mps"
SHARED_PRODUCT: Final = "-SHARED"
"""Suffix that GFD adds to the product name if GPUs are shared."""

MIG_PRODUCT: Final = "-MIG-"
"""Between the product and the profile of its slices, with `mig.strategy` `single`."""
DISCOVERED: Final = ("nvidia.com/", "feature.node.kubernetes.io/")
"""Prefixes of labels that are written by what runs on a node: they say what it is."""

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

_INTEGER = re.compile(r"[+-]?[0-9]+")
_MEMORY = re.compile(r"([+-]?[0-9]+)(?:([KMGT])iB?)?")
_UNITS: Final = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


@dataclass(frozen=True, slots=True)
class GpuLabels:
    """The values of one node's labels on GPUs, as far as they are valid."""

    product: str
    """Empty where it is missing."""
    count: int
    """GPUs (or MIG slices, where `mig.strategy` is `single`); 0 where it is missing or invalid."""
    memory_mib: int | None
    """MiB of one GPU; None where it is missing or invalid."""
    replicas: int
    """Devices that each GPU is announced as, with time-slicing or MPS; 0 where it is invalid."""
    sharing_strategy: str
    in_bytes: bool
    """The memory label was in bytes and has been converted."""
    invalid: "InvalidGpuLabel | None"
    """The first label that is missing or invalid."""

    @property
    def shared(self) -> bool:
        """Whether one GPU is offered as several devices, by time-slicing or MPS."""
        return self.replicas > 1 or self.product.endswith(SHARED_PRODUCT)


def undivided(product: str) -> str:
    """The product without what discovery appends where GPUs are shared or partitioned."""
    return product.removesuffix(SHARED_PRODUCT).partition(MIG_PRODUCT)[0]


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


def parse_gpu_labels(labels: Mapping[str, str]) -> GpuLabels:
    """The GPUs that the labels of a node describe."""
    product = labels.get(GPU_PRODUCT, "")
    problems = [] if product else [InvalidGpuLabel(GPU_PRODUCT, labels.get(GPU_PRODUCT), "a product name is needed")]
    count = _positive(labels, GPU_COUNT, "the number of GPUs, a whole number of at least 1, is needed")
    memory = _memory(labels)
    replicas = _replicas(labels)
    problems += [problem for problem in (count, memory, replicas) if isinstance(problem, InvalidGpuLabel)]
    return GpuLabels(
        product=product,
        count=0 if isinstance(count, InvalidGpuLabel) else count,
        memory_mib=None if isinstance(memory, InvalidGpuLabel) else memory[0],
        replicas=0 if isinstance(replicas, InvalidGpuLabel) else replicas,
        sharing_strategy=labels.get(GPU_SHARING, ""),
        in_bytes=not isinstance(memory, InvalidGpuLabel) and memory[1],
        invalid=next(iter(problems), None),
    )


def _positive(labels: Mapping[str, str], label: str, problem: str) -> int | InvalidGpuLabel:
    text = labels.get(label)
    if text is None or not _INTEGER.fullmatch(text) or int(text) < 1:
        return InvalidGpuLabel(label, text, problem)
    if int(text) > MAX_DEVICES:
        return InvalidGpuLabel(label, text, f"no node has more than {MAX_DEVICES}")
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
    if int(text) > MAX_DEVICES:
        return InvalidGpuLabel(GPU_REPLICAS, text, f"no GPU is shared by more than {MAX_DEVICES}")
    return max(int(text), 1)
