"""What is kept of the manifest of a pod."""

from typing import Any, Final

from plimsoll.cluster.pods import is_rival
from plimsoll.labels import GROUP, LWS_SIZE, RESERVED_GPU, TENSOR_FUSION_REQUESTS
from plimsoll.model.cluster import Pod, requests_devices
from plimsoll.model.kai import POD_GROUP_NAME, is_share_annotation

PLANNED_ON: Final = frozenset({*TENSOR_FUSION_REQUESTS, RESERVED_GPU, POD_GROUP_NAME, LWS_SIZE})
"""Annotations of pods that are planned on, beside our own and requests for GPUs; networks and meshes write kilobytes of
others."""


def is_plain(raw: dict[str, Any]) -> bool:
    """Whether nothing of a pod is of interest but what it takes of its node: it asks for no device nor for a share of
    one, and is neither ours nor a rival's."""
    metadata = raw.get("metadata") or {}
    ours = any(str(key).startswith(f"{GROUP}/") for key in metadata.get("labels") or {})
    return not (ours or is_rival(str(metadata.get("name") or "")) or requests_devices(raw))


def read_pod(raw: dict[str, Any]) -> Pod | None:
    """None for a plain pod. Of a container it keeps what it asks for, and of the conditions the one that scheduling
    goes by."""
    if is_plain(raw):
        return None
    metadata = raw.get("metadata") or {}
    kept = {key: value for key, value in (metadata.get("annotations") or {}).items() if _is_planned_on(key)}
    return Pod.read(trimmed_pod({**raw, "metadata": {**metadata, "annotations": kept}}))


def _is_planned_on(annotation: str) -> bool:
    return annotation in PLANNED_ON or annotation.startswith(f"{GROUP}/") or is_share_annotation(annotation)


def trimmed_pod(raw: dict[str, Any]) -> dict[str, Any]:
    """The manifest of a pod with what is kept of it."""
    spec, status = raw.get("spec") or {}, raw.get("status") or {}
    containers = {name: [_trimmed(item) for item in spec.get(name) or ()] for name in ("containers", "initContainers")}
    conditions = [item for item in status.get("conditions") or () if _says_unscheduled(item)]
    return {**raw, "spec": spec | containers, "status": status | {"conditions": conditions}}


def _says_unscheduled(condition: Any) -> bool:
    return isinstance(condition, dict) and condition.get("type") == "PodScheduled"


def _trimmed(container: Any) -> Any:
    if not isinstance(container, dict):
        return container
    return {key: container[key] for key in ("name", "restartPolicy", "resources") if container.get(key)}
