"""Pods as the binder observes them: all of them, because each uses CPU and memory of its node."""

from typing import Any

from plimsoll.labels import GPU_GROUP
from plimsoll.model.api import BinderSettings
from plimsoll.model.cluster import Pod, SharePod, obstacle_of
from plimsoll.observe.cluster import Kind
from plimsoll.observe.pods import trimmed_pod

_FINISHED = ("Succeeded", "Failed")


def pods_of(settings: BinderSettings) -> Kind[Pod]:
    """The observed kind. Pods of the binder's scheduler have a reason if they cannot be bound. Finished pods are left
    out, except reservations, whose failure matters."""
    namespaces = settings.reservation.namespaces

    def read(raw: dict[str, Any]) -> Pod | None:
        metadata, spec = raw.get("metadata") or {}, raw.get("spec") or {}
        finished = (raw.get("status") or {}).get("phase") in _FINISHED
        reserves = metadata.get("namespace") in namespaces and GPU_GROUP in (metadata.get("labels") or {})
        if finished and not reserves:
            return None
        if spec.get("schedulerName") == settings.scheduler_name and not spec.get("nodeName"):
            return SharePod.read({**trimmed_pod(raw), "obstacle": obstacle_of(raw)})
        return Pod.read(trimmed_pod(raw))

    return Kind("Pod", "v1", "/api/v1/pods", read, versioned=True)
