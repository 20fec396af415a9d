"""Device: the GPUs of a node, or parts of them, as pods request them."""

from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from plimsoll.model.cluster.figures import MIB_PER_GIB
from plimsoll.model.dra import Claimable


class Division(StrEnum):
    """How one GPU of a node is divided. The closed list."""

    WHOLE = "whole"
    """Not at all: pods request whole GPUs, or share one by KAI's annotations."""
    TIME_SLICING = "time-slicing"
    """Into replicas that share all of its memory."""
    MPS = "mps"
    """Into replicas with an equal part of its memory each."""
    MIG = "mig"
    """Into slices of one profile."""


NVIDIA: Final = "nvidia"
AMD_GPU: Final = "amd.com/gpu"
VENDOR_RESOURCES: Final = MappingProxyType({AMD_GPU: "amd", "gpu.intel.com/i915": "intel", "gpu.intel.com/xe": "intel"})
"""Vendors by the extended resource of their whole GPUs: those for which capacity is planned, besides NVIDIA's."""


@dataclass(frozen=True, slots=True)
class Device:
    """Devices of a node that are alike."""

    product: str
    """As GPU Feature Discovery labels it, or will; empty where no source says it."""
    memory_mib: int | None
    """MiB of one GPU, or of one slice; None where no source says it, 0 where the node's own labels do not: schedulers
    place no shares in MiB there."""
    count: int
    """GPUs of the node, or slices of the profile."""
    division: Division = Division.WHOLE
    replicas: int = 1
    """Devices that each of `count` is announced as."""
    resource: str = ""
    """The extended resource that pods request; empty: that of the Environment, for whole GPUs. Where pods get it by
    claims: the driver. Never empty for devices of other vendors than NVIDIA."""
    profile: str = ""
    """MIG profile of the slices."""
    vendor: str = NVIDIA
    """`nvidia`, `amd`, `intel`, `aws` (Neuron) or `google` (TPU)."""
    claimable: Claimable | None = None
    """What claims select it by, where pods get it by claims; None: they request `resource`."""

    @property
    def announced(self) -> int:
        """Devices of the extended resource on the whole node."""
        return self.count * self.replicas

    @property
    def one(self) -> "Device":
        """The same for any number of them: two nodes with equal ones serve the same requests. Claims of all devices of
        a node depend on their number."""
        return self if self.claimable is not None else replace(self, count=1)

    @property
    def memory_gib(self) -> float:
        """GiB of one; 0 if it is not known."""
        return (self.memory_mib or 0) / MIB_PER_GIB

    @property
    def separate(self) -> bool:
        """Whether each device has its own part of a GPU's memory: a model is not split over such parts."""
        return self.division in (Division.MIG, Division.MPS)

    @property
    def shareable(self) -> bool:
        """Whether pods can share one of these by KAI's annotations: it is a whole GPU of NVIDIA that they do not
        claim."""
        return self.division is Division.WHOLE and self.claimable is None and self.vendor == NVIDIA

    def __str__(self) -> str:
        """Such as `8 x NVIDIA-L4`, `4 replicas of 1 x NVIDIA-A10G (time-slicing)`, `7 x 1g.10gb of NVIDIA-A100`,
        `8 x NVIDIA-L4 by claims (gpu.nvidia.com)`."""
        if self.profile:
            slices = f"{self.count} x {self.profile} of {self.product or 'an unknown GPU'}"
            return slices if self.replicas == 1 else f"{self.announced} replicas of {slices}"
        gpus = f"{self.count} x {self.product or 'an unknown GPU'}"
        if self.claimable is not None:
            return f"{gpus} by claims ({self.claimable.driver})"
        if self.division is Division.WHOLE and self.vendor != NVIDIA:
            return (
                f"{self.count} x {self.product} ({self.resource})" if self.product else f"{self.count} {self.resource}"
            )
        return gpus if self.shareable else f"{self.announced} replicas of {gpus} ({self.division})"
