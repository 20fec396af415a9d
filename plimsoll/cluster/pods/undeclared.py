"""Requests of devices that are parts of GPUs (time-slicing, MPS, MIG) and that the Environment does not declare."""

from collections.abc import Collection

from plimsoll.cluster.pods.unreadable import UnreadableShareError, name_of
from plimsoll.labels import is_part_of_gpu
from plimsoll.model.cluster import Pod


def check_declared(pod: Pod, overlaid: Collection[str]) -> None:
    """Raises UnreadableShareError if a pod without a known request for GPUs requests such devices, by the names that
    NVIDIA's device plugin gives them, and they are not in `overlaid`, the resources that NodeOverlays list."""
    for resource in sorted(_resources(pod) - set(overlaid)):
        if is_part_of_gpu(resource) and _requests(pod, resource):
            raise UnreadableShareError(
                f"Pod {name_of(pod)}: {resource} is neither declared in spec.demand.sharedDevices of the Environment "
                "nor listed by a NodeOverlay, so no node is requested for the pod",
                "declare it in either",
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
