"""Writes the ConfigMaps through which a pod gets its GPUs, as KAI's binder does."""

from collections.abc import Callable
from typing import Any, Final

from plimsoll.errors import PlimsollError
from plimsoll.kube import MERGE_PATCH, Connection, RequestError
from plimsoll.model.cluster import CONFIG_MAP, NVIDIA_VISIBLE_DEVICES, Pod, config_map_names

FORMER_VISIBLE_DEVICES: Final = "RUNAI-VISIBLE-DEVICES"
"""Key of the GPU UUIDs in pods that KAI admitted before v0.7.4."""
PORTION: Final = "GPU_PORTION"
FORMER_PORTION: Final = "RUNAI_NUM_OF_GPUS"
"""Name of the portion before v0.7.6; KAI writes both."""


class ForeignConfigMapError(PlimsollError):
    """The ConfigMap that the pod names belongs to another pod, which writing it would move to another GPU, or to
    somebody else."""


def write_config_maps(
    connection: Connection, pod: Pod, gpus: tuple[str, ...], portion: str, exists: Callable[[str], bool]
) -> None:
    """Writes the pod's ConfigMaps if its annotation names any; `exists`: whether there is a pod with that UID. Raises
    ForeignConfigMapError, RequestError and ConnectionFailedError."""
    prefix = pod.annotations.get(CONFIG_MAP)
    if not prefix:
        return
    visible = ",".join(gpus)
    data = {NVIDIA_VISIBLE_DEVICES: visible, FORMER_VISIBLE_DEVICES: visible}
    data |= {PORTION: portion, FORMER_PORTION: portion} if portion else {}
    single, direct = config_map_names(prefix)
    _write(connection, pod, single, data, exists)
    # Its keys become environment variables of a container, so they must be valid names.
    _write(connection, pod, direct, {key: value for key, value in data.items() if "-" not in key}, exists)


def _write(connection: Connection, pod: Pod, name: str, data: dict[str, str], exists: Callable[[str], bool]) -> None:
    path = f"/api/v1/namespaces/{pod.namespace}/configmaps"
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid}
    metadata: dict[str, Any] = {"name": name, "ownerReferences": [owner]}
    try:
        connection.request("POST", path, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
        return
    except RequestError as error:
        if error.reason != "AlreadyExists":
            raise
    existing = connection.request("GET", f"{path}/{name}")
    owners = existing["metadata"].get("ownerReferences") or []
    # That of a pod that is gone, such as the former one of a StatefulSet, is deleted a moment later.
    others = [
        each
        for each in owners
        if each.get("kind") != "Pod" or (each.get("uid") != pod.uid and exists(str(each.get("uid"))))
    ]
    if others or not owners:
        whose = f"is that of {others[0].get('kind')} {others[0].get('name')}" if others else "is not that of a pod"
        raise ForeignConfigMapError(
            f"ConfigMap {name} {whose}",
            f"give each pod an annotation {CONFIG_MAP} of its own; a template takes the annotation's fieldRef instead",
        )
    kept = {key: existing["metadata"][key] for key in ("uid", "resourceVersion")}
    patch = {"metadata": {**kept, "ownerReferences": [owner]}, "data": data}
    connection.request("PATCH", f"{path}/{name}", patch, content_type=MERGE_PATCH)
