"""What a pod's request for GPUs counts in a queue: KAI counts hundredths of a GPU.

A placed fraction counts rounded to the nearest hundredth (`getNonMigGpus`), and memory rounded up to hundredths of what
the GPU shares. Before it is placed, a fraction is compared with limits and quotas rounded up as well
(`GetRequiredInitQuota` in `pkg/scheduler/api/node_info/node_info.go` of KAI 0.12 and later). Both are computed with
floats as there: 0.07 and 0.55 are compared as 0.08 and 0.56, because 0.07 * 100 is above 7. KAI first cuts a fraction
to whole MiB, which only fractions less than a MiB above a hundredth could tell, and of several shares in MiB it
compares one with limits; here, all.
"""

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Final, NamedTuple

from plimsoll.cluster.pods import ASSUMED_MILLI, PodRequest, read_request, tflops_milli
from plimsoll.cluster.profiles import discovery_of, mig_gpus
from plimsoll.cluster.queues.amount import MILLI
from plimsoll.labels import DEVICE_CLASS_PREFIX, GPU_RESOURCE, NODEPOOL
from plimsoll.model.api import NOT_SHARED, EnvironmentSpec
from plimsoll.model.cluster import AMD_GPU, VENDOR_RESOURCES, Node, Pod
from plimsoll.model.dra import GPU_DRIVERS
from plimsoll.model.kai import GPUShare
from plimsoll.packing import GPU_MILLI, Milli, exact_milli

_HUNDREDTH: Final = MILLI // 100
_KNOWN: Final = 4096


class GpuFigures(NamedTuple):
    """Of one GPU of a node; None where they are not known."""

    memory_mib: int | None = None
    tflops_milli: int | None = None

    @classmethod
    def of(cls, node: Node, tflops: Mapping[str, float]) -> "GpuFigures":
        discovery = discovery_of(node)
        gpus = discovery.gpus or discovery.claimed
        return cls() if gpus is None else cls(gpus.memory_mib, tflops_milli(gpus.product, tflops))


class Counted(NamedTuple):
    """Thousandths of GPUs."""

    milli: Milli
    """Of the pod once it is placed."""
    rounding: Milli = 0
    """What is compared with limits and quotas above that before it is placed."""


NO_GPUS: Final = Counted(0)


def counted(share: GPUShare, milli: Milli) -> Counted:
    """What a share counts that takes so many thousandths of each of its devices."""
    if share.by_tensor_fusion:
        return Counted(milli * share.devices)
    up = _rounded_up(milli)
    if share.milli is None:
        return Counted(up * share.devices)
    placed = _rounded(milli) * share.devices
    return Counted(placed, max(0, up - placed))


def counted_on(share: GPUShare, gpu: GpuFigures) -> Counted:
    """What a share counts on that GPU."""
    return counted(share, _milli_on(share, gpu))


def _milli_on(share: GPUShare, gpu: GpuFigures) -> Milli:
    """Thousandths of each of its GPUs that a share takes."""
    memory = share.divided_mib(gpu.memory_mib or 0)
    known = (memory or share.memory_mib is None) and (gpu.tflops_milli or share.tflops_milli is None)
    return share.milli_of(memory, gpu.tflops_milli or 0) if known else ASSUMED_MILLI


@lru_cache(_KNOWN)
def _rounded_up(milli: Milli) -> int:
    return math.ceil(_hundredths(milli)) * _HUNDREDTH


@lru_cache(_KNOWN)
def _rounded(milli: Milli) -> int:
    """Halves are rounded up, as Go does."""
    hundredths = _hundredths(milli)
    whole = int(hundredths)
    return (whole + (hundredths - whole >= 0.5)) * _HUNDREDTH


def _hundredths(milli: Milli) -> float:
    return float(Fraction(milli) / MILLI) * 100


def mig_milli(request: PodRequest) -> int:
    """What KAI counts for the MIG devices that a pod requests, in thousandths of a GPU. A number that cannot be read
    counts as 0."""
    return mig_gpus(dict(request.devices)) * GPU_MILLI


def seen_by_kai(resource: str) -> bool:
    """Whether KAI counts whole devices of the resource as GPUs, as it does AMD's besides NVIDIA's; empty: GPUs of the
    Environment's resource."""
    return resource in ("", AMD_GPU)


def gpus_held(pod: Pod, node: Node | None, spec: EnvironmentSpec) -> Milli:
    """Thousandths of GPUs that a pod has on its node, exactly: of devices by time-slicing, MPS or MIG that the
    Environment declares, their part of a GPU; of claims and extended resources of DeviceClasses, whole GPUs; of several
    vendors, those of each. A request whose share cannot be read counts as one GPU."""
    request = read_request(pod, spec.gpu_resource)
    sharing = NOT_SHARED if node is None else spec.demand.sharing_of(node.labels.get(NODEPOOL, ""), node.instance_type)
    if sharing.resource and (count := request.count_of(sharing.resource)):
        return exact_milli(count, sharing.per_gpu)
    milli: Milli = mig_milli(request) + (request.claimed_gpus + _by_classes(request, node)) * GPU_MILLI
    milli += request.beside_held(VENDOR_RESOURCES, spec.gpu_resource) * GPU_MILLI
    if (held := request.held) is not None:
        gpu = GpuFigures() if node is None else GpuFigures.of(node, spec.demand.gpu_tflops)
        milli += _milli_on(held, gpu) * held.devices
    return max(milli, GPU_MILLI) if request.uncertain else milli


def _by_classes(request: PodRequest, node: Node | None) -> int:
    """Devices that the scheduler has claimed for extended resources of DeviceClasses, without GPUs by the names of
    device plugins and without devices of the node that are no GPUs. Parts of GPUs are not listed with their names."""
    kinds = node.published.kinds if node is not None else ()
    gpus = {name for device, _ in kinds if device.driver in GPU_DRIVERS for name in device.extended_resources}
    others = {name for device, _ in kinds if device.driver not in GPU_DRIVERS for name in device.extended_resources}
    plugins = (GPU_RESOURCE, *VENDOR_RESOURCES)
    return sum(
        count
        for name, count in request.devices
        if name not in plugins and (name in gpus or (name.startswith(DEVICE_CLASS_PREFIX) and name not in others))
    )
