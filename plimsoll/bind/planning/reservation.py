"""The manifest of a reservation pod, as KAI's binder creates it."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from plimsoll.labels import DO_NOT_DISRUPT, GPU_GROUP, MANAGED_BY, SHARE_BINDER
from plimsoll.model.kai import APP, RESERVATION_APP, ReservationSettings
from plimsoll.model.meta import Toleration

_HEX_DIGITS = 16


def reservation_name(settings: ReservationSettings, node: str, group: str, attempt: int = 0) -> str:
    """Name of a reservation. It is the same for every writer, so that a repeated creation finds the existing pod; with
    the default prefix and `attempt` 0 it is KAI's name."""
    digest = hashlib.sha256(f"{node}/{group}".encode()).hexdigest()[:_HEX_DIGITS]
    return f"{settings.name_prefix}-{digest}" + (f"-{attempt}" if attempt else "")


def reservation_manifest(
    settings: ReservationSettings,
    node: str,
    group: str,
    tolerations: Sequence[Toleration] = (),
    attempt: int = 0,
) -> dict[str, Any]:
    """A Pod that holds one GPU of the node. `tolerations` are those of the pod that it is created for."""
    gpu = {settings.gpu_resource: "1"}
    container = {
        "name": settings.container,
        "image": settings.image,
        "imagePullPolicy": settings.image_pull_policy,
        "resources": {"requests": {**settings.requests, **gpu}, "limits": {**settings.limits, **gpu}},
        "env": [
            _of_the_pod("POD_NAME", "metadata.name"),
            _of_the_pod("POD_NAMESPACE", "metadata.namespace"),
            *({"name": name, "value": value} for name, value in settings.env.items()),
        ],
    }
    if settings.command:
        container["command"] = list(settings.command)
    spec: dict[str, Any] = {
        "nodeName": node,
        "serviceAccountName": settings.service_account,
        "containers": [container],
    }
    if settings.runtime_class:
        spec["runtimeClassName"] = settings.runtime_class
    tolerated = _each_once([*settings.tolerations, *map(_as_manifest, tolerations)])
    if tolerated:
        spec["tolerations"] = tolerated
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": reservation_name(settings, node, group, attempt),
            "namespace": settings.namespace,
            "labels": {
                **settings.labels,
                APP: settings.app,
                RESERVATION_APP: settings.name_prefix,
                GPU_GROUP: group,
                MANAGED_BY: SHARE_BINDER,
            },
            "annotations": {**settings.annotations, DO_NOT_DISRUPT: "true"},
        },
        "spec": spec,
    }


def _of_the_pod(name: str, field: str) -> dict[str, Any]:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": field}}}


def _as_manifest(toleration: Toleration) -> dict[str, Any]:
    fields = {
        "key": toleration.key,
        "operator": toleration.operator,
        "value": toleration.value,
        "effect": toleration.effect,
        "tolerationSeconds": toleration.toleration_seconds,
    }
    return {name: value for name, value in fields.items() if value not in ("", None)}


def _each_once(tolerations: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for each in tolerations:
        if dict(each) not in found:
            found.append(dict(each))
    return found
