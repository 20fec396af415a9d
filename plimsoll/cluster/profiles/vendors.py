"""Devices of other vendors than NVIDIA, from what their device plugins announce and their discovery labels.

Labels: AMD's k8s-device-plugin (node labeller), Intel's device plugins with Node Feature Discovery, Karpenter's
provider for AWS, GKE.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from plimsoll.model.cluster import MIB_PER_GIB, VENDOR_RESOURCES, Device, Division

_MIB: Final = 2**20


class VendorDevice(NamedTuple):
    """A resource that counts whole devices of a vendor."""

    resource: str
    vendor: str
    """As in `GPU_DRIVERS`, where it has GPUs."""
    product: str
    """Node label with the product."""
    parts: tuple[str, ...] = ()
    """Resources by which pods get parts of the same devices, or the same devices under another name."""


VENDOR_DEVICES: Final = (
    VendorDevice("amd.com/gpu", "amd", "amd.com/gpu.product-name"),
    VendorDevice("gpu.intel.com/i915", "intel", "gpu.intel.com/product"),
    VendorDevice("gpu.intel.com/xe", "intel", "gpu.intel.com/product"),
    VendorDevice(
        "aws.amazon.com/neuron",
        "aws",
        "karpenter.k8s.aws/instance-accelerator-name",
        ("aws.amazon.com/neuroncore", "aws.amazon.com/neurondevice"),
    ),
    VendorDevice("google.com/tpu", "google", "cloud.google.com/gke-tpu-accelerator"),
)
"""Of a node that announces several of them, the first counts."""
PRODUCT_LABELS: Final = tuple(sorted({each.product for each in VENDOR_DEVICES if each.resource in VENDOR_RESOURCES}))
"""Labels with the product of GPUs of other vendors than NVIDIA."""
_AMD_MEMORY: Final = "amd.com/gpu.vram"
"""GiB of one GPU, rounded, such as `192G`."""
_INTEL_MEMORY: Final = "gpu.intel.com/memory.max"
"""Bytes of all GPUs of the node."""
_INTEL_COUNT: Final = "gpu.intel.com/device.count"
_COUNTED: Final = "beta.amd.com/gpu.product-name."
"""AMD's older form, with the number of such GPUs as the value: the product is in the key."""
LASTING: Final = ("amd.com/gpu.", "beta.amd.com/gpu.", "gpu.intel.com/")
"""Prefixes of labels of discovery, apart from `PASSING`."""
PASSING: Final = ("amd.com/gpu.driver-", "beta.amd.com/gpu.driver-")


def vendor_amounts(allocatable: Mapping[str, str | int | float]) -> tuple[tuple[str, str], ...]:
    """The amounts of such resources and their parts, as they are written."""
    named = (name for each in VENDOR_DEVICES for name in (each.resource, *each.parts))
    return tuple([(name, str(allocatable[name])) for name in named if name in allocatable])


def vendor_labels(labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """The labels by which they are described."""
    read = {_AMD_MEMORY, _INTEL_MEMORY, _INTEL_COUNT, *(each.product for each in VENDOR_DEVICES)}
    return tuple(sorted(item for item in labels.items() if item[0] in read or item[0].startswith(_COUNTED)))


def vendor_device(labels: Mapping[str, str], allocatable: Mapping[str, int]) -> Device | None:
    """The whole devices of another vendor that a node has; None if it has none. `allocatable` are numbers by
    resource."""
    row = next((each for each in VENDOR_DEVICES if allocatable.get(each.resource)), None)
    if row is None:
        return None
    announced = allocatable[row.resource]
    count = _number(labels.get(_INTEL_COUNT, "")) if row.vendor == "intel" else 0
    shared = 0 < count < announced and announced % count == 0
    count = count if shared else announced
    return Device(
        product=vendor_product(row.resource, labels),
        memory_mib=_memory_mib(row.vendor, labels),
        count=count,
        division=Division.TIME_SLICING if shared else Division.WHOLE,
        replicas=announced // count,
        resource=row.resource,
        vendor=row.vendor,
    )


def vendor_product(resource: str, labels: Mapping[str, str]) -> str:
    """The product of a node's devices of a resource in the domain of one of these, such as `amd.com/cpx_nps4`, by its
    labels; empty where they do not say it."""
    domain = resource.partition("/")[0]
    row = next((each for each in VENDOR_DEVICES if each.resource.partition("/")[0] == domain), None)
    found = labels.get(row.product, "") if row is not None else ""
    return found or (_counted_product(labels) if row is not None and row.vendor == "amd" else "")


def parts_of(resource: str) -> tuple[str, ...]:
    """The resources by which pods get parts of such devices."""
    return next((each.parts for each in VENDOR_DEVICES if each.resource == resource), ())


def _counted_product(labels: Iterable[str]) -> str:
    """The product by labels in the counted form; empty where there are several: GPUs of the node differ."""
    found = [key.removeprefix(_COUNTED) for key in labels if key.startswith(_COUNTED)]
    return found[0] if len(found) == 1 else ""


def _memory_mib(vendor: str, labels: Mapping[str, str]) -> int | None:
    if vendor == "amd":
        return _number(labels.get(_AMD_MEMORY, "").removesuffix("G")) * MIB_PER_GIB or None
    total, count = _number(labels.get(_INTEL_MEMORY, "")), _number(labels.get(_INTEL_COUNT, ""))
    return total // count // _MIB or None if vendor == "intel" and total and count else None


def _number(text: str) -> int:
    """0 where it is no whole number."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else 0
