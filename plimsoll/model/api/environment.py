"""Environment: one cluster with its settings (plimsoll.dev/v1alpha1, cluster-scoped, one a cluster)."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator
from pydantic.aliases import AliasPath

from plimsoll.labels import GPU_RESOURCE, INSTANCE_TYPE, NODEPOOL, is_label_key
from plimsoll.model.api.capacity_point import CapacityPoint
from plimsoll.model.api.capacity_type import CapacityType
from plimsoll.model.api.catalog_settings import CatalogSettings
from plimsoll.model.api.delta_record import DeltaRecord
from plimsoll.model.api.demand_settings import MOST_SECONDS, DemandSettings
from plimsoll.model.api.estimator_settings import EstimatorSettings
from plimsoll.model.api.model_hub import ModelHub
from plimsoll.model.api.model_parameters import DeclaredPreset
from plimsoll.model.api.policies import Policies
from plimsoll.model.api.preset_pods import PresetPods
from plimsoll.model.api.workspace_parts import Weights
from plimsoll.model.kai import NODE_POOL, NodePoolLabel
from plimsoll.model.meta import Condition, Described, ObservedObject, Reported, Taint


class Provisioner(StrEnum):
    """How nodes for Workspaces are provisioned."""

    BYO = "byo"
    NODECLAIM = "nodeclaim"
    STATIC_NODEPOOL = "static-nodepool"


class NodeClassRef(Described):
    """The cloud's node class that NodeClaims refer to (karpenter.sh/v1 nodeClassRef)."""

    group: str
    kind: str
    name: str = "default"


class DeclaredTaint(Described):
    """A taint of nodes."""

    key: str
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"


class Limits(Described):
    """Upper limits of the environment; absent means unlimited."""

    gpus: int | None = Field(default=None, ge=0)
    """GPU devices in all NodeClaims that the controller created, and of the nodes that demand requests."""
    nodes: int | None = Field(default=5_000, ge=0)
    """NodeClaims that the controller created, and nodes that demand requests; absent: 5,000, which is what Kubernetes
    supports in one cluster."""
    workspace_nodes: int | None = Field(default=1_000, ge=0)
    """Nodes of one Workspace; absent: 1,000."""
    deletions_per_tick: int = Field(default=50, ge=1)
    """NodeClaims and workloads that one Plan may delete; the others wait for the next one."""


class NamespaceAccess(Described):
    """What Workspaces of some namespaces may use. An absent list allows everything, an empty one nothing."""

    namespaces: tuple[str, ...] = Field(min_length=1)
    """Names of namespaces; `*` stands for every namespace without an entry."""
    node_pools: tuple[str, ...] | None = None
    queues: tuple[str, ...] | None = None
    instance_types: tuple[str, ...] | None = None
    gpus: int | None = Field(default=None, ge=0)
    """Total GPU devices of the Workspaces of each namespace."""

    def allows_pool(self, name: str) -> bool:
        return self.node_pools is None or name in self.node_pools

    def allows_type(self, name: str) -> bool:
        types = self.instance_types
        return types is None or name.casefold() in [each.casefold() for each in types]


class NodeClaims(Described):
    """How NodeClaims are created."""

    node_class_ref: NodeClassRef | None = None
    """Absent: that of a NodePool that allows the instance type, else that of the cloud in the catalog."""
    taints: tuple[DeclaredTaint, ...] = (DeclaredTaint(key="sku", value="gpu"),)
    capacity_type: CapacityType | None = None
    """How nodes for Workspaces are paid for, if a Workspace does not set it: `spot`, `on-demand`, `any` of them, or
    `reserved`; absent: as the NodePool says, and on-demand without one."""
    storage_gib: int | None = Field(default=None, ge=1)
    """Ephemeral storage that a NodeClaim requests, GiB, if no preset determines it; absent: none.

    A NodeClaim that requests more than its instance type reports is never launched.
    """
    launch_deadline_seconds: int = Field(default=300, ge=1, le=MOST_SECONDS)
    """How long the provider may take to launch an instance."""
    registration_deadline_seconds: int = Field(default=900, ge=1, le=MOST_SECONDS)
    """How long a NodeClaim may take until its node has registered, including the launch."""
    gpu_deadline_seconds: int = Field(default=600, ge=1, le=MOST_SECONDS)
    """How long a registered node may take until its GPUs are allocatable; Karpenter has no deadline for it."""
    retry_seconds: int = Field(default=30, ge=1, le=MOST_SECONDS)
    """Pause before a failed NodeClaim is replaced; doubled with each consecutive failure."""
    retry_limit_seconds: int = Field(default=1800, ge=1, le=MOST_SECONDS)
    """The longest pause."""

    deletion_deadline_seconds: int | None = Field(default=None, ge=1, le=MOST_SECONDS)
    """How long a NodeClaim that is being deleted counts against `limits` and those of NodePools; absent: as long as it
    exists."""
    idle_seconds: int = Field(default=0, ge=0, le=MOST_SECONDS)
    """How long nodes that were created for a Workspace stay when it was scaled to 0 replicas; a Workspace may set less.
    """

    @property
    def node_taints(self) -> tuple[Taint, ...]:
        """`taints` as nodes have them."""
        return tuple(Taint(key=each.key, value=each.value, effect=each.effect) for each in self.taints)


class NodeCondition(Described):
    """A condition of nodes."""

    type: str = Field(min_length=1, max_length=316)
    status: Literal["True", "False", "Unknown"] = "True"
    """The status by which the node is not usable."""


def _label_key(key: str) -> str:
    if key and not is_label_key(key):
        raise ValueError("is not the key of a label: write it as nodePoolLabelKey in KAI's Config")
    return key


class EnvironmentSpec(Described):
    """The settings of a cluster."""

    node_auto_provisioning: Literal["enabled", "disabled"] = "disabled"
    provisioner: Provisioner | None = None
    """Absent: `byo` where auto-provisioning is disabled, `nodeclaim` where it is enabled."""
    gpu_resource: str = GPU_RESOURCE
    """The extended resource that pods request."""
    unhealthy_conditions: tuple[NodeCondition, ...] = Field(default=(), max_length=64)
    """Conditions by which a node is not usable, besides those of Karpenter's node repair on AWS and of
    node-problem-detector."""
    limits: Limits = Limits()
    access: tuple[NamespaceAccess, ...] = ()
    """Absent: every namespace may use everything."""
    reserved_label_prefixes: tuple[str, ...] = ("plimsoll.dev/", "kaito.sh/", "karpenter.kaito.sh/", "karpenter.sh/")
    """Label keys with these prefixes are not allowed in a Workspace's selector, nor in its template's labels."""
    node_label_prefixes: tuple[str, ...] = ("",)
    """Prefixes (the part before the slash) of the labels that a Workspace's selector may set on the nodes that are
    provisioned for it; an empty one stands for keys without a prefix. Those of Kubernetes, Karpenter, schedulers and
    NVIDIA are never allowed."""
    admission: Literal["deny", "audit", "off"] = "deny"
    """What the cluster does with a Workspace that does not fit the mode or uses reserved labels: reject it, warn and
    write an audit annotation, or admit it. The controller's verdict is the same in any case."""
    policies: Policies = Policies()
    """Settings of the policy rules, and exemptions."""
    node_claims: NodeClaims = NodeClaims()
    catalog: CatalogSettings = CatalogSettings()
    estimator: EstimatorSettings = EstimatorSettings()
    queue_scheduler: str = Field(default="kai-scheduler", min_length=1, max_length=253)
    """Scheduler of the pods of a Workspace that names a queue."""
    node_pool_label_key: Annotated[str, Field(max_length=317), AfterValidator(_label_key)] = NODE_POOL
    """Key of the label with which KAI divides a cluster among SchedulingShards: as `spec.global.nodePoolLabelKey` of
    KAI's Config; empty: its schedulers see everything."""
    inference_image: str = "vllm/vllm-openai:v0.32.0"
    """Image that serves presets."""
    inference_user: int = Field(default=2000, ge=0, le=2**31 - 1)
    """UID that runs the pods of presets, with the security context that Pod Security's level `restricted` asks for, in
    the group 0. 2000 is the user of vLLM's images, and its home is /home/vllm; 0: the image's own user, without a
    security context."""
    byo_instance_type: Literal["refuse", "narrow"] = "refuse"
    """What `resource.instanceType` means on existing nodes (BYO): `refuse`: it must be empty; `narrow`: of the nodes
    that the selector matches, only those with this instance type as their label are used."""
    partial_replicas: Literal["allow", "refuse"] = "allow"
    """Whether a Workspace is accepted on existing nodes (BYO) if not all of its replicas fit now; the others wait."""
    weights: Weights | None = None
    """Where the files of presets are kept, for Workspaces that do not set it; absent: on the node's disk, as long as
    the pod exists."""
    preset_pods: PresetPods = PresetPods()
    """Settings of the pods that serve presets; a Workspace's own are over them."""
    presets: tuple[DeclaredPreset, ...] = Field(default=(), max_length=256)
    """Models that Workspaces may name besides those of the built-in catalog; they take precedence over it."""
    model_hub: ModelHub | None = None
    """The hub from which the controller reads models that Workspaces name as `org/name` and that are not declared;
    absent: none, and such a Workspace is refused."""
    demand: DemandSettings = DemandSettings()
    """How capacity is provided for pods with GPU requests that the cluster cannot place."""

    @field_validator("access")
    @classmethod
    def _namespaces_once(cls, access: tuple[NamespaceAccess, ...]) -> tuple[NamespaceAccess, ...]:
        seen: set[str] = set()
        for entry in access:
            for namespace in entry.namespaces:
                if namespace in seen:
                    raise ValueError(f"namespace {namespace!r} is in two entries")
                seen.add(namespace)
        return access

    @model_validator(mode="after")
    def _provisioner_fits(self) -> "EnvironmentSpec":
        byo = self.provisioner is Provisioner.BYO
        if self.provisioner is not None and byo == (self.node_auto_provisioning == "enabled"):
            raise ValueError(
                f"provisioner {self.provisioner.value!r} does not fit nodeAutoProvisioning "
                f"{self.node_auto_provisioning!r}: 'byo' goes with 'disabled', every other one with 'enabled'"
            )
        return self

    @property
    def broken_by(self) -> tuple[tuple[str, str], ...]:
        """(type, status) of `unhealthyConditions`."""
        return tuple((condition.type, condition.status) for condition in self.unhealthy_conditions)

    def devices_on(self, labels: Mapping[str, str]) -> str:
        """The extended resource that nodes with these labels announce for their GPUs."""
        sharing = self.demand.sharing_of(labels.get(NODEPOOL, ""), labels.get(INSTANCE_TYPE, ""))
        return sharing.resource or self.gpu_resource

    @property
    def node_pool_label(self) -> NodePoolLabel:
        """The reader of KAI's node pools."""
        return NodePoolLabel(self.node_pool_label_key)

    @property
    def auto_provisioning(self) -> bool:
        return self.node_auto_provisioning == "enabled"

    @property
    def narrows_by_type(self) -> bool:
        """Whether an instance type narrows the choice of existing nodes."""
        return self.byo_instance_type == "narrow" and not self.auto_provisioning

    @property
    def effective_provisioner(self) -> Provisioner:
        if self.provisioner is not None:
            return self.provisioner
        return Provisioner.NODECLAIM if self.auto_provisioning else Provisioner.BYO

    def access_of(self, namespace: str) -> NamespaceAccess | None:
        """The entry for a namespace, else the entry for `*`; None if no entries are declared.

        Raises KeyError if entries are declared and none covers the namespace.
        """
        if not self.access:
            return None
        for wanted in (namespace, "*"):
            for entry in self.access:
                if wanted in entry.namespaces:
                    return entry
        raise KeyError(namespace)


class EnvironmentStatus(Reported):
    """Written by the controller. While a number is above 0, the cluster rejects the deletion of the Environment."""

    observed_generation: int | None = Field(default=None, validation_alias="observedGeneration")
    node_claims: Annotated[int, Field(ge=0)] = Field(default=0, validation_alias="nodeClaims")
    """Existing NodeClaims that the controller created."""
    node_pools: Annotated[int, Field(ge=0)] = Field(default=0, validation_alias="nodePools")
    """Existing NodePools that the controller created."""
    workloads: Annotated[int, Field(ge=0)] = 0
    """Existing workloads that the controller created."""
    queues_in_use: tuple[str, ...] = Field(default=(), validation_alias="queuesInUse")
    """Queues of pods that request GPUs, and of PodGroups; sorted."""
    deltas: tuple[DeltaRecord, ...] = ()
    """The last deltas, newest first, at most 20."""
    history: tuple[CapacityPoint, ...] = ()
    """GPUs and their price over the last year, oldest first: at most a point an hour, fewer the older they are."""
    conditions: tuple[Condition, ...] = ()


class Environment(ObservedObject):
    """The Environment object; without one, `Environment.default()` is used."""

    generation: int | None = Field(default=None, validation_alias=AliasPath("metadata", "generation"))
    spec: EnvironmentSpec = EnvironmentSpec()
    status: EnvironmentStatus = EnvironmentStatus()

    @classmethod
    def default(cls) -> "Environment":
        return cls(name="default")
