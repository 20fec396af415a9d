"""Workspace: an inference workload that needs whole nodes."""

from typing import Any, TypedDict

import pulumi

from plimsoll.components.choices import (
    LabelRequirementOperator,
    PartitionMode,
    ResourceCapacityType,
    ResourceCapacityTypes,
    ResourceDevices,
    RolloutStrategy,
    TuningMethod,
)
from plimsoll.components.declaring import Component, ObjectArgs, ObjectType, name_of, namespace_of, uid_of
from plimsoll.labels import API_VERSION, WORKSPACE, WORKSPACE_NAMESPACE, as_label_value
from plimsoll.model.api import WorkspaceSpec


class LabelRequirementArgs(TypedDict, total=False):
    """One entry of `matchExpressions`."""

    key: pulumi.Input[str]
    operator: LabelRequirementOperator
    values: pulumi.Input[list[pulumi.Input[str]]]


class LabelSelectorArgs(TypedDict, total=False):
    """Both forms must match. An empty selector matches everything."""

    match_labels: pulumi.Input[dict[str, pulumi.Input[str]]]
    match_expressions: pulumi.Input[list[pulumi.Input[LabelRequirementArgs]]]


class PartitionArgs(TypedDict, total=False):
    """A MIG slice (NVIDIA's Multi-Instance GPU), or some of a node's GPUs."""

    mode: PartitionMode
    profile: pulumi.Input[str]
    """Mode mig: profile of the slice that a pod requests, such as 1g.10gb."""
    count: pulumi.Input[int]
    """Mode accelerator: number of GPUs that a pod requests."""


class ResourceArgs(TypedDict, total=False):
    """Which nodes: existing ones by selector, or provisioned ones by instance type."""

    instance_type: pulumi.Input[str]
    """Required if node auto-provisioning is enabled, forbidden if it is disabled."""
    instance_types: pulumi.Input[list[pulumi.Input[str]]]
    """Instance types of which all new nodes have one, instead of `instanceType`: the first that a replica fits, and the
    next one after it could not be provisioned."""
    by_price: pulumi.Input[bool]
    """Whether `instanceTypes` are tried by the price of all nodes, cheapest first, instead of in their order."""
    label_selector: pulumi.Input[LabelSelectorArgs]
    count: pulumi.Input[int]
    """Deprecated: total number of nodes; use `inference.replicas` and `perReplicaNodeCount`."""
    node_count_limit: pulumi.Input[int]
    """Maximum number of nodes of the Workspace; one that needs more is refused."""
    capacity_type: ResourceCapacityType
    """How provisioned nodes are paid for: `spot`, `on-demand`, `any` of them, or `reserved`: only capacity that was
    reserved; absent: as the Environment sets it."""
    capacity_types: pulumi.Input[list[ResourceCapacityTypes]]
    """Ways to pay for provisioned nodes, tried in this order for each instance type, instead of `capacityType`."""
    zones: pulumi.Input[list[pulumi.Input[str]]]
    """Zones of the nodes; absent: any."""
    preferred_nodes: pulumi.Input[list[pulumi.Input[str]]]
    """Deprecated and without effect, as in KAITO: select nodes by `labelSelector`."""
    partition: pulumi.Input[PartitionArgs]
    """The part of a node's GPUs that each pod requests; only for existing nodes. Absent: all of them."""
    devices: ResourceDevices
    """How pods ask for GPUs: by the extended resource, or by a claim of Dynamic Resource Allocation, for which a
    ResourceClaimTemplate is created. Absent: by the extended resource."""


class PresetOptionsArgs(TypedDict, total=False):
    """How the model of a preset is fetched."""

    model_access_secret: pulumi.Input[str]
    """Secret in the Workspace's namespace whose key HF_TOKEN grants access to the model on Hugging Face."""


class ModelParametersArgs(TypedDict, total=False):
    """The data of a model: the size of its files, and its `config.json`."""

    size_gib: pulumi.Input[float]
    """Weights as files, GiB: `metadata.total_size` of the safetensors index."""
    config: pulumi.Input[dict[str, Any]]
    """Fields of the model's `config.json`; those on layers, heads and context are read."""


class PresetArgs(TypedDict, total=False):
    """A model by its name."""

    name: pulumi.Input[str]
    preset_options: pulumi.Input[PresetOptionsArgs]
    parameters: pulumi.Input[ModelParametersArgs]
    """Data of the model, for a model that is not known by its name, or to correct the catalog."""


class WeightsArgs(TypedDict, total=False):
    """Where the model's files are kept. Absent: on the node's disk, as long as the pod exists."""

    volume_source: pulumi.Input[dict[str, Any]]
    """A volume, as in a pod's `volumes` (`persistentVolumeClaim`, `hostPath`, `ephemeral`, ...). It is the server's
    Hugging Face cache (HF_HOME)."""
    read_only: pulumi.Input[bool]
    """Whether the volume contains the files already and is only read, such as a claim that many nodes mount; nothing is
    then downloaded."""


class PodResourcesArgs(TypedDict, total=False):
    """Resources of the server's container besides GPUs."""

    requests: pulumi.Input[dict[str, Any]]
    """By resource, such as `cpu`, `memory` and `ephemeral-storage`; absent: 1 CPU and 4 GiB for each GPU."""
    limits: pulumi.Input[dict[str, Any]]


class PresetPodsArgs(TypedDict, total=False):
    """Settings of the pods that serve a preset. A Workspace's are over those of the Environment; lists and maps are
    joined."""

    image_pull_secrets: pulumi.Input[list[pulumi.Input[str]]]
    """Secrets in the Workspace's namespace, by name."""
    service_account_name: pulumi.Input[str]
    """ServiceAccount in the Workspace's namespace."""
    env: pulumi.Input[list[pulumi.Input[dict[str, Any]]]]
    """Environment variables of the server, as in a container's `env`: `name` with `value` or `valueFrom`."""
    runtime_class_name: pulumi.Input[str]
    """RuntimeClass, such as `nvidia` where that runtime is not the default."""
    priority_class_name: pulumi.Input[str]
    tolerations: pulumi.Input[list[pulumi.Input[dict[str, Any]]]]
    """Tolerations besides those for GPU nodes, as in a pod."""
    node_affinity: pulumi.Input[dict[str, Any]]
    """Node affinity besides the Workspace's own requirements, as `affinity.nodeAffinity` of a pod."""
    labels: pulumi.Input[dict[str, pulumi.Input[str]]]
    annotations: pulumi.Input[dict[str, pulumi.Input[str]]]
    resources: pulumi.Input[PodResourcesArgs]
    """Resources of the server's container besides GPUs."""
    options: pulumi.Input[dict[str, pulumi.Input[str]]]
    """Options of `vllm serve`, without the leading dashes; an empty string for an option without a value. Those that
    follow from the Workspace and the estimate are refused."""
    startup_seconds: pulumi.Input[int]
    """How long the server may take until it serves; absent: 30 minutes, and 10 seconds for each GiB of the files."""


class RolloutArgs(TypedDict, total=False):
    """How the pods of a Workspace are replaced when its template changes."""

    strategy: RolloutStrategy
    """`Recreate`: an old pod is deleted before its replacement starts, on the same nodes. `Surge`: the old pod serves
    until its replacement, on a temporary or free node, is Ready."""
    max_surge: pulumi.Input[int]
    """Temporary nodes at a time, for `Surge`; absent: 1."""
    deadline_seconds: pulumi.Input[int]
    """How long pods may make no progress until the temporary nodes go and the old pods stay; absent: the time that the
    server may take to start, and 10 minutes."""


class ServiceSettingsArgs(TypedDict, total=False):
    """The Service of a preset's replicas."""

    enabled: pulumi.Input[bool]
    name: pulumi.Input[str]
    """Absent: that of the Workspace."""
    port: pulumi.Input[int]


class DataSourceArgs(TypedDict, total=False):
    """Source of data."""

    name: pulumi.Input[str]
    """Name of the folder and, for an adapter, of the model in requests."""
    image: pulumi.Input[str]
    """An image with the data in its directory `/data`."""
    image_pull_secrets: pulumi.Input[list[pulumi.Input[str]]]
    volume_source: pulumi.Input[dict[str, Any]]
    """A volume with the data, as in a pod's `volumes` (`persistentVolumeClaim`, `nfs`, ...)."""
    urls: pulumi.Input[list[pulumi.Input[str]]]


class DataDestinationArgs(TypedDict, total=False):
    """Destination of the tuned weights."""

    image: pulumi.Input[str]
    image_push_secret: pulumi.Input[str]
    volume_source: pulumi.Input[dict[str, Any]]


class AdapterArgs(TypedDict, total=False):
    """A LoRA adapter of the model."""

    source: pulumi.Input[DataSourceArgs]
    strength: pulumi.Input[str]
    """Multiplier of the weights, 0 to 1, as text."""


class TuningArgs(TypedDict, total=False):
    """A model that is tuned."""

    preset: pulumi.Input[PresetArgs]
    method: TuningMethod
    config: pulumi.Input[str]
    """ConfigMap with the arguments of the tuning."""
    input: pulumi.Input[DataSourceArgs]
    output: pulumi.Input[DataDestinationArgs]


class InferenceArgs(TypedDict, total=False):
    """What to run: a preset, or a pod template."""

    preset: pulumi.Input[PresetArgs]
    template: pulumi.Input[dict[str, Any]]
    """A PodTemplateSpec, used unchanged in the workload."""
    replicas: pulumi.Input[int]
    per_replica_node_count: pulumi.Input[int]
    """Nodes that one replica spans; absent: computed from the need and the GPU memory of a node, in status."""
    context_length: pulumi.Input[int]
    """Context length that a preset's server serves (vLLM's max-model-len), tokens, whose KV cache must fit; absent:
    the longest that fits the nodes, up to the model's own, at least the Environment's."""
    stable_identity: pulumi.Input[bool]
    """Whether each replica keeps its name (a StatefulSet); replicas that span nodes always do."""
    gpu_memory_gib: pulumi.Input[float]
    """Total GPU memory that one replica needs, GiB; required if no preset determines it and nodes are to be
    checked."""
    adapters: pulumi.Input[list[pulumi.Input[AdapterArgs]]]
    """LoRA weights that are served besides the preset's own, each under its name."""
    config: pulumi.Input[str]
    """ConfigMap in the Workspace's namespace whose key vllm.yaml has options of the preset's server."""
    weights: pulumi.Input[WeightsArgs]
    """Where a preset's files are kept; absent: as the Environment sets it."""
    pods: pulumi.Input[PresetPodsArgs]
    """Settings of a preset's pods, over those of the Environment."""
    rollout: pulumi.Input[RolloutArgs]
    """How pods are replaced when the template changes: one after the other, or on a temporary or free node."""
    service: pulumi.Input[ServiceSettingsArgs]
    """The Service of a preset's replicas: by default, one of the Workspace's name on port 80."""


class WorkspaceArgs(ObjectArgs, total=False):
    """What a model needs: its nodes, and what runs on them. Give `inference` or `tuning`."""

    namespace: pulumi.Input[str]
    """Namespace of the object; absent: `default`."""
    labels: pulumi.Input[dict[str, pulumi.Input[str]]]
    """Labels of the object."""
    resource: pulumi.Input[ResourceArgs]
    inference: pulumi.Input[InferenceArgs]
    tuning: pulumi.Input[TuningArgs]
    """Same fields as in KAITO; always refused: fine-tuning is not implemented."""
    queue: pulumi.Input[str]
    """KAI queue; the pods get its label."""


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
