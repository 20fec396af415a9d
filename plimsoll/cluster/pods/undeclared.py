"""Requests of devices that are parts of GPUs (time-slicing, MPS, MIG) and that the Environment does not declare."""

from typing import Final

from plimsoll.cluster.pods.unreadable import UnreadableShareError, name_of
from plimsoll.labels import GPU_RESOURCE, MIG_PREFIX
from plimsoll.model.cluster import Pod

_SHARED: Final = f"{GPU_RESOURCE}.shared"


def check_declared(pod: Pod) -> None:
    """Raises UnreadableShareError if a pod without a known request for GPUs requests such devices, by the names that
    NVIDIA's device plugin gives them."""
    for resource in sorted(_resources(pod)):
        if (resource == _SHARED or resource.startswith(MIG_PREFIX)) and _requests(pod, resource):
            raise UnreadableShareError(
                f"Pod {name_of(pod)}: {resource} is not declared in spec.demand.sharedDevices of the Environment, so "
                "no capacity is requested for the pod",
                "declare it there, unless a NodeOverlay lists it for Karpenter",
            )


def _resources(pod: Pod) -> set[str]:
    """Names of what its containers request."""
    stated = [each.get("resources") or {} for each in (*pod.containers, *pod.init_containers)]
    return {str(name) for resources in stated for part in ("requests", "limits") for name in resources.get(part) or {}}


def _requests(pod: Pod, resource: str) -> bool:
    try:
        return pod.devices(resource) != 0
    except ValueError:
        return True
