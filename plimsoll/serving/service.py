"""The Service of a preset's replicas."""

from collections.abc import Mapping
from typing import Any, Final

from plimsoll.model.api import Inference, Workspace
from plimsoll.serving.group import LEADER_INDEX
from plimsoll.serving.server import HTTP, PORT

METRICS: Final = "metrics"


def service_name(workspace: Workspace) -> str:
    """The Service's name; empty where there is none: it is off, or the Workspace runs a template."""
    inference = workspace.spec.inference
    if inference is None or inference.preset is None or not inference.service.enabled:
        return ""
    return inference.service.name or workspace.name


def service_manifest(
    workspace: Workspace, inference: Inference, labels: Mapping[str, str], selector: Mapping[str, str], *, groups: bool
) -> dict[str, Any]:
    """The Service. `groups` says whether replicas are groups, of which only the leaders serve.

    Port `http` is OpenAI's API. Port `metrics` is the same server, which serves Prometheus metrics under `/metrics`.
    """
    ports = [{"name": HTTP, "port": inference.service.port, "targetPort": HTTP}]
    if inference.service.port != PORT:
        ports.append({"name": METRICS, "port": PORT, "targetPort": HTTP})
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": service_name(workspace),
            "namespace": workspace.namespace,
            "labels": dict(labels),
        },
        "spec": {"type": "ClusterIP", "ports": ports, "selector": {**selector, **(LEADER_INDEX if groups else {})}},
    }
