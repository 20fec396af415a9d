"""Environment: one cluster with its settings (plimsoll.dev/v1alpha1, cluster-scoped, one a cluster)."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from plimsoll.labels import GPU_RESOURCE
from plimsoll.model.api.catalog_settings import CatalogSettings
from plimsoll.model.api.demand_settings import DemandSettings
from plimsoll.model.api.estimator_settings import EstimatorSettings
from plimsoll.model.api.policies import Policies
from plimsoll.model.meta import Condition, Declared, ObservedObject, Reported


class Provisioner(StrEnum):
    """How a delta becomes objects."""

    BYO = "byo"
    NODECLAIM = "nodeclaim"
    STATIC_NODEPOOL = "static-nodepool"


class NodeClassRef(Declared):
    """The cloud's node class that NodeClaims refer to (karpenter.sh/v1 nodeClassRef)."""

    group: str
    kind: str
    name: str = "default"


class DeclaredTaint(Declared):
    key: str
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"


class Limits(Declared):
    """What the environment may hold at most; absent means no bound of ours."""

    gpus: int | None = Field(default=None, ge=0)
    """GPU devices in all NodeClaims that the engine made, and of what demand asks for."""
    nodes: int | None = Field(default=None, ge=0)
    """NodeClaims that the engine made, and nodes that demand asks for."""
    deletions_per_tick: int = Field(default=50, ge=1)
    """NodeClaims and workloads that one delta may delete; the rest waits for the next."""


class NamespaceAccess(Declared):
    """What Workspaces of some namespaces may use. An absent list allows everything; an empty one nothing."""

    namespaces: tuple[str, ...] = Field(min_length=1)
    """Names of namespaces; `*` stands for every namespace that no other entry names."""
    node_pools: tuple[str, ...] | None = None
    queues: tuple[str, ...] | None = None
    instance_types: tuple[str, ...] | None = None
    gpus: int | None = Field(default=None, ge=0)
    """GPU devices in all, over the Workspaces of each namespace."""

    def allows_pool(self, name: str) -> bool:
        return self.node_pools is None or name in self.node_pools


class NodeClaims(Declared):
    """How NodeClaims are made."""

    node_class_ref: NodeClassRef | None = None
    """Absent: that of a NodePool which allows the instance type, else by the cloud that the catalog names."""
    taints: tuple[DeclaredTaint, ...] = (DeclaredTaint(key="sku", value="gpu"),)
    storage_gib: int | None = Field(default=None, ge=1)
    """Ephemeral storage that a claim asks for, GiB, where no preset says what it takes; absent: asks for none.

    A NodeClaim that asks for more than its instance type reports is never launched.
    """
    launch_deadline_seconds: int = Field(default=300, ge=1)
    """How long the provider may take to launch an instance."""
    registration_deadline_seconds: int = Field(default=900, ge=1)
    """How long a claim may take until its node has joined the cluster, the launch included."""
    gpu_deadline_seconds: int = Field(default=600, ge=1)
    """How long a registered node may take to show its GPUs; Karpenter itself has no deadline for it."""
    retry_seconds: int = Field(default=30, ge=1)
    """Pause before a claim that failed is replaced; doubled with each failure in a row."""
    retry_limit_seconds: int = Field(default=1800, ge=1)
    """The longest pause."""


class EnvironmentSpec(Declared):
    node_auto_provisioning: Literal["enabled", "disabled"] = "disabled"
    provisioner: Provisioner | None = None
    """Absent: `byo` where auto-provisioning is disabled, `nodeclaim` where it is enabled."""
    gpu_resource: str = GPU_RESOURCE
    """The extended resource that pods ask for."""
    limits: Limits = Limits()
    access: tuple[NamespaceAccess, ...] = ()
    """Absent: every namespace may use everything."""
    reserved_label_prefixes: tuple[str, ...] = ("plimsoll.dev/", "kaito.sh/", "karpenter.kaito.sh/", "karpenter.sh/")
    """Label keys with these prefixes may not stand in a Workspace's selector, nor in its template's labels."""
    admission: Literal["deny", "audit", "off"] = "deny"
    """What the cluster does with a Workspace that does not fit the mode or uses reserved labels: refuse it, warn of it
    and write it into the audit log, or let it pass. The engine's verdict says the same in any case."""
    policies: Policies = Policies()
    """The rules that objects of everybody must keep: their settings, and exemptions."""
    node_claims: NodeClaims = NodeClaims()
    catalog: CatalogSettings = CatalogSettings()
    estimator: EstimatorSettings = EstimatorSettings()
    queue_scheduler: str = Field(default="kai-scheduler", min_length=1, max_length=253)
    """Scheduler of the pods of a Workspace that names a queue."""
    inference_image: str = "vllm/vllm-openai:v0.11.0"
    """Image that serves presets."""
    demand: DemandSettings = DemandSettings()
    """What becomes of pods that ask for GPUs and that the cluster cannot place."""

    @field_validator("access")
    @classmethod
    def _namespaces_once(cls, access: tuple[NamespaceAccess, ...]) -> tuple[NamespaceAccess, ...]:
        seen: set[str] = set()
        for entry in access:
            for namespace in entry.namespaces:
                if namespace in seen:
                    raise ValueError(f"namespace {namespace!r} stands in two entries")
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
    def auto_provisioning(self) -> bool:
        return self.node_auto_provisioning == "enabled"

    @property
    def effective_provisioner(self) -> Provisioner:
        if self.provisioner is not None:
            return self.provisioner
        return Provisioner.NODECLAIM if self.auto_provisioning else Provisioner.BYO

    def access_of(self, namespace: str) -> NamespaceAccess | None:
        """The entry for a namespace, else the entry for `*`; None where no entries are declared.

        Raises KeyError where entries are declared and none covers the namespace.
        """
        if not self.access:
            return None
        for wanted in (namespace, "*"):
            for entry in self.access:
                if wanted in entry.namespaces:
                    return entry
        raise KeyError(namespace)


class EnvironmentStatus(Reported):
    """Written by the engine alone. While a number is above 0 the cluster refuses to delete the Environment."""

    observed_generation: int | None = Field(default=None, validation_alias="observedGeneration")
    node_claims: Annotated[int, Field(ge=0)] = Field(default=0, validation_alias="nodeClaims")
    """NodeClaims that the engine made and that are still there."""
    node_pools: Annotated[int, Field(ge=0)] = Field(default=0, validation_alias="nodePools")
    """NodePools that the engine made and that are still there."""
    workloads: Annotated[int, Field(ge=0)] = 0
    """Workloads that the engine made and that are still there."""
    conditions: tuple[Condition, ...] = ()


class Environment(ObservedObject):
    """The Environment object; where a cluster or a folder of manifests has none, `Environment.default()` stands in."""

    spec: EnvironmentSpec = EnvironmentSpec()
    status: EnvironmentStatus = EnvironmentStatus()

    @classmethod
    def default(cls) -> "Environment":
        return cls(name="default")
