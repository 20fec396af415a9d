"""What discovery and drivers say of nodes, as far as it follows from their instance type."""

from dataclasses import replace

from plimsoll.labels import GPU_COUNT, GPU_MEMORY, GPU_PRESENT, GPU_PRODUCT
from plimsoll.model.cluster import InstanceType
from plimsoll.model.dra import Attribute, Claimable

_PREFIX = "nvidia.com/gpu."
_NVIDIA = "gpu.nvidia.com"


def discovery_labels(kind: InstanceType) -> dict[str, str]:
    """The labels that discovery writes on a node of the type, as far as they are known; no guess of memory is.

    GPUs are whole: what else is said of them, a NodePool declares.
    """
    major, _, minor = kind.compute_capability.partition(".")
    memory = kind.known_memory_mib
    found = {
        GPU_PRESENT: "true",
        GPU_PRODUCT: kind.product.replace(" ", "-"),
        GPU_COUNT: str(kind.gpus),
        GPU_MEMORY: str(memory) if memory else "",
        f"{_PREFIX}family": kind.family,
        f"{_PREFIX}compute.major": major,
        f"{_PREFIX}compute.minor": minor,
        f"{_PREFIX}replicas": "1",
    }
    return {key: value for key, value in found.items() if value}


def catalogued(device: Claimable, kind: InstanceType) -> Claimable:
    """The device with what NVIDIA's driver publishes of GPUs of the type, where it does not say that itself. The name
    of the product is not among it: discovery writes dashes for its spaces."""
    if device.driver != _NVIDIA:
        return device
    given = {
        "type": ("string", "gpu"),
        "architecture": ("string", kind.family.replace("-", " ").title()),
        "cudaComputeCapability": ("version", f"{kind.compute_capability}.0" if kind.compute_capability else ""),
    }
    known = {each.name for each in device.attributes}
    named = ((f"{_NVIDIA}/{name}", attribute, value) for name, (attribute, value) in given.items() if value)
    added = (Attribute(*each) for each in named if each[0] not in known)
    memory, amounts = f"{_NVIDIA}/memory", dict(device.capacity)
    if kind.known_memory_mib:
        amounts.setdefault(memory, f"{kind.known_memory_mib}Mi")
    return replace(
        device, attributes=tuple(sorted((*device.attributes, *added))), capacity=tuple(sorted(amounts.items()))
    )
