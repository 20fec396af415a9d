"""Workspace: an inference workload that needs whole nodes."""

from typing import Any

import pulumi

from plimsoll.components.args import WorkspaceArgs
from plimsoll.components.declaring import Component, ObjectType, name_of, namespace_of, uid_of
from plimsoll.labels import API_VERSION, WORKSPACE, WORKSPACE_NAMESPACE, as_label_value
from plimsoll.model.api import WorkspaceSpec


class Workspace(Component):
    """A Workspace (plimsoll.dev/v1alpha1). The controller writes its status; no Pulumi update waits for it.

    `workspace` is the object. Raises InvalidArgumentError if an argument is invalid.
    """

    workspace_name: pulumi.Output[str]
    """Name of the object."""
    namespace: pulumi.Output[str]
    """Namespace of the object."""
    uid: pulumi.Output[str]
    """UID of the object; empty in the preview of its creation."""
    pod_labels: pulumi.Output[dict[str, str]]
    """Labels of its pods and nodes, to select them by: in a Service, a NetworkPolicy, a Prometheus query."""

    def __init__(self, name: str, args: WorkspaceArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("Workspace", name, args, opts)
        self.workspace = self._object(
            ObjectType(API_VERSION, "Workspace"),
            WorkspaceSpec,
            _spec,
            namespace=self.given("namespace", "default"),
            labels=self.given("labels"),
            others=("labels",),
        )
        self.workspace_name = name_of(self.workspace, args.get("name"))
        self.namespace = namespace_of(self.workspace, args.get("namespace"))
        self.uid = uid_of(self.workspace)
        self.pod_labels = pulumi.Output.all(self.workspace_name, self.namespace).apply(lambda them: _labels(*them))
        self.register_outputs(
            {
                "workspaceName": self.workspace_name,
                "namespace": self.namespace,
                "uid": self.uid,
                "podLabels": self.pod_labels,
            }
        )


def _labels(name: str, namespace: str) -> dict[str, str]:
    """The labels that plimsoll.plan.owned gives to every object created for a Workspace."""
    return {WORKSPACE: as_label_value(name), WORKSPACE_NAMESPACE: as_label_value(namespace)}


def _spec(spec: WorkspaceSpec) -> dict[str, Any]:
    """Without empty maps: when the last field of a map is removed, server-side apply sets the map to null, which the
    CRD rejects."""
    manifest = spec.manifest()
    resource = {name: value for name, value in manifest.pop("resource", {}).items() if value != {}}
    return ({"resource": resource} if resource else {}) | manifest
