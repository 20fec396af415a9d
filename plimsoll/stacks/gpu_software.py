"""The GPU software that a cluster already runs."""

from collections.abc import Iterable, Mapping
from contextlib import closing
from typing import Any, Final

from plimsoll.components.specs import ExistingGpuSoftware
from plimsoll.stacks.stack_connection import stack_cluster

_INSTANCE: Final = "app.kubernetes.io/instance"
_PULUMI: Final = "pulumi-kubernetes"
"""Prefix of the field managers of Pulumi's Kubernetes provider."""
_DAEMON_SETS: Final = "/apis/apps/v1/daemonsets"
_DEPLOYMENTS: Final = "/apis/apps/v1/deployments"
_OPERATOR: Final = "app.kubernetes.io/component=gpu-operator"


def find_gpu_software(release: str, namespace: str) -> ExistingGpuSoftware:
    """Reads the cluster. Software that the chart `release` installed in `namespace`, or with Pulumi in a former
    namespace, is the stack's own and does not count. Raises PlimsollError if the cluster does not answer."""
    with closing(stack_cluster()()) as connection:
        daemons = connection.request("GET", _DAEMON_SETS)["items"]
        operators = connection.request("GET", _DEPLOYMENTS, query={"labelSelector": _OPERATOR})
    return classify(daemons, operators["items"], release, namespace)


def classify(
    daemons: Iterable[Mapping[str, Any]], operators: Iterable[Mapping[str, Any]], release: str, namespace: str
) -> ExistingGpuSoftware:
    """Classifies DaemonSets by name, image and command, and operators by their label. The result names the objects."""
    found: dict[str, list[str]] = {"device_plugin": [], "gfd": [], "nfd": [], "gpu_operator": []}
    for operator in operators:
        found["gpu_operator"].append(_name(operator))
    for daemon in daemons:
        metadata = daemon["metadata"]
        labels = metadata.get("labels") or {}
        if labels.get(_INSTANCE) == release and (
            metadata.get("namespace") == namespace or _applied_by_pulumi(metadata)
        ):
            continue
        words = " ".join(_words(daemon)).lower()
        owners = {owner.get("kind") for owner in metadata.get("ownerReferences") or ()}
        if labels.get("app.kubernetes.io/managed-by") == "gpu-operator" or "ClusterPolicy" in owners:
            found["gpu_operator"].append(_name(daemon))
        elif "gpu-feature-discovery" in words:
            found["gfd"].append(_name(daemon))
        elif "nvidia" in words and "device-plugin" in words:
            found["device_plugin"].append(_name(daemon))
        elif "node-feature-discovery" in words or "nfd-worker" in words:
            found["nfd"].append(_name(daemon))
    return ExistingGpuSoftware(**{what: tuple(sorted(names)) for what, names in found.items() if names})


def _applied_by_pulumi(metadata: Mapping[str, Any]) -> bool:
    """Whether the object is of a Chart of Pulumi, such as that of this stack in its former namespace: Helm, Argo CD and
    kubectl have field managers of other names."""
    managers = (each.get("manager") or "" for each in metadata.get("managedFields") or ())
    return any(manager.startswith(_PULUMI) for manager in managers)


def _name(manifest: Mapping[str, Any]) -> str:
    return f"{manifest['metadata'].get('namespace')}/{manifest['metadata']['name']}"


def _words(daemon: Mapping[str, Any]) -> Iterable[str]:
    """The texts that show a DaemonSet's purpose: its name, and each container's name, image and command."""
    yield daemon["metadata"]["name"]
    for container in daemon["spec"]["template"]["spec"].get("containers") or ():
        yield container.get("name", "")
        yield container.get("image", "")
        yield from container.get("command") or ()
