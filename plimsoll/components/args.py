"""The arguments of components, and the values in them, as classes for editors and type checkers.

Generated from the models: `PLIMSOLL_UPDATE_GOLDEN=1 pytest tests/components/test_args.py` writes it anew. A dictionary
is accepted in the place of each class, with the same names. Arguments with plain types determine which objects are
declared, so that Outputs are refused.
"""
# ruff: noqa: F821 (the words of a Literal, which it takes for names)

from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any, Required, TypedDict

import pulumi

if TYPE_CHECKING:
    from typing import Literal

    Later = Awaitable[str] | pulumi.Output[str]
    """The text of an Output may be any, and is validated when it is known."""
    IntOrString = str | int | Later
else:
    # The schema of the package has strings in these places: Pulumi's knows no unions.
    Later = IntOrString = pulumi.Input[str]

    class Literal:
        def __class_getitem__(cls, _):
            return str


class CapacityGateArgs(TypedDict, total=False):
    """Which share pods get the gate: those in some namespaces, and those of some queues in every namespace."""

    namespaces: list[str]
    """Namespaces whose pods with GPU shares get the gate."""
    queues: list[str]
    """Queues whose pods with GPU shares get the gate, in every namespace."""
    whole_gpus: bool
    """Whether pods that request whole GPUs get the gate, too, until their queue admits them."""


class TorchPolicyArgs(TypedDict, total=False):
    """PyTorch's `torchrun`."""

    num_proc_per_node: IntOrString
    """Processes of each node: `auto`, `cpu`, `gpu`, or a number; Trainer's default is `auto`."""
    elastic_policy: pulumi.Input[Mapping[str, Any]]


class MpiPolicyArgs(TypedDict, total=False):
    """A training by MPI."""

    num_proc_per_node: pulumi.Input[int]
    """Slots of each node; Trainer's default is 1."""
    mpi_implementation: pulumi.Input[str]
    ssh_auth_mount_path: pulumi.Input[str]
    run_launcher_as_node: pulumi.Input[bool]


class MLPolicyArgs(TypedDict, total=False):
    """The framework of a training and its nodes."""

    num_nodes: pulumi.Input[int]
    """Nodes of a training; Trainer's default is 1, and a TrainJob may set another number."""
    torch: pulumi.Input[TorchPolicyArgs]
    mpi: pulumi.Input[MpiPolicyArgs]
    flux: pulumi.Input[Mapping[str, Any]]
    jax: pulumi.Input[Mapping[str, Any]]
    xgboost: pulumi.Input[Mapping[str, Any]]


class KaiSchedulerArgs(TypedDict, total=False):
    """KAI Scheduler, which creates the PodGroup itself and needs only the queue."""

    queue: Required[pulumi.Input[str]]
    """A leaf queue."""


class CoschedulingArgs(TypedDict, total=False):
    """The coscheduling plugin of Kubernetes' scheduler-plugins; passed to Trainer unchanged."""

    schedule_timeout_seconds: pulumi.Input[int]


class VolcanoArgs(TypedDict, total=False):
    """The Volcano scheduler; passed to Trainer unchanged."""

    network_topology: pulumi.Input[Mapping[str, Any]]


class PodGroupPolicyArgs(TypedDict, total=False):
    """Exactly one of the three schedulers."""

    kai_scheduler: pulumi.Input[KaiSchedulerArgs]
    coscheduling: pulumi.Input[CoschedulingArgs]
    volcano: pulumi.Input[VolcanoArgs]


class TemplateMetadataArgs(TypedDict, total=False):
    """Labels and annotations of the JobSet."""

    labels: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    annotations: pulumi.Input[Mapping[str, pulumi.Input[str]]]


class ReplicatedJobArgs(TypedDict, total=False):
    """One kind of Job, with the template of its Pods."""

    name: Required[pulumi.Input[str]]
    replicas: pulumi.Input[int]
    """Number of Jobs; JobSet's default is 1, and Trainer accepts only 1 for a step of a TrainJob."""
    group_name: pulumi.Input[str]
    depends_on: pulumi.Input[list[pulumi.Input[Mapping[str, Any]]]]
    """`name` and `status` (`Ready`, `Complete`) of another Job that comes first."""
    template: Required[pulumi.Input[Mapping[str, Any]]]
    """A JobTemplateSpec, passed on unchanged except for the form of quantities."""


class JobSetSpecArgs(TypedDict, total=False):
    """Only `replicatedJobs` is validated here; the apiserver validates the rest."""

    replicated_jobs: Required[pulumi.Input[list[pulumi.Input[ReplicatedJobArgs]]]]
    network: pulumi.Input[Mapping[str, Any]]
    success_policy: pulumi.Input[Mapping[str, Any]]
    failure_policy: pulumi.Input[Mapping[str, Any]]
    startup_policy: pulumi.Input[Mapping[str, Any]]
    suspend: pulumi.Input[bool]
    coordinator: pulumi.Input[Mapping[str, Any]]
    managed_by: pulumi.Input[str]
    ttl_seconds_after_finished: pulumi.Input[int]


class JobSetTemplateArgs(TypedDict, total=False):
    """The JobSet of each TrainJob."""

    metadata: pulumi.Input[TemplateMetadataArgs]
    spec: Required[pulumi.Input[JobSetSpecArgs]]


class PlacementArgs(TypedDict, total=False):
    """Pods near which other pods are placed, and how near."""

    match_labels: Required[pulumi.Input[Mapping[str, pulumi.Input[str]]]]
    """Labels of those pods."""
    topology_key: Required[pulumi.Input[str]]
    """Label of nodes; nodes with the same value are near each other."""
    required: pulumi.Input[bool]
    """Whether pods stay pending if there is no room near those pods; absent: true."""


class ClusterTrainingRuntimeArgs(TypedDict, total=False):
    """How TrainJobs run: `spec` of both kinds, and the settings `near`, `schedulerName` and `kaiSchedulerField`, which
    change how it is written."""

    name: pulumi.Input[str]
    """Name of the object; absent: that of the resource."""
    patch_force: pulumi.Input[bool]
    """Whether an update overwrites fields that other field managers have changed (`pulumi.com/patchForce`). Absent or
    false: such an update fails with a conflict that names the field and its manager."""
    labels: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """Labels of the object."""
    ml_policy: pulumi.Input[MLPolicyArgs]
    pod_group_policy: pulumi.Input[PodGroupPolicyArgs]
    template: Required[pulumi.Input[JobSetTemplateArgs]]
    near: pulumi.Input[PlacementArgs]
    """Pods near which the training is placed, such as a DataCache's. The steps before the training are not affected."""
    scheduler_name: pulumi.Input[str]
    """The name under which KAI schedules in the cluster."""
    kai_scheduler_field: pulumi.Input[bool]
    """Whether the cluster's Trainer has `podGroupPolicy.kaiScheduler`, so that it is passed on.

    Absent: no; if a stack declares the runtime, as the cluster's CustomResourceDefinition shows. The Pods get the label
    and the scheduler's name in either case."""


class SecretKeyArgs(TypedDict, total=False):
    """A key of a Secret in the controller's namespace."""

    name: Required[pulumi.Input[str]]
    key: pulumi.Input[str]


class SecretStoreArgs(TypedDict, total=False):
    """A SecretProviderClass of the Secrets Store CSI driver, and the file that it mounts."""

    secret_provider_class: Required[pulumi.Input[str]]
    file: pulumi.Input[str]


class ControllerResourcesArgs(TypedDict, total=False):
    """Requests and limits of a container, as quantities."""

    cpu: pulumi.Input[str]
    memory: pulumi.Input[str]
    """Measured: 200 MiB at 5,000 nodes, and 220 MB for each pre-started update, with its plugin."""
    memory_limit: pulumi.Input[str]
    """Enough for four concurrent updates, as for 500 objects that are created at once."""


class TolerationArgs(TypedDict, total=False):
    """A toleration of pods (core/v1)."""

    key: pulumi.Input[str]
    operator: Literal["Exists", "Equal"] | Later
    value: pulumi.Input[str]
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | Later
    toleration_seconds: pulumi.Input[int]


class NetworkPeerArgs(TypedDict, total=False):
    """The pods that a NetworkPolicy admits."""

    namespace: Required[pulumi.Input[str]]
    pod_labels: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """Absent: all pods of the namespace."""


class UiResourcesArgs(TypedDict, total=False):
    """Requests and limits of the container of the pages."""

    cpu: pulumi.Input[str]
    memory: pulumi.Input[str]
    """Measured: 200 MiB at 5,000 nodes, and 220 MB for each pre-started update, with its plugin."""
    memory_limit: pulumi.Input[str]
    """Enough for four concurrent updates, as for 500 objects that are created at once."""


class UiArgs(TypedDict, total=False):
    """The pages of `plimsoll ui` as a Deployment."""

    replicas: pulumi.Input[int]
    proxy: pulumi.Input[NetworkPeerArgs]
    """The proxy, which authenticates people and forwards their requests. Absent: the NetworkPolicy admits no
    connections."""
    resources: pulumi.Input[UiResourcesArgs]
    env: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    service_account_annotations: pulumi.Input[Mapping[str, pulumi.Input[str]]]


class ControllerArgs(TypedDict, total=False):
    """The controller's Deployment, its NetworkPolicy, and the pages."""

    image: Required[pulumi.Input[str]]
    replicas: pulumi.Input[int]
    """One pod is active, the others are warm standbys."""
    backend: pulumi.Input[str]
    """URL of the Pulumi state: s3://, gs://, azblob://, or https:// of Pulumi's service. Absent: on the volume of
    `state_claim`."""
    state_claim: pulumi.Input[str]
    """PersistentVolumeClaim of the state; ReadWriteMany if there is more than one replica. A single replica ends before
    the next one starts, because another node could not mount its volume."""
    passphrase: pulumi.Input[SecretKeyArgs]
    passphrase_store: pulumi.Input[SecretStoreArgs]
    secrets_provider: pulumi.Input[str]
    """`passphrase`, or the URL of a key; then no passphrase is set."""
    shards: pulumi.Input[int]
    pre_started: pulumi.Input[int]
    lease_duration: pulumi.Input[float]
    lease_renew_deadline: pulumi.Input[float]
    lease_retry_period: pulumi.Input[float]
    env: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """Further environment variables, such as AWS_REGION; not those that other fields set."""
    pod_labels: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """Labels of the pods, such as `azure.workload.identity/use: "true"`."""
    resources: pulumi.Input[ControllerResourcesArgs]
    priority_class_name: pulumi.Input[str]
    node_selector: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    tolerations: pulumi.Input[list[pulumi.Input[TolerationArgs]]]
    termination_grace_period_seconds: pulumi.Input[int]
    """Time for a running update to end the operations that it has begun."""
    network_policy: pulumi.Input[bool]
    egress_ports: pulumi.Input[list[pulumi.Input[int]]]
    """TCP ports of the apiserver, the backend and the cloud."""
    metrics_port: pulumi.Input[int]
    health_probe_port: pulumi.Input[int]
    """Of the probes, for which the NetworkPolicy admits nobody: the kubelet is on the node of the pod."""
    scraper: pulumi.Input[NetworkPeerArgs]
    """The pods that scrape the metrics. Absent: the NetworkPolicy admits no connections."""
    ui: pulumi.Input[UiArgs]
    """The pages of `plimsoll ui` as a second Deployment, with a read-only account. Absent: none."""


class CacheTableArgs(TypedDict, total=False):
    """The Iceberg table that is cached."""

    metadata_location: Required[pulumi.Input[str]]
    """Location of the table's metadata, such as `s3://datasets/images/metadata.json`."""
    schema_name: Required[pulumi.Input[str]]
    table_name: Required[pulumi.Input[str]]


class CachePartArgs(TypedDict, total=False):
    """CPU and memory that the head, or each worker, requests."""

    cpu: Required[pulumi.Input[str]]
    memory: Required[pulumi.Input[str]]


class DataCacheArgs(TypedDict, total=False):
    """The table, and where it is placed."""

    name: pulumi.Input[str]
    """Name of the object; absent: that of the resource."""
    patch_force: pulumi.Input[bool]
    """Whether an update overwrites fields that other field managers have changed (`pulumi.com/patchForce`). Absent or
    false: such an update fails with a conflict that names the field and its manager."""
    namespace: pulumi.Input[str]
    """Namespace of the object; absent: `default`."""
    table: Required[pulumi.Input[CacheTableArgs]]
    workers: pulumi.Input[int]
    """Pods beside the head; absent: 3."""
    queue: Required[pulumi.Input[str]]
    """A leaf queue of KAI."""
    topology: Required[pulumi.Input[str]]
    """Name of the Topology."""
    level: Required[pulumi.Input[str]]
    """Label of the topology level: the whole cache is placed in one domain of this level, and the training in the same
    one."""
    required: pulumi.Input[bool]
    """Whether the cache stays pending if no domain of the level has room; absent: true."""
    image: pulumi.Input[str]
    head: pulumi.Input[CachePartArgs]
    worker: pulumi.Input[CachePartArgs]
    node_selector: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """Absent: nodes with GPUs, so that the training can be placed near the cache."""
    tolerations: pulumi.Input[list[pulumi.Input[TolerationArgs]]]
    scheduler_name: pulumi.Input[str]


class CelSelectorArgs(TypedDict, total=False):
    expression: Required[pulumi.Input[str]]
    """Is true for the devices that are selected."""


class DeviceSelectorArgs(TypedDict, total=False):
    cel: Required[pulumi.Input[CelSelectorArgs]]


class OpaqueConfigurationArgs(TypedDict, total=False):
    """Settings that a driver reads."""

    driver: Required[pulumi.Input[str]]
    parameters: Required[pulumi.Input[Mapping[str, Any]]]


class ClassConfigurationArgs(TypedDict, total=False):
    opaque: Required[pulumi.Input[OpaqueConfigurationArgs]]


class DeviceClassArgs(TypedDict, total=False):
    """Devices that have something in common, by which claims ask for them."""

    name: pulumi.Input[str]
    """Name of the object; absent: that of the resource."""
    patch_force: pulumi.Input[bool]
    """Whether an update overwrites fields that other field managers have changed (`pulumi.com/patchForce`). Absent or
    false: such an update fails with a conflict that names the field and its manager."""
    selectors: pulumi.Input[list[pulumi.Input[DeviceSelectorArgs]]]
    """All of them select each device of the class."""
    config: pulumi.Input[list[pulumi.Input[ClassConfigurationArgs]]]
    extended_resource_name: pulumi.Input[str]
    """Extended resource by which pods may request the devices without a claim."""


class NodeConditionArgs(TypedDict, total=False):
    """A condition of nodes."""

    type: Required[pulumi.Input[str]]
    status: Literal["True", "False", "Unknown"] | Later
    """The status by which the node is not usable."""


class LimitsArgs(TypedDict, total=False):
    """Upper limits of the environment; absent means unlimited."""

    gpus: pulumi.Input[int]
    """GPU devices in all NodeClaims that the controller created, and of the nodes that demand requests."""
    nodes: pulumi.Input[int]
    """NodeClaims that the controller created, and nodes that demand requests; absent: 5,000, which is what Kubernetes
    supports in one cluster."""
    workspace_nodes: pulumi.Input[int]
    """Nodes of one Workspace; absent: 1,000."""
    deletions_per_tick: pulumi.Input[int]
    """NodeClaims and workloads that one Plan may delete; the others wait for the next one."""


class NamespaceAccessArgs(TypedDict, total=False):
    """What Workspaces of some namespaces may use. An absent list allows everything, an empty one nothing."""

    namespaces: Required[pulumi.Input[list[pulumi.Input[str]]]]
    """Names of namespaces; `*` stands for every namespace without an entry."""
    node_pools: pulumi.Input[list[pulumi.Input[str]]]
    queues: pulumi.Input[list[pulumi.Input[str]]]
    instance_types: pulumi.Input[list[pulumi.Input[str]]]
    gpus: pulumi.Input[int]
    """Total GPU devices of the Workspaces of each namespace."""


class RuleSettingArgs(TypedDict, total=False):
    """Severity and options of one policy rule."""

    severity: Literal["error", "warning", "off"] | Later
    """Absent: that of the rule. `warning` is reported and refuses nothing; `off` disables the rule."""
    options: pulumi.Input[Mapping[str, Any]]
    """Options of the rule, as shown by `plimsoll policy list`."""


class ExemptionArgs(TypedDict, total=False):
    """Objects that are exempt from a rule, for a reason and until a date. At least one of kind, namespace and name is
    required."""

    rule: Required[pulumi.Input[str]]
    kind: pulumi.Input[str]
    namespace: pulumi.Input[str]
    name: pulumi.Input[str]
    reason: Required[pulumi.Input[str]]
    until: Required[pulumi.Input[str]]
    """The last day, in UTC."""


class PoliciesArgs(TypedDict, total=False):
    """The policy rules of the cluster."""

    admission: Literal["deny", "audit", "off"] | Later
    """What the cluster does with an object that breaks a rule of severity error: reject it, warn and write an audit
    annotation, or admit it. Rules of severity warning only warn."""
    rules: pulumi.Input[Mapping[str, pulumi.Input[RuleSettingArgs]]]
    """By the rule's name."""
    exemptions: pulumi.Input[list[pulumi.Input[ExemptionArgs]]]


class NodeClassRefArgs(TypedDict, total=False):
    """The cloud's node class that NodeClaims refer to (karpenter.sh/v1 nodeClassRef)."""

    group: Required[pulumi.Input[str]]
    kind: Required[pulumi.Input[str]]
    name: pulumi.Input[str]


class TaintArgs(TypedDict, total=False):
    """A taint of nodes."""

    key: Required[pulumi.Input[str]]
    value: pulumi.Input[str]
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | Later


class NodeClaimsArgs(TypedDict, total=False):
    """How NodeClaims are created."""

    node_class_ref: pulumi.Input[NodeClassRefArgs]
    """Absent: that of a NodePool that allows the instance type, else that of the cloud in the catalog."""
    taints: pulumi.Input[list[pulumi.Input[TaintArgs]]]
    capacity_type: Literal["spot", "on-demand", "reserved", "any"] | Later
    """How nodes for Workspaces are paid for, if a Workspace does not set it: `spot`, `on-demand`, `any` of them, or
    `reserved`; absent: as the NodePool says, and on-demand without one."""
    storage_gib: pulumi.Input[int]
    """Ephemeral storage that a NodeClaim requests, GiB, if no preset determines it; absent: none.

    A NodeClaim that requests more than its instance type reports is never launched."""
    launch_deadline_seconds: pulumi.Input[int]
    """How long the provider may take to launch an instance."""
    registration_deadline_seconds: pulumi.Input[int]
    """How long a NodeClaim may take until its node has registered, including the launch."""
    gpu_deadline_seconds: pulumi.Input[int]
    """How long a registered node may take until its GPUs are allocatable; Karpenter has no deadline for it."""
    retry_seconds: pulumi.Input[int]
    """Pause before a failed NodeClaim is replaced; doubled with each consecutive failure."""
    retry_limit_seconds: pulumi.Input[int]
    """The longest pause."""
    deletion_deadline_seconds: pulumi.Input[int]
    """How long a NodeClaim that is being deleted counts against `limits` and those of NodePools; absent: as long as it
    exists."""
    idle_seconds: pulumi.Input[int]
    """How long nodes that were created for a Workspace stay when it was scaled to 0 replicas; a Workspace may set less.
    """


class CatalogArgs(TypedDict, total=False):
    """Where instance types and their prices come from."""

    aws_region: pulumi.Input[str]
    """AWS region whose EC2 API is queried for instance types (ec2:DescribeInstanceTypes); absent: none is queried."""
    prices: pulumi.Input[Mapping[str, pulumi.Input[float]]]
    """Price of one instance per hour by instance type, in any one currency; suggestions are sorted by it."""
    currency: pulumi.Input[str]
    """Currency of `prices`, such as USD; built-in list prices are shown beside them only if it is theirs."""
    discount_percent: pulumi.Input[float]
    """How much less than built-in list prices is paid, in percent; `prices` are what is paid."""


class EstimatorArgs(TypedDict, total=False):
    """Each absent field has the estimator's default, which is KAITO's."""

    utilization: pulumi.Input[float]
    """Fraction of a GPU's memory that the inference server may use; absent: 0.84."""
    utilization_by_product: pulumi.Input[Mapping[str, pulumi.Input[float]]]
    """Utilization by GPU product, such as H100: 0.92; a key matches products that contain all of its words."""
    overhead_gib: pulumi.Input[float]
    """GiB of each GPU that CUDA, NCCL and graphs use; absent: 2.3."""
    activation_factor: pulumi.Input[float]
    """Factor for activations on a GPU's part of the weights; absent: 1.05."""
    weight_factor: pulumi.Input[float]
    """Size of the weights in memory, as a multiple of their files; absent: 1.02."""
    context_length: pulumi.Input[int]
    """Tokens whose KV cache must fit, if a Workspace does not set them; absent: 2048."""
    kv_value_bytes: pulumi.Input[float]
    """Bytes of one cached value: 1 if the server keeps its KV cache as fp8; absent: 2."""


class WeightsArgs(TypedDict, total=False):
    """Where the model's files are kept. Absent: on the node's disk, as long as the pod exists."""

    volume_source: Required[pulumi.Input[Mapping[str, Any]]]
    """A volume, as in a pod's `volumes` (`persistentVolumeClaim`, `hostPath`, `ephemeral`, ...). It is the server's
    Hugging Face cache (HF_HOME)."""
    read_only: pulumi.Input[bool]
    """Whether the volume contains the files already and is only read, such as a claim that many nodes mount; nothing is
    then downloaded."""


class PodResourcesArgs(TypedDict, total=False):
    """Resources of the server's container besides GPUs."""

    requests: pulumi.Input[Mapping[str, Any]]
    """By resource, such as `cpu`, `memory` and `ephemeral-storage`; absent: 1 CPU and 4 GiB for each GPU."""
    limits: pulumi.Input[Mapping[str, Any]]


class PresetPodsArgs(TypedDict, total=False):
    """Settings of the pods that serve a preset. A Workspace's are over those of the Environment; lists and maps are
    joined."""

    image_pull_secrets: pulumi.Input[list[pulumi.Input[str]]]
    """Secrets in the Workspace's namespace, by name."""
    service_account_name: pulumi.Input[str]
    """ServiceAccount in the Workspace's namespace."""
    env: pulumi.Input[list[pulumi.Input[Mapping[str, Any]]]]
    """Environment variables of the server, as in a container's `env`: `name` with `value` or `valueFrom`."""
    runtime_class_name: pulumi.Input[str]
    """RuntimeClass, such as `nvidia` where that runtime is not the default."""
    priority_class_name: pulumi.Input[str]
    tolerations: pulumi.Input[list[pulumi.Input[Mapping[str, Any]]]]
    """Tolerations besides those for GPU nodes, as in a pod."""
    node_affinity: pulumi.Input[Mapping[str, Any]]
    """Node affinity besides the Workspace's own requirements, as `affinity.nodeAffinity` of a pod."""
    labels: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    annotations: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    resources: pulumi.Input[PodResourcesArgs]
    """Resources of the server's container besides GPUs."""
    security_context: pulumi.Input[Mapping[str, Any]]
    """As `securityContext` of a pod; its fields are over those that follow from `inferenceUser` of the Environment."""
    container_security_context: pulumi.Input[Mapping[str, Any]]
    """As `securityContext` of a container, for each container of the pods; likewise."""
    options: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """Options of `vllm serve`, without the leading dashes; an empty string for an option without a value. Those that
    follow from the Workspace and the estimate are refused."""
    startup_seconds: pulumi.Input[int]
    """How long the server may take until it serves; absent: 30 minutes, and 10 seconds for each GiB of the files."""


class DeclaredPresetArgs(TypedDict, total=False):
    """A preset that Workspaces may name."""

    size_gib: Required[pulumi.Input[float]]
    """Weights as files, GiB: `metadata.total_size` of the safetensors index."""
    config: Required[pulumi.Input[Mapping[str, Any]]]
    """Fields of the model's `config.json`; those on layers, heads and context are read."""
    name: Required[pulumi.Input[str]]
    aliases: pulumi.Input[list[pulumi.Input[str]]]
    repository: Required[pulumi.Input[str]]
    """The model's name on Hugging Face, or a path in the server's image or volume."""
    spans_nodes: pulumi.Input[bool]
    """Whether one replica may run on several nodes."""
    gated: pulumi.Input[bool]
    """Whether the model is available only to users who accepted its license, so that Workspaces need a token."""
    options: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """Options of vLLM, without the leading dashes; an empty string for an option without a value."""


class ModelHubArgs(TypedDict, total=False):
    """The hub from which the controller reads models, with Hugging Face's URL layout."""

    endpoint: pulumi.Input[str]
    """Address of the hub, or of a mirror (Hugging Face's HF_ENDPOINT)."""
    organizations: pulumi.Input[list[pulumi.Input[str]]]
    """Owners of the models that may be named, the part before the slash; absent: all."""
    token_organizations: pulumi.Input[list[pulumi.Input[str]]]
    """Owners of the gated and private models that are read with the controller's HF_TOKEN. Who may create a Workspace
    learns the size and shape of any of their models by naming it; absent: none."""
    deadline_seconds: pulumi.Input[int]
    """How long reading one model may take."""
    private_networks: pulumi.Input[list[pulumi.Input[str]]]
    """Networks (CIDR) besides public addresses that the hub's name, and what the hub redirects to, may be in, such as
    that of a mirror in the cluster. An endpoint that is an address itself is asked there."""


class HeadroomArgs(TypedDict, total=False):
    """Nodes that are kept ready in advance. The autoscaler replaces them when pods use them."""

    name: Required[pulumi.Input[str]]
    node_pool: Required[pulumi.Input[str]]
    instance_type: Required[pulumi.Input[str]]
    gpus: Required[pulumi.Input[int]]
    """GPU devices of one node."""
    nodes: Required[pulumi.Input[int]]


class SharedDevicesArgs(TypedDict, total=False):
    """Devices that the nodes of a NodePool will have in place of whole GPUs, and for which capacity is requested.

    They must be what the device plugin of the nodes announces."""

    node_pool: Required[pulumi.Input[str]]
    instance_types: pulumi.Input[list[pulumi.Input[str]]]
    """Absent: every type of the NodePool."""
    resource: Required[pulumi.Input[str]]
    """The extended resource that pods request, such as `nvidia.com/gpu.shared` or `nvidia.com/mig-1g.10gb`."""
    per_gpu: Required[pulumi.Input[int]]
    """Devices that one GPU is announced as: replicas, or slices."""


class DemandArgs(TypedDict, total=False):
    """Capacity for pods that share GPUs."""

    provisioner: Literal["none", "trigger-pod", "capacity-buffer", "provisioning-request"] | Later
    """`none`: demand is planned and reported, and no capacity is requested."""
    claims: Literal["plan", "observe", "off"] | Later
    """Pods that claim GPUs (Dynamic Resource Allocation): `plan` requests nodes for them, unless Karpenter plans claims
    itself; `observe` only reports them; `off` ignores them."""
    schedulers: pulumi.Input[list[pulumi.Input[str]]]
    """Schedulers whose unschedulable pods are planned for."""
    without_queue: Literal["refuse", "allow"] | Later
    """Whether capacity is provided for pods without a queue in a cluster that declares Queues: those of schedulers that
    know none."""
    classes_per_namespace: pulumi.Input[int]
    """Classes of pods (by node selector, affinity, tolerations, queue and scheduler) of one namespace that capacity is
    planned for. The pods of further ones are refused, so that one namespace does not make plans slow for all."""
    assumed_share_milli: pulumi.Input[int]
    """Thousandths of a GPU that a share in MiB counts as, if the memory of no GPU is known."""
    gpu_tflops: pulumi.Input[Mapping[str, pulumi.Input[float]]]
    """TFLOPS (FP16, dense) of one GPU by product, where they differ from the built-in table or are not in it. Shares in
    TFLOPS are fractions of it."""
    surplus_gpus: pulumi.Input[int]
    """Most GPUs that may be requested with one node beyond what smaller instance types would need, while those failed
    to launch and are skipped."""
    grace_seconds: pulumi.Input[int]
    """How long a pod must be unschedulable before a node is requested for it. A rolling update that frees GPUs in the
    meantime then requests none."""
    wait_seconds: pulumi.Input[int]
    """How long a pod waits for requested nodes that suffice for all pods, if they were requested after it was created;
    then a node is requested for it anyway."""
    namespace: pulumi.Input[str]
    """Namespace of trigger pods and of the other provisioners' objects; the foundation creates it with its admission
    rules."""
    image: pulumi.Input[str]
    """Image of trigger pods, which never run."""
    scheduler_name: pulumi.Input[str]
    """Scheduler name of trigger pods: no scheduler may use it, so that trigger pods are never bound."""
    label_prefix: pulumi.Input[str]
    """Prefix of the labels and annotations that describe a trigger pod."""
    deadline_seconds: pulumi.Input[int]
    """How long the nodes of a request may take to register."""
    retries: pulumi.Input[int]
    """Number of new requests after the capacity for a demand failed to arrive in time."""
    retry_seconds: pulumi.Input[int]
    """How long an instance type that failed to launch is skipped; others that fit are requested meanwhile."""
    pause_seconds: pulumi.Input[int]
    """How long no capacity is requested for a demand after its last retry; then it starts again."""
    retention_seconds: pulumi.Input[int]
    """How long the GPUDemand of a completed demand is kept."""
    placement: pulumi.Input[Mapping[str, Literal["binpack", "spread"] | Later]]
    """How schedulers place pods on the nodes of a NodePool, by its name: `binpack`, or `spread`, breadth first; `*` for
    all others. Plans promise the places that such a scheduler leaves, and request nodes accordingly. It configures no
    scheduler."""
    headroom: pulumi.Input[list[pulumi.Input[HeadroomArgs]]]
    """Only for the provisioner `capacity-buffer`."""
    shared_devices: pulumi.Input[list[pulumi.Input[SharedDevicesArgs]]]
    """Devices by time-slicing, MPS or MIG for which capacity is requested, by NodePool; only with the provisioner
    `trigger-pod`. The environment stack writes them where it declares no NodeOverlays."""


class EnvironmentArgs(TypedDict, total=False):
    """The settings of a cluster."""

    name: pulumi.Input[str]
    """Name of the object; absent: that of the resource."""
    patch_force: pulumi.Input[bool]
    """Whether an update overwrites fields that other field managers have changed (`pulumi.com/patchForce`). Absent or
    false: such an update fails with a conflict that names the field and its manager."""
    node_auto_provisioning: Literal["enabled", "disabled"] | Later
    provisioner: Literal["byo", "nodeclaim", "static-nodepool"] | Later
    """Absent: `byo` where auto-provisioning is disabled, `nodeclaim` where it is enabled."""
    gpu_resource: pulumi.Input[str]
    """The extended resource that pods request."""
    unhealthy_conditions: pulumi.Input[list[pulumi.Input[NodeConditionArgs]]]
    """Conditions by which a node is not usable, besides those of Karpenter's node repair on AWS and of
    node-problem-detector."""
    limits: pulumi.Input[LimitsArgs]
    access: pulumi.Input[list[pulumi.Input[NamespaceAccessArgs]]]
    """Absent: every namespace may use everything."""
    reserved_label_prefixes: pulumi.Input[list[pulumi.Input[str]]]
    """Label keys with these prefixes are not allowed in a Workspace's selector, nor in its template's labels."""
    node_label_prefixes: pulumi.Input[list[pulumi.Input[str]]]
    """Prefixes (the part before the slash) of the labels that a Workspace's selector may set on the nodes that are
    provisioned for it; an empty one stands for keys without a prefix. Those of Kubernetes, Karpenter, schedulers and
    NVIDIA are never allowed."""
    admission: Literal["deny", "audit", "off"] | Later
    """What the cluster does with a Workspace that does not fit the mode or uses reserved labels: reject it, warn and
    write an audit annotation, or admit it. The controller's verdict is the same in any case."""
    policies: pulumi.Input[PoliciesArgs]
    """Settings of the policy rules, and exemptions."""
    node_claims: pulumi.Input[NodeClaimsArgs]
    catalog: pulumi.Input[CatalogArgs]
    estimator: pulumi.Input[EstimatorArgs]
    queue_scheduler: pulumi.Input[str]
    """Scheduler of the pods of a Workspace that names a queue."""
    node_pool_label_key: pulumi.Input[str]
    """Key of the label with which KAI divides a cluster among SchedulingShards: as `spec.global.nodePoolLabelKey` of
    KAI's Config; empty: its schedulers see everything."""
    inference_image: pulumi.Input[str]
    """Image that serves presets."""
    inference_user: pulumi.Input[int]
    """UID that runs the pods of presets, with the security context that Pod Security's level `restricted` asks for, in
    the group 0. 2000 is the user of vLLM's images, and its home is /home/vllm; 0: the image's own user, without a
    security context."""
    byo_instance_type: Literal["refuse", "narrow"] | Later
    """What `resource.instanceType` means on existing nodes (BYO): `refuse`: it must be empty; `narrow`: of the nodes
    that the selector matches, only those with this instance type as their label are used."""
    partial_replicas: Literal["allow", "refuse"] | Later
    """Whether a Workspace is accepted on existing nodes (BYO) if not all of its replicas fit now; the others wait."""
    weights: pulumi.Input[WeightsArgs]
    """Where the files of presets are kept, for Workspaces that do not set it; absent: on the node's disk, as long as
    the pod exists."""
    preset_pods: pulumi.Input[PresetPodsArgs]
    """Settings of the pods that serve presets; a Workspace's own are over them."""
    presets: pulumi.Input[list[pulumi.Input[DeclaredPresetArgs]]]
    """Models that Workspaces may name besides those of the built-in catalog; they take precedence over it."""
    model_hub: pulumi.Input[ModelHubArgs]
    """The hub from which the controller reads models that Workspaces name as `org/name` and that are not declared;
    absent: none, and such a Workspace is refused."""
    demand: pulumi.Input[DemandArgs]
    """How capacity is provided for pods with GPU requests that the cluster cannot place."""


class FoundationArgs(TypedDict, total=False):
    """Namespaces and accounts of the controller."""

    labels: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """Labels of the namespace plimsoll-system, such as those of Pod Security."""
    service_account_annotations: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """Annotations of the controller's service account, such as those of a cloud identity."""
    trigger_namespace: pulumi.Input[str]
    """Namespace of capacity requests, `spec.demand.namespace` of the Environment; the foundation creates it. Absent:
    `plimsoll-triggers`."""
    served_namespaces: list[str]
    """Existing namespaces in which the controller may create workloads and patch pods, by a RoleBinding in each;
    `access` of the Environment must name no others. Absent: all namespaces, by a ClusterRoleBinding."""


class ExistingGpuSoftwareArgs(TypedDict, total=False):
    """Components that the cluster already runs and that are therefore not installed. The names of DaemonSets are for
    messages only."""

    device_plugin: list[str]
    gfd: list[str]
    nfd: list[str]
    gpu_operator: list[str]
    """The operator installs all three itself."""


class DevicePluginArgs(TypedDict, total=False):
    """The device plugin, which announces `nvidia.com/gpu` to the kubelet."""

    enabled: bool


class GfdArgs(TypedDict, total=False):
    """GPU Feature Discovery, which writes the `nvidia.com/gpu.*` labels."""

    mode: Literal["auto", "on", "off"]
    """auto: on if node auto-provisioning is disabled."""
    no_timestamp: pulumi.Input[bool]
    """Whether the label `nvidia.com/gfd.timestamp` is left out."""
    sleep_interval: pulumi.Input[str]
    """Time between two runs; absent: 60s."""


class PluginConfigArgs(TypedDict, total=False):
    """Named configurations of the device plugin: time-slicing, MPS, MIG."""

    map: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """Configurations (YAML) by name."""
    default: pulumi.Input[str]
    """Name of the configuration for nodes without the label `nvidia.com/device-plugin.config`."""


class ImageArgs(TypedDict, total=False):
    """The chart's image."""

    repository: pulumi.Input[str]
    tag: pulumi.Input[str]
    pull_policy: Literal["Always", "IfNotPresent", "Never"] | Later


class CdiArgs(TypedDict, total=False):
    """The Container Device Interface."""

    nvidia_hook_path: pulumi.Input[str]
    """nvidia-cdi-hook or nvidia-ctk on the nodes."""


class GpuDiscoveryArgs(TypedDict, total=False):
    """Where the chart comes from, which parts of it are installed, and its values."""

    auto_provisioning: bool
    """Whether node auto-provisioning is enabled; if it is not, the mode `auto` of GFD installs GFD."""
    existing: ExistingGpuSoftwareArgs
    pool_taints: pulumi.Input[list[pulumi.Input[TaintArgs]]]
    """Taints of the pools that hold the GPUs: passed on as tolerations."""
    enabled: bool
    chart: str
    """A chart's name in `repository`, an `oci://` reference, or a local path that starts with `.` or `/`."""
    repository: str
    """URL of a chart repository; absent: NVIDIA's, where `chart` is a name."""
    version: str
    """An exact version, not a range, so that a preview and a later update render the same objects."""
    namespace: str
    create_namespace: bool
    allow_default_namespace: bool
    nvidia_device_plugin: DevicePluginArgs
    gfd: GfdArgs
    nfd: Literal["auto", "on", "off"]
    """Node Feature Discovery, which turns GFD's findings into labels. auto: with GFD, unless the cluster has one."""
    mig_strategy: Literal["none", "single", "mixed"] | Later
    config: pulumi.Input[PluginConfigArgs]
    node_overlays: pulumi.Input[bool]
    """Whether the stack declares NodeOverlays for shared GPUs, which Karpenter reads with its gate NodeOverlay."""
    runtime_class_name: pulumi.Input[str]
    tolerations: pulumi.Input[list[pulumi.Input[TolerationArgs]]]
    """In addition to the chart's own and to those for the taints of the NodePools."""
    node_selector: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    affinity: pulumi.Input[Mapping[str, Any]]
    """Absent: the chart's own; a node needs the label `feature.node.kubernetes.io/pci-10de.present` or
    `nvidia.com/gpu.present`."""
    image: pulumi.Input[ImageArgs]
    image_pull_secrets: pulumi.Input[list[pulumi.Input[str]]]
    device_list_strategy: pulumi.Input[str]
    """envvar, volume-mounts, cdi-annotations, cdi-cri; several with commas."""
    cdi: pulumi.Input[CdiArgs]


class GuardArgs(TypedDict, total=False):
    """What a guard protects."""

    name: pulumi.Input[str]
    """Name of the ConfigMap; absent: that of the resource."""
    layer: Required[Literal["foundation", "environment"] | Later]
    """`foundation`: cannot be deleted while an Environment exists; `environment`: while an Environment has capacity."""
    environment: pulumi.Input[str]
    """Of the layer `environment`: the Environment whose capacity counts; absent: any."""
    explanation: Required[pulumi.Input[str]]
    """What to do instead of deleting the object, for people who read it."""


class MonitoringArgs(TypedDict, total=False):
    """Namespace and thresholds of the alerts, and which other objects are declared. By default, alerts on slow nodes
    fire before the deadline of trigger pods."""

    namespace: pulumi.Input[str]
    """Namespace of the PrometheusRule; absent: plimsoll-system."""
    labels: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """Those by which the Prometheus selects its rules, such as `release: prometheus`."""
    pod_monitor: bool
    """Whether a PodMonitor is declared, too; absent: true."""
    pod_labels: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """Labels of the controller's pods, whose port `metrics` is scraped; absent: `app.kubernetes.io/name: plimsoll`."""
    dashboard: bool
    """Whether a ConfigMap with the Grafana dashboard is declared, too; absent: true."""
    dashboard_labels: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """Those by which Grafana's sidecar finds dashboards; absent: `grafana_dashboard: "1"`."""
    trigger_pending_seconds: pulumi.Input[int]
    """How long a trigger pod may wait for its node."""
    node_claim_failure_rate: pulumi.Input[float]
    """Part of the NodeClaims of the last half hour that may fail."""
    scaling_seconds: pulumi.Input[int]
    """95th percentile of the time until the GPUs of a node are allocatable; times above half an hour count as half an
    hour."""
    plan_seconds: pulumi.Input[int]
    """How long the controller may make no plan; without changes it plans every half minute."""
    cleanup_failures: pulumi.Input[int]
    """Deletions that may fail in a quarter of an hour."""


class RequirementArgs(TypedDict, total=False):
    """One requirement on the instance types and nodes of a pool."""

    key: Required[pulumi.Input[str]]
    operator: Required[Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"] | Later]
    values: pulumi.Input[list[pulumi.Input[str]]]
    min_values: pulumi.Input[int]
    """Minimum number of different values among which Karpenter must be able to choose."""


class BudgetArgs(TypedDict, total=False):
    """How many nodes may be disrupted at once, and when."""

    nodes: pulumi.Input[str]
    """A number, or a share such as `10%`."""
    reasons: pulumi.Input[list[Literal["Underutilized", "Empty", "Drifted"] | Later]]
    schedule: pulumi.Input[str]
    """When the budget applies, in crontab format; requires `duration`."""
    duration: pulumi.Input[str]


class DisruptionArgs(TypedDict, total=False):
    """When Karpenter may disrupt a node."""

    consolidation_policy: Literal["WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"] | Later
    consolidate_after: pulumi.Input[str]
    """Time without added or removed pods after which a node may be consolidated. A new node is empty until its driver
    is installed and its GPUs are discovered, which takes minutes; with a shorter time Karpenter deletes it before."""
    budgets: pulumi.Input[list[pulumi.Input[BudgetArgs]]]


class NodePoolArgs(TypedDict, total=False):
    """A pool of nodes that Karpenter may launch.

    Karpenter compares the template with each node: a change replaces every node of the pool. Labels and annotations
    whose values change by themselves (times, hashes) are therefore refused."""

    name: pulumi.Input[str]
    """Name of the object; absent: that of the resource."""
    patch_force: pulumi.Input[bool]
    """Whether an update overwrites fields that other field managers have changed (`pulumi.com/patchForce`). Absent or
    false: such an update fails with a conflict that names the field and its manager."""
    requirements: pulumi.Input[list[pulumi.Input[RequirementArgs]]]
    node_class_ref: Required[pulumi.Input[NodeClassRefArgs]]
    labels: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """Labels of the nodes."""
    annotations: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """Annotations of the nodes."""
    taints: pulumi.Input[list[pulumi.Input[TaintArgs]]]
    startup_taints: pulumi.Input[list[pulumi.Input[TaintArgs]]]
    """Taints that are removed, for example by a DaemonSet, when the node is prepared."""
    limits: pulumi.Input[Mapping[str, IntOrString]]
    """Quantity of each resource that the pool may hold at most, such as `nvidia.com/gpu: 16`, and `nodes`."""
    disruption: pulumi.Input[DisruptionArgs]
    expire_after: pulumi.Input[str]
    """Age at which a node is replaced; absent: Karpenter's default, 720h."""
    termination_grace_period: pulumi.Input[str]
    weight: pulumi.Input[int]
    """NodePools with a higher weight are tried first."""
    replicas: pulumi.Input[int]
    """Makes the pool a static one that always holds this many nodes (Karpenter's gate StaticCapacity)."""


class ValidRangeArgs(TypedDict, total=False):
    """Amounts between two; others are rounded up to the next."""

    min: Required[pulumi.Input[str]]
    max: pulumi.Input[str]
    step: pulumi.Input[str]
    """Between two amounts, from `min` on."""


class RequestPolicyArgs(TypedDict, total=False):
    """As `requestPolicy` of Kubernetes."""

    default: pulumi.Input[str]
    """What a claim takes that does not ask for an amount. Absent: all."""
    valid_values: pulumi.Input[list[pulumi.Input[str]]]
    """The amounts that a claim may take, ascending. Others are rounded up to the next."""
    valid_range: pulumi.Input[ValidRangeArgs]


class ClaimDevicePartArgs(TypedDict, total=False):
    """Devices that claims may have instead of a whole one, such as MIG slices of a GPU."""

    strings: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """Attributes of text, by which claims select them, such as `productName`. A claim that selects by another attribute
    gets no capacity."""
    versions: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """Attributes that are semantic versions, such as `cudaComputeCapability`."""
    ints: pulumi.Input[Mapping[str, pulumi.Input[int]]]
    """Attributes that are whole numbers."""
    bools: pulumi.Input[Mapping[str, pulumi.Input[bool]]]
    """Attributes that are true or false."""
    capacity: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """What each has, such as `memory`."""
    number: Required[pulumi.Input[int]]
    """So many can be had of one whole device, if claims take no others."""
    placements: pulumi.Input[list[pulumi.Input[Mapping[str, pulumi.Input[str]]]]]
    """What one consumes of `counters` at each of its placements. Claims for different parts of one device are planned
    by them."""


class ClaimDevicesArgs(TypedDict, total=False):
    """Devices that are alike, which a driver of Dynamic Resource Allocation will publish of each such node."""

    strings: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """Attributes of text, by which claims select them, such as `productName`. A claim that selects by another attribute
    gets no capacity."""
    versions: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """Attributes that are semantic versions, such as `cudaComputeCapability`."""
    ints: pulumi.Input[Mapping[str, pulumi.Input[int]]]
    """Attributes that are whole numbers."""
    bools: pulumi.Input[Mapping[str, pulumi.Input[bool]]]
    """Attributes that are true or false."""
    capacity: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """What each has, such as `memory`."""
    driver: Required[pulumi.Input[str]]
    """Such as `gpu.nvidia.com`."""
    count: pulumi.Input[int]
    """Devices of one node. Absent: the GPUs that the catalog has for the instance type."""
    allow_multiple_allocations: pulumi.Input[bool]
    """Whether several claims may have parts of one."""
    request_policies: pulumi.Input[Mapping[str, pulumi.Input[RequestPolicyArgs]]]
    """How much of a capacity a claim takes; only with `allowMultipleAllocations`. A claim takes all of a capacity
    without a policy, unless it asks for an amount."""
    distinct_attributes: pulumi.Input[list[pulumi.Input[str]]]
    """Attributes that each device of a node has with a value of its own, such as `uuid`: claims with
    `distinctAttribute` are planned by these."""
    attribute_groups: pulumi.Input[Mapping[str, pulumi.Input[list[pulumi.Input[int]]]]]
    """Attributes of the place of a device, such as `resource.kubernetes.io/numaNode`: how many devices of a node have
    the same value, for each value. Claims with `matchAttribute` are planned by these."""
    parts: pulumi.Input[list[pulumi.Input[ClaimDevicePartArgs]]]
    """Where the driver divides each device by counters (`consumesCounters`): what claims may have instead of it."""
    counters: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """What the parts of one device consume, in total (`sharedCounters`)."""


class NodeProfileArgs(TypedDict, total=False):
    """Nodes of an instance type in a NodePool, as they are declared."""

    name: pulumi.Input[str]
    """Name of the object; absent: that of the resource."""
    patch_force: pulumi.Input[bool]
    """Whether an update overwrites fields that other field managers have changed (`pulumi.com/patchForce`). Absent or
    false: such an update fails with a conflict that names the field and its manager."""
    node_pool: Required[pulumi.Input[str]]
    instance_type: Required[pulumi.Input[str]]
    labels: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """Labels that discovery will write on such nodes, such as `nvidia.com/gpu.product`."""
    allocatable: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """Allocatable amounts of such nodes, such as `cpu`, `memory`, `pods`, `ephemeral-storage`."""
    claim_devices: pulumi.Input[ClaimDevicesArgs]
    """GPUs that pods get by claims (Dynamic Resource Allocation), where no device plugin announces them."""


class QueueResourceArgs(TypedDict, total=False):
    """One resource of a queue. The unit is the resource's: GPU devices, CPU millicores, memory MB (10^6 bytes).

    -1 means unlimited; a quota of 0 guarantees nothing; a limit of 0 admits nothing."""

    quota: pulumi.Input[float]
    over_quota_weight: pulumi.Input[float]
    limit: pulumi.Input[float]


class QueueResourcesArgs(TypedDict, total=False):
    """GPU devices, CPU millicores, memory in MB of 10^6 bytes."""

    gpu: pulumi.Input[QueueResourceArgs]
    """GPU devices; a fraction is allowed."""
    cpu: pulumi.Input[QueueResourceArgs]
    """Millicores."""
    memory: pulumi.Input[QueueResourceArgs]
    """MB of 10^6 bytes."""


class QueueArgs(TypedDict, total=False):
    """Quotas, limits and priority of a queue: its `spec`, as KAI v0.17 reads it."""

    name: pulumi.Input[str]
    """Name of the object; absent: that of the resource."""
    patch_force: pulumi.Input[bool]
    """Whether an update overwrites fields that other field managers have changed (`pulumi.com/patchForce`). Absent or
    false: such an update fails with a conflict that names the field and its manager."""
    labels: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """Labels of the object."""
    write_all_amounts: bool
    """Whether amounts that are not set are written with their defaults; absent: true. KAI reads an absent amount as 0.
    Set false for an imported Queue that must not change."""
    display_name: pulumi.Input[str]
    parent_queue: pulumi.Input[str]
    priority: pulumi.Input[int]
    """Higher is served first; KAI's default is 100."""
    resources: pulumi.Input[QueueResourcesArgs]
    preempt_min_runtime: pulumi.Input[str]
    """A duration such as `10m`, before which work of this queue is not preempted."""
    reclaim_min_runtime: pulumi.Input[str]
    """A duration such as `10m`, before which work of this queue is not reclaimed."""


class QueueAdmissionArgs(TypedDict, total=False):
    """The declared queues, and what happens to a TrainJob that names another queue."""

    leaves: pulumi.Input[list[pulumi.Input[str]]]
    """Leaf queues."""
    parents: pulumi.Input[list[pulumi.Input[str]]]
    """Queues with child queues, which pods cannot use."""
    action: Literal["deny", "audit"] | Later
    """What happens to a TrainJob that names another queue: it is refused, or a warning and an audit annotation are
    written."""


class DeviceTolerationArgs(TypedDict, total=False):
    """A taint of devices that a request tolerates."""

    key: pulumi.Input[str]
    """Absent: of each key; needs the operator Exists."""
    operator: Literal["Exists", "Equal"] | Later
    """Absent: Equal."""
    value: pulumi.Input[str]
    effect: Literal["NoSchedule", "NoExecute"] | Later
    """Absent: each effect."""
    toleration_seconds: pulumi.Input[int]
    """How long a taint with the effect NoExecute is tolerated; absent: always."""


class CapacityRequirementsArgs(TypedDict, total=False):
    requests: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """What each device has at least, such as `memory`; of a device that several claims share, what the claim takes."""


class ExactDeviceRequestArgs(TypedDict, total=False):
    device_class_name: Required[pulumi.Input[str]]
    selectors: pulumi.Input[list[pulumi.Input[DeviceSelectorArgs]]]
    """All of them select each device."""
    allocation_mode: Literal["ExactCount", "All"] | Later
    """`All`: every device of the node that is selected. Absent: `ExactCount`."""
    count: pulumi.Input[int]
    """Number of devices; absent: 1."""
    tolerations: pulumi.Input[list[pulumi.Input[DeviceTolerationArgs]]]
    capacity: pulumi.Input[CapacityRequirementsArgs]
    admin_access: pulumi.Input[bool]
    """Whether devices are looked at only, which takes none: for monitoring, in namespaces that are labelled for it."""


class DeviceSubRequestArgs(TypedDict, total=False):
    """One of several alternatives of a request."""

    device_class_name: Required[pulumi.Input[str]]
    selectors: pulumi.Input[list[pulumi.Input[DeviceSelectorArgs]]]
    """All of them select each device."""
    allocation_mode: Literal["ExactCount", "All"] | Later
    """`All`: every device of the node that is selected. Absent: `ExactCount`."""
    count: pulumi.Input[int]
    """Number of devices; absent: 1."""
    tolerations: pulumi.Input[list[pulumi.Input[DeviceTolerationArgs]]]
    capacity: pulumi.Input[CapacityRequirementsArgs]
    name: Required[pulumi.Input[str]]


class DeviceRequestArgs(TypedDict, total=False):
    """`exactly`, or `firstAvailable`: the first of several that can be had."""

    name: Required[pulumi.Input[str]]
    exactly: pulumi.Input[ExactDeviceRequestArgs]
    first_available: pulumi.Input[list[pulumi.Input[DeviceSubRequestArgs]]]


class DeviceConstraintArgs(TypedDict, total=False):
    """What devices of a claim have in common, or not."""

    requests: pulumi.Input[list[pulumi.Input[str]]]
    """Names of requests, or `request/alternative`; absent: all."""
    match_attribute: pulumi.Input[str]
    """All devices have the same value of it."""
    distinct_attribute: pulumi.Input[str]
    """No two devices have the same value of it."""


class ClaimConfigurationArgs(TypedDict, total=False):
    requests: pulumi.Input[list[pulumi.Input[str]]]
    """Names of requests, or `request/alternative`; absent: all."""
    opaque: Required[pulumi.Input[OpaqueConfigurationArgs]]


class DeviceClaimArgs(TypedDict, total=False):
    """Devices that one claim asks for, all of one node."""

    requests: Required[pulumi.Input[list[pulumi.Input[DeviceRequestArgs]]]]
    constraints: pulumi.Input[list[pulumi.Input[DeviceConstraintArgs]]]
    config: pulumi.Input[list[pulumi.Input[ClaimConfigurationArgs]]]


class ClaimMetadataArgs(TypedDict, total=False):
    """Labels and annotations of the claims."""

    labels: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    annotations: pulumi.Input[Mapping[str, pulumi.Input[str]]]


class ResourceClaimTemplateArgs(TypedDict, total=False):
    """A template of which each pod that names it gets a claim of its own. It cannot be changed once it exists."""

    name: pulumi.Input[str]
    """Name of the object; absent: that of the resource."""
    patch_force: pulumi.Input[bool]
    """Whether an update overwrites fields that other field managers have changed (`pulumi.com/patchForce`). Absent or
    false: such an update fails with a conflict that names the field and its manager."""
    namespace: pulumi.Input[str]
    """Namespace of the object; absent: `default`."""
    labels: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """Labels of the object."""
    devices: Required[pulumi.Input[DeviceClaimArgs]]
    metadata: pulumi.Input[ClaimMetadataArgs]
    """Of the claims."""


class ShareBinderArgs(TypedDict, total=False):
    """The binder of pods that share GPUs, and its reservations."""

    image: str
    """Plimsoll's image, of the binder and of the reservations. Absent: no binder is deployed."""
    replicas: int
    """Pods of the binder: one is active, the others are standbys. Absent: 2."""
    namespace: str
    """Namespace of the reservations."""
    service_account: str
    """Service account of the reservations."""
    scheduler_name: str
    """Scheduler name of the pods that are bound, as in the binder's settings."""
    placement: Mapping[str, Literal["binpack", "spread"]]
    """`binpack` or `spread`, by NodePool, as in the binder's settings. Absent: `binpack`."""
    device_variables: bool
    """Whether the cluster adds NVIDIA_VISIBLE_DEVICES to their containers; needs Kubernetes 1.36; absent: true."""


class TopologyLevelArgs(TypedDict, total=False):
    """One level: nodes whose label has the same value are near each other."""

    node_label: Required[pulumi.Input[str]]
    """Label that every node has; nodes with the same value are near each other."""
    alias: pulumi.Input[str]
    """Another name of the level for workloads."""


class TopologyArgs(TypedDict, total=False):
    """How the nodes of a cluster are connected. The labels of an existing Topology cannot be changed."""

    name: pulumi.Input[str]
    """Name of the object; absent: that of the resource."""
    patch_force: pulumi.Input[bool]
    """Whether an update overwrites fields that other field managers have changed (`pulumi.com/patchForce`). Absent or
    false: such an update fails with a conflict that names the field and its manager."""
    levels: Required[pulumi.Input[list[pulumi.Input[TopologyLevelArgs]]]]
    """The widest first."""


class TrainingRuntimeArgs(TypedDict, total=False):
    """How TrainJobs run: `spec` of both kinds, and the settings `near`, `schedulerName` and `kaiSchedulerField`, which
    change how it is written."""

    name: pulumi.Input[str]
    """Name of the object; absent: that of the resource."""
    patch_force: pulumi.Input[bool]
    """Whether an update overwrites fields that other field managers have changed (`pulumi.com/patchForce`). Absent or
    false: such an update fails with a conflict that names the field and its manager."""
    namespace: pulumi.Input[str]
    """Namespace of the object; absent: `default`."""
    labels: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """Labels of the object."""
    ml_policy: pulumi.Input[MLPolicyArgs]
    pod_group_policy: pulumi.Input[PodGroupPolicyArgs]
    template: Required[pulumi.Input[JobSetTemplateArgs]]
    near: pulumi.Input[PlacementArgs]
    """Pods near which the training is placed, such as a DataCache's. The steps before the training are not affected."""
    scheduler_name: pulumi.Input[str]
    """The name under which KAI schedules in the cluster."""
    kai_scheduler_field: pulumi.Input[bool]
    """Whether the cluster's Trainer has `podGroupPolicy.kaiScheduler`, so that it is passed on.

    Absent: no; if a stack declares the runtime, as the cluster's CustomResourceDefinition shows. The Pods get the label
    and the scheduler's name in either case."""


class LabelRequirementArgs(TypedDict, total=False):
    """One entry of `matchExpressions`."""

    key: Required[pulumi.Input[str]]
    operator: Required[Literal["In", "NotIn", "Exists", "DoesNotExist"] | Later]
    values: pulumi.Input[list[pulumi.Input[str]]]


class LabelSelectorArgs(TypedDict, total=False):
    """Both forms must match. An empty selector matches everything."""

    match_labels: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    match_expressions: pulumi.Input[list[pulumi.Input[LabelRequirementArgs]]]


class PartitionArgs(TypedDict, total=False):
    """A MIG slice (NVIDIA's Multi-Instance GPU), or some of a node's GPUs."""

    mode: Required[Literal["mig", "accelerator"] | Later]
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
    capacity_type: Literal["spot", "on-demand", "reserved", "any"] | Later
    """How provisioned nodes are paid for: `spot`, `on-demand`, `any` of them, or `reserved`: only capacity that was
    reserved; absent: as the Environment sets it."""
    capacity_types: pulumi.Input[list[Literal["spot", "on-demand", "reserved"] | Later]]
    """Ways to pay for provisioned nodes, tried in this order for each instance type, instead of `capacityType`."""
    move_back_seconds: pulumi.Input[int]
    """How often nodes of the first of several instance types and ways to pay are requested while replicas run on
    another one: once all of these nodes are Ready, the replicas move there, by a rollout with `Surge`. Absent: replicas
    that run are not moved."""
    zones: pulumi.Input[list[pulumi.Input[str]]]
    """Zones of the nodes; absent: any."""
    preferred_nodes: pulumi.Input[list[pulumi.Input[str]]]
    """Deprecated and without effect, as in KAITO: select nodes by `labelSelector`."""
    partition: pulumi.Input[PartitionArgs]
    """The part of a node's GPUs that each pod requests; only for existing nodes. Absent: all of them."""
    devices: Literal["extended-resource", "claim"] | Later
    """How pods ask for GPUs: by the extended resource, or by a claim of Dynamic Resource Allocation, for which a
    ResourceClaimTemplate is created. Absent: by the extended resource."""
    idle_seconds: pulumi.Input[int]
    """How long created nodes stay when it was scaled to 0 replicas, at most as the Environment sets it; absent: as the
    Environment sets it."""


class PresetOptionsArgs(TypedDict, total=False):
    """How the model of a preset is fetched."""

    model_access_secret: pulumi.Input[str]
    """Secret in the Workspace's namespace whose key HF_TOKEN grants access to the model on Hugging Face."""


class ModelParametersArgs(TypedDict, total=False):
    """The data of a model: the size of its files, and its `config.json`."""

    size_gib: Required[pulumi.Input[float]]
    """Weights as files, GiB: `metadata.total_size` of the safetensors index."""
    config: Required[pulumi.Input[Mapping[str, Any]]]
    """Fields of the model's `config.json`; those on layers, heads and context are read."""


class PresetArgs(TypedDict, total=False):
    """A model by its name."""

    name: Required[pulumi.Input[str]]
    preset_options: pulumi.Input[PresetOptionsArgs]
    parameters: pulumi.Input[ModelParametersArgs]
    """Data of the model, for a model that is not known by its name, or to correct the catalog."""


class DataSourceArgs(TypedDict, total=False):
    """Source of data."""

    name: pulumi.Input[str]
    """Name of the folder and, for an adapter, of the model in requests."""
    image: pulumi.Input[str]
    """An image with the data in its directory `/data`."""
    image_pull_secrets: pulumi.Input[list[pulumi.Input[str]]]
    volume_source: pulumi.Input[Mapping[str, Any]]
    """A volume with the data, as in a pod's `volumes` (`persistentVolumeClaim`, `nfs`, ...)."""
    urls: pulumi.Input[list[pulumi.Input[str]]]


class AdapterArgs(TypedDict, total=False):
    """A LoRA adapter of the model."""

    source: Required[pulumi.Input[DataSourceArgs]]
    strength: pulumi.Input[str]
    """Multiplier of the weights, 0 to 1, as text."""


class RolloutArgs(TypedDict, total=False):
    """How the pods of a Workspace are replaced when its template changes."""

    strategy: Literal["Recreate", "Surge"] | Later
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


class InferenceArgs(TypedDict, total=False):
    """What to run: a preset, or a pod template."""

    preset: pulumi.Input[PresetArgs]
    template: pulumi.Input[Mapping[str, Any]]
    """A PodTemplateSpec, used unchanged in the workload."""
    replicas: pulumi.Input[int]
    per_replica_node_count: pulumi.Input[int]
    """Nodes that one replica spans; absent: computed from the need and the GPU memory of a node, in status."""
    gpu_memory_gib: pulumi.Input[float]
    """Total GPU memory that one replica needs, GiB; required if no preset determines it and nodes are to be checked."""
    context_length: pulumi.Input[int]
    """Context length that a preset's server serves (vLLM's max-model-len), tokens, whose KV cache must fit; absent: the
    longest that fits the nodes, up to the model's own, at least the Environment's."""
    stable_identity: pulumi.Input[bool]
    """Whether each replica keeps its name (a StatefulSet); replicas that span nodes always do."""
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


class DataDestinationArgs(TypedDict, total=False):
    """Destination of the tuned weights."""

    image: pulumi.Input[str]
    image_push_secret: pulumi.Input[str]
    volume_source: pulumi.Input[Mapping[str, Any]]


class TuningArgs(TypedDict, total=False):
    """A model that is tuned."""

    preset: pulumi.Input[PresetArgs]
    method: Literal["lora", "qlora"] | Later
    config: pulumi.Input[str]
    """ConfigMap with the arguments of the tuning."""
    input: Required[pulumi.Input[DataSourceArgs]]
    output: Required[pulumi.Input[DataDestinationArgs]]


class WorkspaceArgs(TypedDict, total=False):
    """What a model needs: its nodes, and what runs on them. Give `inference` or `tuning`."""

    name: pulumi.Input[str]
    """Name of the object; absent: that of the resource."""
    patch_force: pulumi.Input[bool]
    """Whether an update overwrites fields that other field managers have changed (`pulumi.com/patchForce`). Absent or
    false: such an update fails with a conflict that names the field and its manager."""
    namespace: pulumi.Input[str]
    """Namespace of the object; absent: `default`."""
    labels: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """Labels of the object."""
    resource: pulumi.Input[ResourceArgs]
    inference: pulumi.Input[InferenceArgs]
    tuning: pulumi.Input[TuningArgs]
    """Same fields as in KAITO; always refused: fine-tuning is not implemented."""
    queue: pulumi.Input[str]
    """KAI queue; the pods get its label."""
