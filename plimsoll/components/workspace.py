"""Workspace: an inference workload that needs whole nodes."""

from typing import Any, TypedDict

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource

from plimsoll.components.declaration import checked, child_of, fields_of, metadata
from plimsoll.labels import API_VERSION
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
    preferred_nodes: pulumi.Input[list[pulumi.Input[str]]]
    partition: pulumi.Input[PartitionArgs]


class PresetOptionsArgs(TypedDict, total=False):
    model_access_secret: pulumi.Input[str]


class PresetArgs(TypedDict, total=False):
    name: pulumi.Input[str]
    preset_options: pulumi.Input[PresetOptionsArgs]


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


class WorkspaceArgs(TypedDict, total=False):
    """The fields of plimsoll.model.workspace.WorkspaceSpec, where they are explained, and where the object lives."""

    namespace: pulumi.Input[str]
    name: pulumi.Input[str]
    """Name of the object; absent: that of the resource."""
    labels: pulumi.Input[dict[str, pulumi.Input[str]]]
    resource: pulumi.Input[ResourceArgs]
    inference: pulumi.Input[InferenceArgs]
    tuning: pulumi.Input[TuningArgs]
    queue: pulumi.Input[str]


class Workspace(pulumi.ComponentResource):
    """A Workspace (plimsoll.dev/v1alpha1). The controller writes its status; no Pulumi update waits for it.

    Raises InvalidObjectError where an argument does not fit.
    """

    workspace_name: pulumi.Output[str]
    namespace: pulumi.Output[str]

    def __init__(self, name: str, args: WorkspaceArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("plimsoll:index:Workspace", name, {}, opts)
        workspace = CustomResource(
            name,
            api_version=API_VERSION,
            kind="Workspace",
            metadata=metadata(
                args.get("name", name), args.get("namespace", "default"), args.get("labels"), skip_await=True
            ),
            spec=checked(WorkspaceSpec, "Workspace", name, fields_of(args, "namespace", "name", "labels"), _spec),
            opts=child_of(self),
        )
        self.workspace_name = workspace.metadata["name"]
        self.namespace = workspace.metadata["namespace"]
        self.register_outputs({"workspace_name": self.workspace_name, "namespace": self.namespace})


def _spec(spec: WorkspaceSpec) -> dict[str, Any]:
    """Without empty maps: server-side apply turns one whose last field has gone into null, which the kind refuses."""
    manifest = spec.manifest()
    resource = {name: value for name, value in manifest.pop("resource", {}).items() if value != {}}
    return ({"resource": resource} if resource else {}) | manifest
