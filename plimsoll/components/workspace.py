"""Workspace: an inference workload that needs whole nodes."""

from typing import Any, TypedDict

import pulumi

from plimsoll.components.component import Component, ObjectArgs, ObjectType, uid_of
from plimsoll.labels import API_VERSION, WORKSPACE, WORKSPACE_NAMESPACE, as_label_value
from plimsoll.model.api import WorkspaceSpec


class LabelRequirementArgs(TypedDict, total=False):
    key: pulumi.Input[str]
    operator: pulumi.Input[str]
    values: pulumi.Input[list[pulumi.Input[str]]]


class LabelSelectorArgs(TypedDict, total=False):
    match_labels: pulumi.Input[dict[str, pulumi.Input[str]]]
    match_expressions: pulumi.Input[list[pulumi.Input[LabelRequirementArgs]]]


class PartitionArgs(TypedDict, total=False):
    mode: pulumi.Input[str]
    profile: pulumi.Input[str]
    count: pulumi.Input[int]


class ResourceArgs(TypedDict, total=False):
    instance_type: pulumi.Input[str]
    label_selector: pulumi.Input[LabelSelectorArgs]
    count: pulumi.Input[int]
    node_count_limit: pulumi.Input[int]
    capacity_type: pulumi.Input[str]
    preferred_nodes: pulumi.Input[list[pulumi.Input[str]]]
    partition: pulumi.Input[PartitionArgs]


class PresetOptionsArgs(TypedDict, total=False):
    model_access_secret: pulumi.Input[str]


class ModelParametersArgs(TypedDict, total=False):
    size_gib: pulumi.Input[float]
    config: pulumi.Input[dict[str, Any]]


class PresetArgs(TypedDict, total=False):
    name: pulumi.Input[str]
    preset_options: pulumi.Input[PresetOptionsArgs]
    parameters: pulumi.Input[ModelParametersArgs]


class WeightsArgs(TypedDict, total=False):
    volume_source: pulumi.Input[dict[str, Any]]
    read_only: pulumi.Input[bool]


class ServiceSettingsArgs(TypedDict, total=False):
    enabled: pulumi.Input[bool]
    name: pulumi.Input[str]
    port: pulumi.Input[int]


class DataSourceArgs(TypedDict, total=False):
    name: pulumi.Input[str]
    image: pulumi.Input[str]
    image_pull_secrets: pulumi.Input[list[pulumi.Input[str]]]
    volume_source: pulumi.Input[dict[str, Any]]
    urls: pulumi.Input[list[pulumi.Input[str]]]


class DataDestinationArgs(TypedDict, total=False):
    image: pulumi.Input[str]
    image_push_secret: pulumi.Input[str]
    volume_source: pulumi.Input[dict[str, Any]]


class AdapterArgs(TypedDict, total=False):
    source: pulumi.Input[DataSourceArgs]
    strength: pulumi.Input[str]


class TuningArgs(TypedDict, total=False):
    preset: pulumi.Input[PresetArgs]
    method: pulumi.Input[str]
    config: pulumi.Input[str]
    input: pulumi.Input[DataSourceArgs]
    output: pulumi.Input[DataDestinationArgs]


class InferenceArgs(TypedDict, total=False):
    preset: pulumi.Input[PresetArgs]
    template: pulumi.Input[dict[str, Any]]
    replicas: pulumi.Input[int]
    per_replica_node_count: pulumi.Input[int]
    context_length: pulumi.Input[int]
    stable_identity: pulumi.Input[bool]
    gpu_memory_gib: pulumi.Input[float]
    adapters: pulumi.Input[list[pulumi.Input[AdapterArgs]]]
    config: pulumi.Input[str]
    weights: pulumi.Input[WeightsArgs]
    service: pulumi.Input[ServiceSettingsArgs]


class WorkspaceArgs(ObjectArgs, total=False):
    """What a model needs: its nodes, and what runs on them. Give `inference` or `tuning`."""

    namespace: pulumi.Input[str]
    """Namespace of the object; absent: `default`."""
    labels: pulumi.Input[dict[str, pulumi.Input[str]]]
    """Labels of the object."""
    resource: pulumi.Input[ResourceArgs]
    inference: pulumi.Input[InferenceArgs]
    tuning: pulumi.Input[TuningArgs]
    queue: pulumi.Input[str]


class Workspace(Component):
    """A Workspace (plimsoll.dev/v1alpha1). The controller writes its status; no Pulumi update waits for it.

    `workspace` is the object. Raises InvalidArgumentError where an argument does not fit.
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
        namespace = args.get("namespace", "default")
        kind = ObjectType(API_VERSION, "Workspace")
        self.workspace = self._object(
            kind, args, WorkspaceSpec, _spec, namespace=namespace, labels=args.get("labels"), others=("labels",)
        )
        self.workspace_name = self.workspace.metadata["name"]
        self.namespace = self.workspace.metadata["namespace"]
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
    """As plimsoll.plan.owned gives them to all that is made for a Workspace."""
    return {WORKSPACE: as_label_value(name), WORKSPACE_NAMESPACE: as_label_value(namespace)}


def _spec(spec: WorkspaceSpec) -> dict[str, Any]:
    """Without empty maps: server-side apply turns one whose last field has gone into null, which the kind refuses."""
    manifest = spec.manifest()
    resource = {name: value for name, value in manifest.pop("resource", {}).items() if value != {}}
    return ({"resource": resource} if resource else {}) | manifest
