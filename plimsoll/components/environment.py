"""Environment: the settings of a cluster."""

from collections.abc import Mapping
from typing import Any, TypedDict

import pulumi
from pydantic import field_validator

from plimsoll.components.choices import (
    DemandSettingsClaims,
    DemandSettingsPlacement,
    DemandSettingsProvisioner,
    DemandSettingsWithoutQueue,
    EnvironmentSpecAdmission,
    EnvironmentSpecByoInstanceType,
    EnvironmentSpecNodeAutoProvisioning,
    EnvironmentSpecPartialReplicas,
    EnvironmentSpecProvisioner,
    NodeClaimsCapacityType,
    NodeConditionStatus,
    PoliciesAdmission,
    RuleSettingSeverity,
)
from plimsoll.components.declaring import Component, ObjectArgs, ObjectType, name_of, uid_of
from plimsoll.components.node_pool import NodeClassRefArgs, TaintArgs
from plimsoll.components.workspace import PresetPodsArgs, WeightsArgs
from plimsoll.errors import PlimsollError
from plimsoll.labels import API_VERSION
from plimsoll.model.api import EnvironmentSpec, Policies
from plimsoll.policy import settled


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

    namespaces: pulumi.Input[list[pulumi.Input[str]]]
    """Names of namespaces; `*` stands for every namespace without an entry."""
    node_pools: pulumi.Input[list[pulumi.Input[str]]]
    queues: pulumi.Input[list[pulumi.Input[str]]]
    instance_types: pulumi.Input[list[pulumi.Input[str]]]
    gpus: pulumi.Input[int]
    """Total GPU devices of the Workspaces of each namespace."""


class NodeClaimsArgs(TypedDict, total=False):
    """How NodeClaims are created."""

    node_class_ref: pulumi.Input[NodeClassRefArgs]
    """Absent: that of a NodePool that allows the instance type, else that of the cloud in the catalog."""
    taints: pulumi.Input[list[pulumi.Input[TaintArgs]]]
    capacity_type: NodeClaimsCapacityType
    """How nodes for Workspaces are paid for, if a Workspace does not set it: `spot`, `on-demand`, `any` of them, or
    `reserved`; absent: as the NodePool says, and on-demand without one."""
    storage_gib: pulumi.Input[int]
    """Ephemeral storage that a NodeClaim requests, GiB, if no preset determines it; absent: none."""
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


class DeclaredPresetArgs(TypedDict, total=False):
    """A preset that Workspaces may name."""

    name: pulumi.Input[str]
    aliases: pulumi.Input[list[pulumi.Input[str]]]
    repository: pulumi.Input[str]
    """The model's name on Hugging Face, or a path in the server's image or volume."""
    size_gib: pulumi.Input[float]
    """Weights as files, GiB: `metadata.total_size` of the safetensors index."""
    config: pulumi.Input[dict[str, Any]]
    """Fields of the model's `config.json`; those on layers, heads and context are read."""
    spans_nodes: pulumi.Input[bool]
    """Whether one replica may run on several nodes."""
    gated: pulumi.Input[bool]
    """Whether the model is available only to users who accepted its license, so that Workspaces need a token."""
    options: pulumi.Input[dict[str, pulumi.Input[str]]]
    """Options of vLLM, without the leading dashes; an empty string for an option without a value."""


class ModelHubArgs(TypedDict, total=False):
    """The hub from which the controller reads models, with Hugging Face's URL layout."""

    endpoint: pulumi.Input[str]
    """Address of the hub, or of a mirror (Hugging Face's HF_ENDPOINT)."""
    organizations: pulumi.Input[list[pulumi.Input[str]]]
    """Owners of the models that may be named, the part before the slash; absent: all."""
    deadline_seconds: pulumi.Input[int]
    """How long reading one model may take."""
    private_networks: pulumi.Input[list[pulumi.Input[str]]]
    """Networks (CIDR) besides public addresses that the hub's name, and what the hub redirects to, may be in, such as
    that of a mirror in the cluster. An endpoint that is an address itself is asked there."""


class HeadroomArgs(TypedDict):
    """Nodes that are kept ready in advance. The autoscaler replaces them when pods use them."""

    name: pulumi.Input[str]
    node_pool: pulumi.Input[str]
    instance_type: pulumi.Input[str]
    gpus: pulumi.Input[int]
    """GPU devices of one node."""
    nodes: pulumi.Input[int]


class SharedDevicesArgs(TypedDict, total=False):
    """Devices that the nodes of a NodePool will have in place of whole GPUs, and for which capacity is requested."""

    node_pool: pulumi.Input[str]
    instance_types: pulumi.Input[list[pulumi.Input[str]]]
    """Absent: every type of the NodePool."""
    resource: pulumi.Input[str]
    """The extended resource that pods request, such as `nvidia.com/gpu.shared` or `nvidia.com/mig-1g.10gb`."""
    per_gpu: pulumi.Input[int]
    """Devices that one GPU is announced as: replicas, or slices."""


class DemandArgs(TypedDict, total=False):
    """Capacity for pods that share GPUs."""

    provisioner: DemandSettingsProvisioner
    """`none`: demand is planned and reported, and no capacity is requested."""
    claims: DemandSettingsClaims
    """Pods that claim GPUs (Dynamic Resource Allocation): `plan` requests nodes for them, unless Karpenter plans claims
    itself; `observe` only reports them; `off` ignores them."""
    schedulers: pulumi.Input[list[pulumi.Input[str]]]
    """Schedulers whose unschedulable pods are planned for."""
    without_queue: DemandSettingsWithoutQueue
    """Whether capacity is provided for pods without a queue in a cluster that declares Queues: those of schedulers that
    know none."""
    classes_per_namespace: pulumi.Input[int]
    """Classes of pods (by node selector, affinity, tolerations, queue and scheduler) of one namespace that capacity is
    planned for. The pods of further ones are refused, so that one namespace does not make plans slow for all."""
    assumed_share_milli: pulumi.Input[int]
    """Thousandths of a GPU that a share in MiB counts as, if the memory of no GPU is known."""
    surplus_gpus: pulumi.Input[int]
    """Most GPUs that may be requested with one node beyond what smaller instance types would need, while those failed
    to launch and are skipped."""
    grace_seconds: pulumi.Input[int]
    """How long a pod must be unschedulable before a node is requested for it. A rolling update that frees GPUs in the
    meantime then requests none."""
    wait_seconds: pulumi.Input[int]
    """How long a pod waits for requested nodes that suffice for all pods, if they were requested after it was created;
    then a node is requested for it anyway."""
    gpu_tflops: pulumi.Input[Mapping[str, pulumi.Input[float]]]
    """TFLOPS (FP16, dense) of one GPU by product, where they differ from the built-in table or are not in it. Shares
    in TFLOPS are fractions of it."""
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
    placement: pulumi.Input[Mapping[str, DemandSettingsPlacement]]
    """How schedulers place pods on the nodes of a NodePool, by its name: `binpack`, or `spread`, breadth first; `*` for
    all others. Plans promise the places that such a scheduler leaves, and request nodes accordingly. It configures no
    scheduler."""
    headroom: pulumi.Input[list[pulumi.Input[HeadroomArgs]]]
    """Only for the provisioner `capacity-buffer`."""
    shared_devices: pulumi.Input[list[pulumi.Input[SharedDevicesArgs]]]
    """Devices by time-slicing, MPS or MIG for which capacity is requested, by NodePool; only with the provisioner
    `trigger-pod`. The environment stack writes them where it declares no NodeOverlays."""


class CatalogArgs(TypedDict, total=False):
    """Where instance types and their prices come from."""

    aws_region: pulumi.Input[str]
    """AWS region whose EC2 API is queried for instance types (ec2:DescribeInstanceTypes); absent: none is queried."""
    prices: pulumi.Input[dict[str, pulumi.Input[float]]]
    """Price of one instance per hour by instance type, in any one currency; suggestions are sorted by it."""
    currency: pulumi.Input[str]
    """Currency of `prices`, such as USD; built-in list prices are shown beside them only if it is theirs."""


class EstimatorArgs(TypedDict, total=False):
    """Each absent field has the estimator's default, which is KAITO's."""

    utilization: pulumi.Input[float]
    """Fraction of a GPU's memory that the inference server may use; absent: 0.84."""
    utilization_by_product: pulumi.Input[dict[str, pulumi.Input[float]]]
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


class RuleSettingArgs(TypedDict, total=False):
    """Severity and options of one policy rule."""

    severity: RuleSettingSeverity
    """Absent: that of the rule. `warning` is reported and refuses nothing; `off` disables the rule."""
    options: pulumi.Input[dict[str, Any]]
    """Options of the rule, as shown by `plimsoll policy list`."""


class ExemptionArgs(TypedDict, total=False):
    """Objects that are exempt from a rule, for a reason and until a date."""

    rule: pulumi.Input[str]
    kind: pulumi.Input[str]
    namespace: pulumi.Input[str]
    name: pulumi.Input[str]
    reason: pulumi.Input[str]
    until: pulumi.Input[str]
    """The last day, in UTC."""


class PoliciesArgs(TypedDict, total=False):
    """The policy rules of the cluster."""

    admission: PoliciesAdmission
    """What the cluster does with an object that breaks a rule of severity error: reject it, warn and write an audit
    annotation, or admit it. Rules of severity warning only warn."""
    rules: pulumi.Input[dict[str, pulumi.Input[RuleSettingArgs]]]
    """By the rule's name."""
    exemptions: pulumi.Input[list[pulumi.Input[ExemptionArgs]]]


class NodeConditionArgs(TypedDict, total=False):
    """A condition of nodes."""

    type: pulumi.Input[str]
    status: NodeConditionStatus
    """The status by which the node is not usable."""


class EnvironmentArgs(ObjectArgs, total=False):
    """The settings of a cluster."""

    node_auto_provisioning: EnvironmentSpecNodeAutoProvisioning
    provisioner: EnvironmentSpecProvisioner
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
    admission: EnvironmentSpecAdmission
    """What the cluster does with a Workspace that does not fit the mode or uses reserved labels: reject it, warn and
    write an audit annotation, or admit it. The controller's verdict is the same in any case."""
    policies: pulumi.Input[PoliciesArgs]
    """Settings of the policy rules, and exemptions."""
    node_claims: pulumi.Input[NodeClaimsArgs]
    catalog: pulumi.Input[CatalogArgs]
    estimator: pulumi.Input[EstimatorArgs]
    queue_scheduler: pulumi.Input[str]
    """Scheduler of the pods of a Workspace that names a queue."""
    inference_image: pulumi.Input[str]
    """Image that serves presets."""
    inference_user: pulumi.Input[int]
    """UID that runs the pods of presets, with the security context that Pod Security's level `restricted` asks for, in
    the group 0. 2000 is the user of vLLM's images, and its home is /home/vllm; 0: the image's own user, without a
    security context."""
    byo_instance_type: EnvironmentSpecByoInstanceType
    """What `resource.instanceType` means on existing nodes (BYO): `refuse`: it must be empty; `narrow`: of the nodes
    that the selector matches, only those with this instance type as their label are used."""
    partial_replicas: EnvironmentSpecPartialReplicas
    """Whether a Workspace is accepted on existing nodes (BYO) if not all of its replicas fit now; the others wait."""
    weights: pulumi.Input[WeightsArgs]
    """Where the files of presets are kept, for Workspaces that do not set it; absent: on the node's disk, as long as
    the pod exists."""
    preset_pods: pulumi.Input[PresetPodsArgs]
    """Settings of the pods that serve presets; a Workspace's own are over them."""
    presets: pulumi.Input[list[pulumi.Input[DeclaredPresetArgs]]]
    """Models that Workspaces may name besides those of the built-in catalog; they take precedence over it."""
    model_hub: pulumi.Input[ModelHubArgs]
    """The hub from which the controller reads models that Workspaces name as `org/name` and that are not declared
    elsewhere; absent: none, and such a Workspace is refused."""
    demand: pulumi.Input[DemandArgs]
    """How capacity is provided for pods with GPU requests that the cluster cannot place."""


class _SettledSpec(EnvironmentSpec):
    """The spec, with the rules' own checks of their settings. The cluster and the controller cannot refuse them."""

    @field_validator("policies")
    @classmethod
    def _settled(cls, policies: Policies) -> Policies:
        try:
            settled(policies)
        except PlimsollError as error:
            raise ValueError("; ".join(filter(None, (error.message, error.hint)))) from None
        return policies


class Environment(Component):
    """An Environment (plimsoll.dev/v1alpha1, cluster-scoped). The cluster refuses to delete it while capacity that the
    controller created for it exists.

    `environment` is the object. Raises InvalidArgumentError if an argument is invalid.
    """

    environment_name: pulumi.Output[str]
    """Name of the object."""
    uid: pulumi.Output[str]
    """UID of the object; empty in the preview of its creation."""

    def __init__(self, name: str, args: EnvironmentArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("Environment", name, args, opts)
        kind = ObjectType(API_VERSION, "Environment")
        self.environment = self._object(kind, _SettledSpec, _SettledSpec.manifest)
        self.environment_name = name_of(self.environment, args.get("name"))
        self.uid = uid_of(self.environment)
        self.register_outputs({"environmentName": self.environment_name, "uid": self.uid})
