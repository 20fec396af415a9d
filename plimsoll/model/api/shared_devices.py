"""Nodes whose GPUs are announced as several devices each: by time-slicing, MPS or MIG."""

from typing import Annotated, Final, NamedTuple

from pydantic import AfterValidator, Field

from plimsoll.labels import is_label_key
from plimsoll.model.meta import Described


class DeviceSharing(NamedTuple):
    """The extended resource that pods request for parts of a GPU."""

    resource: str = ""
    """The extended resource; empty: the Environment's, for whole GPUs."""
    per_gpu: int = 1
    """Devices that one GPU is announced as."""


NOT_SHARED: Final = DeviceSharing()


def _extended(resource: str) -> str:
    if "/" not in resource or not is_label_key(resource):
        raise ValueError("is not an extended resource: write it with its domain, such as nvidia.com/gpu.shared")
    return resource


class SharedDevices(Described):
    """Devices that the nodes of a NodePool will have in place of whole GPUs, and for which capacity is requested.

    They must be what the device plugin of the nodes announces.
    """

    node_pool: str = Field(min_length=1, max_length=63)
    instance_types: tuple[Annotated[str, Field(min_length=1, max_length=63)], ...] = Field(default=(), max_length=100)
    """Absent: every type of the NodePool."""
    resource: Annotated[str, Field(max_length=317), AfterValidator(_extended)]
    """The extended resource that pods request, such as `nvidia.com/gpu.shared` or `nvidia.com/mig-1g.10gb`."""
    per_gpu: int = Field(ge=1, le=1024)
    """Devices that one GPU is announced as: replicas, or slices."""

    @property
    def sharing(self) -> DeviceSharing:
        return DeviceSharing(self.resource, self.per_gpu)
