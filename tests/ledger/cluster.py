"""Builders of shares, reservations and whole-GPU pods on nodes."""

from typing import Any

from plimsoll import labels
from plimsoll.model.cluster import Node, Pod
from plimsoll.model.kai import GPU_FRACTION, GPU_FRACTION_DEVICES, GPU_MEMORY_SHARE, NAMESPACE
from tests.builders import a_node, metadata


def a_gpu_node(name: str = "n1", gpus: int | str = 2, **fields: Any) -> Node:
    """An A100 node whose device plugin offers `gpus`."""
    return a_node(name, count=gpus, allocatable=gpus, **fields)


def a_share(
    name: str,
    node: str = "n1",
    *groups: str,
    fraction: str | None = "0.5",
    memory: str | None = None,
    devices: int = 1,
    deleting: bool = False,
    phase: str = "Running",
    selected: str = "",
    **resources: str,
) -> Pod:
    """A share pod in these groups, labelled as KAI does: one label for one device, several labels for several."""
    asked = {
        GPU_FRACTION: fraction,
        GPU_MEMORY_SHARE: memory,
        GPU_FRACTION_DEVICES: str(devices) if devices > 1 else None,
        labels.SELECTED_NODE: f"{selected}/uid-{name}" if selected else None,
    }
    if devices > 1:
        grouped = {f"{labels.GPU_GROUP_PREFIX}{group}": group for group in groups}
    else:
        grouped = dict.fromkeys([labels.GPU_GROUP][: len(groups)], "".join(groups))
    return _pod(
        metadata(
            name,
            "team",
            uid=f"uid-{name}",
            labels=grouped,
            annotations={key: value for key, value in asked.items() if value is not None},
            deletionTimestamp="2026-01-01T01:00:00Z" if deleting else None,
        ),
        node,
        {"requests": resources},
        phase,
    )


def a_reservation(
    group: str,
    node: str = "n1",
    *,
    name: str = "",
    gpu: str | None = "GPU-1",
    namespace: str = NAMESPACE,
    deleting: bool = False,
    phase: str = "Running",
) -> Pod:
    return _pod(
        metadata(
            name or f"gpu-reservation-{group}",
            namespace,
            labels={labels.GPU_GROUP: group},
            annotations={labels.RESERVED_GPU: gpu} if gpu is not None else {},
            deletionTimestamp="2026-01-01T01:00:00Z" if deleting else None,
        ),
        node,
        {"limits": {labels.GPU_RESOURCE: "1"}, "requests": {"cpu": "1m", "memory": "10Mi"}},
        phase,
    )


def a_whole(name: str, node: str = "n1", gpus: int | str = 1, *, deleting: bool = False) -> Pod:
    """A pod with whole GPUs."""
    deleted = "2026-01-01T01:00:00Z" if deleting else None
    resources = {"limits": {labels.GPU_RESOURCE: str(gpus)}}
    return _pod(metadata(name, "team", deletionTimestamp=deleted), node, resources, "Running")


def _pod(meta: dict[str, Any], node: str, resources: dict[str, Any], phase: str) -> Pod:
    containers = [{"name": "main", "resources": resources}]
    return Pod.read(
        {
            "kind": "Pod",
            "metadata": meta,
            "spec": {"nodeName": node, "containers": containers},
            "status": {"phase": phase},
        }
    )
