"""Hands GPUs to a pod as KAI does: by the ConfigMaps that its annotation names."""

from typing import Any, Final

from plimsoll.errors import PlimsollError
from plimsoll.kube import MERGE_PATCH, Connection, RequestError
from plimsoll.model.cluster import CONFIG_MAP, NVIDIA_VISIBLE_DEVICES, Pod, config_map_names

FORMER_VISIBLE_DEVICES: Final = "RUNAI-VISIBLE-DEVICES"
"""Key of the UUIDs in pods that KAI admitted before v0.7.4."""
PORTION: Final = "GPU_PORTION"
FORMER_PORTION: Final = "RUNAI_NUM_OF_GPUS"
"""Its name before v0.7.6; KAI writes both."""


class ForeignConfigMapError(PlimsollError):
    """The ConfigMap that the pod names is another pod's: to write it would move that one to another GPU."""


def hand_over(connection: Connection, pod: Pod, gpus: tuple[str, ...], portion: str) -> None:
    """Writes the pod's ConfigMaps, if its annotation names any. Raises ForeignConfigMapError and as `request`."""
    prefix = pod.annotations.get(CONFIG_MAP)
    if not prefix:
        return
    visible = ",".join(gpus)
    data = {NVIDIA_VISIBLE_DEVICES: visible, FORMER_VISIBLE_DEVICES: visible}
    data |= {PORTION: portion, FORMER_PORTION: portion} if portion else {}
    single, direct = config_map_names(prefix)
    _write(connection, pod, single, data)
    # As variables of a container its keys must be names of variables.
    _write(connection, pod, direct, {key: value for key, value in data.items() if "-" not in key})


def _write(connection: Connection, pod: Pod, name: str, data: dict[str, str]) -> None:
    path = f"/api/v1/namespaces/{pod.namespace}/configmaps"
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid}
    metadata: dict[str, Any] = {"name": name, "ownerReferences": [owner]}
    try:
        connection.request("POST", path, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
        return
    except RequestError as error:
        if error.reason != "AlreadyExists":
            raise
    there = connection.request("GET", f"{path}/{name}")
    owners = [each for each in there["metadata"].get("ownerReferences") or () if each.get("kind") == "Pod"]
    if any(each.get("uid") != pod.uid for each in owners):
        raise ForeignConfigMapError(
            f"ConfigMap {name} is that of Pod {owners[0].get('name')}",
            f"give each pod an annotation {CONFIG_MAP} of its own; a template takes the annotation's fieldRef instead",
        )
    kept = {key: there["metadata"][key] for key in ("uid", "resourceVersion")}
    patch = {"metadata": {**kept, "ownerReferences": [owner]}, "data": data}
    connection.request("PATCH", f"{path}/{name}", patch, content_type=MERGE_PATCH)
