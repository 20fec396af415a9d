"""Reads Pods from manifests, without the parts that planning does not use."""

from typing import Any, Final

from plimsoll.cluster.pods import is_competing
from plimsoll.labels import DO_NOT_DISRUPT, GROUP, LWS_SIZE, RESERVED_GPU, TENSOR_FUSION_REQUESTS, WORKSPACE
from plimsoll.model.cluster import Pod, requests_devices
from plimsoll.model.kai import POD_GROUP_NAME, is_share_annotation

PLANNED_ON: Final = frozenset({*TENSOR_FUSION_REQUESTS, DO_NOT_DISRUPT, RESERVED_GPU, POD_GROUP_NAME, LWS_SIZE})
"""Annotations of pods that planning or `why` reads, besides those of Plimsoll and requests for GPUs. Networks and
service meshes write kilobytes of others."""


_OF_CONTAINERS: Final = ("containerStatuses", "initContainerStatuses")


def is_plain(raw: dict[str, Any]) -> bool:
    """Whether only the pod's CPU and memory requests matter: it requests no devices or GPU share, and it belongs
    neither to Plimsoll nor to a competing controller."""
    metadata = raw.get("metadata") or {}
    ours = any(str(key).startswith(f"{GROUP}/") for key in metadata.get("labels") or {})
    return not (ours or is_competing(str(metadata.get("name") or "")) or requests_devices(raw))


def read_pod(raw: dict[str, Any]) -> Pod | None:
    """Reads a pod; None for a plain pod. Only requests of containers and the conditions that scheduling uses are
    kept."""
    if is_plain(raw):
        return None
    metadata = raw.get("metadata") or {}
    kept = {key: value for key, value in (metadata.get("annotations") or {}).items() if _is_planned_on(key)}
    return Pod.read(trimmed_pod({**raw, "metadata": {**metadata, "annotations": kept}}))


def _is_planned_on(annotation: str) -> bool:
    return annotation in PLANNED_ON or annotation.startswith(f"{GROUP}/") or is_share_annotation(annotation)


def trimmed_pod(raw: dict[str, Any]) -> dict[str, Any]:
    """The manifest of a pod with only the parts that planning uses."""
    spec, status = raw.get("spec") or {}, raw.get("status") or {}
    containers = {name: [_trimmed(item) for item in spec.get(name) or ()] for name in ("containers", "initContainers")}
    of_workspace = WORKSPACE in ((raw.get("metadata") or {}).get("labels") or {})
    if not of_workspace:
        status = {key: status[key] for key in status if key not in _OF_CONTAINERS}
    types = ("PodScheduled", "Ready") if of_workspace else ("PodScheduled",)
    conditions = [item for item in status.get("conditions") or () if _is_of_type(item, types)]
    return {**raw, "spec": spec | containers, "status": status | {"conditions": conditions}}


def _is_of_type(condition: Any, types: tuple[str, ...]) -> bool:
    return isinstance(condition, dict) and condition.get("type") in types


def _trimmed(container: Any) -> Any:
    if not isinstance(container, dict):
        return container
    return {key: container[key] for key in ("name", "restartPolicy", "resources") if container.get(key)}
