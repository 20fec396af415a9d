"""Workspace: an inference workload that needs whole nodes (plimsoll.dev/v1alpha1, namespaced).

Field names under `spec` are KAITO's.
"""

import math
from enum import StrEnum
from typing import Annotated, Any, Final, Literal

from pydantic import Field, field_validator, model_validator
from pydantic.aliases import AliasPath

from plimsoll.labels import ZONE
from plimsoll.model.api.capacity_type import CapacityType
from plimsoll.model.api.demand_settings import MOST_SECONDS
from plimsoll.model.api.preset_pods import PresetPods
from plimsoll.model.api.provisioning import Alternative, Provisioning
from plimsoll.model.api.startup import Startup
from plimsoll.model.api.workspace_parts import Adapter, Partition, Preset, Rollout, ServiceSettings, Tuning, Weights
from plimsoll.model.meta import (
    Condition,
    Described,
    FreeForm,
    LabelRequirement,
    LabelSelector,
    Observed,
    ObservedObject,
    PositiveInt,
    Reported,
    check_pod_template,
    labels_of,
)

PRESET_XOR_TEMPLATE: Final = "preset and template exclude each other: keep one"
NEEDS_PRESET_OR_TEMPLATE: Final = "needs a preset or a template"
INFERENCE_XOR_TUNING: Final = "inference and tuning exclude each other: keep one"
PRESET_ONLY: Final = (
    "adapters, config, contextLength and pods are for presets: remove them, a template configures its own containers"
)
CLAIMS_WHOLE: Final = "devices claim and partition exclude each other: a pod claims all GPUs of its node"
TYPE_XOR_TYPES: Final = "instanceType and instanceTypes exclude each other: keep one"
PAID_XOR_PAID: Final = "capacityType and capacityTypes exclude each other: keep one"
BY_PRICE_OF_TYPES: Final = "byPrice orders instanceTypes: list them, or remove it"
MOVE_BACK_OF_SEVERAL: Final = (
    "moveBackSeconds moves replicas to the first of several: list instanceTypes or capacityTypes, or remove it"
)
ADAPTERS_TWICE: Final = "two adapters have the same name: every source.name must be unique"


class Inference(Described):
    """What to run: a preset, or a pod template."""

    preset: Preset | None = None
    template: FreeForm | None = None
    """A PodTemplateSpec, used unchanged in the workload."""
    replicas: Annotated[int, Field(ge=0, le=10_000)] = 1
    per_replica_node_count: PositiveInt | None = None
    """Nodes that one replica spans; absent: computed from the need and the GPU memory of a node, in status."""
    gpu_memory_gib: Annotated[float, Field(gt=0, le=1_000_000)] | None = Field(default=None, alias="gpuMemoryGiB")
    """Total GPU memory that one replica needs, GiB; required if no preset determines it and nodes are to be checked."""
    context_length: Annotated[int, Field(ge=1, le=100_000_000)] | None = None
    """Context length that a preset's server serves (vLLM's max-model-len), tokens, whose KV cache must fit; absent: the
    longest that fits the nodes, up to the model's own, at least the Environment's."""
    stable_identity: bool = False
    """Whether each replica keeps its name (a StatefulSet); replicas that span nodes always do."""
    adapters: tuple[Adapter, ...] = Field(default=(), max_length=10)
    """LoRA weights that are served besides the preset's own, each under its name."""
    config: str | None = Field(default=None, min_length=1, max_length=253)
    """ConfigMap in the Workspace's namespace whose key vllm.yaml has options of the preset's server."""
    weights: Weights | None = None
    """Where a preset's files are kept; absent: as the Environment sets it."""
    pods: PresetPods | None = None
    """Settings of a preset's pods, over those of the Environment."""
    rollout: Rollout = Rollout()
    """How pods are replaced when the template changes: one after the other, or on a temporary or free node."""
    service: ServiceSettings = ServiceSettings()
    """The Service of a preset's replicas: by default, one of the Workspace's name on port 80."""

    @field_validator("template")
    @classmethod
    def _pod_template(cls, template: dict[str, Any] | None) -> dict[str, Any] | None:
        if template is not None:
            check_pod_template(template)
        return template

    @model_validator(mode="after")
    def _preset_xor_template(self) -> "Inference":
        if self.preset is not None and self.template is not None:
            raise ValueError(PRESET_XOR_TEMPLATE)
        if self.preset is None and self.template is None:
            raise ValueError(NEEDS_PRESET_OR_TEMPLATE)
        preset_only = (self.config, self.context_length, self.pods)
        if self.template is not None and (self.adapters or any(each is not None for each in preset_only)):
            raise ValueError(PRESET_ONLY)
        if len({adapter.source.name for adapter in self.adapters}) < len(self.adapters):
            raise ValueError(ADAPTERS_TWICE)
        return self


class Resource(Described):
    """Which nodes: existing ones by selector, or provisioned ones by instance type."""

    instance_type: str | None = Field(default=None, max_length=63)
    """Required if node auto-provisioning is enabled, forbidden if it is disabled."""
    instance_types: tuple[Annotated[str, Field(min_length=1, max_length=63)], ...] = Field(default=(), max_length=16)
    """Instance types of which all new nodes have one, instead of `instanceType`: the first that a replica fits, and the
    next one after it could not be provisioned."""
    by_price: bool = False
    """Whether `instanceTypes` are tried by the price of all nodes, cheapest first, instead of in their order."""
    label_selector: LabelSelector = LabelSelector()
    count: PositiveInt | None = None
    """Deprecated: total number of nodes; use `inference.replicas` and `perReplicaNodeCount`."""
    node_count_limit: PositiveInt | None = None
    """Maximum number of nodes of the Workspace; one that needs more is refused."""
    capacity_type: CapacityType | None = None
    """How provisioned nodes are paid for: `spot`, `on-demand`, `any` of them, or `reserved`: only capacity that was
    reserved; absent: as the Environment sets it."""
    capacity_types: tuple[Literal["spot", "on-demand", "reserved"], ...] = Field(default=(), max_length=3)
    """Ways to pay for provisioned nodes, tried in this order for each instance type, instead of `capacityType`."""
    move_back_seconds: int | None = Field(default=None, ge=60, le=MOST_SECONDS)
    """How often nodes of the first of several instance types and ways to pay are requested while replicas run on
    another one: once all of these nodes are Ready, the replicas move there, by a rollout with `Surge`. Absent: replicas
    that run are not moved."""
    zones: tuple[Annotated[str, Field(min_length=1, max_length=63)], ...] = Field(default=(), max_length=32)
    """Zones of the nodes; absent: any."""
    preferred_nodes: tuple[Annotated[str, Field(min_length=1, max_length=253)], ...] = ()
    """Deprecated and without effect, as in KAITO: select nodes by `labelSelector`."""
    partition: Partition | None = None
    """The part of a node's GPUs that each pod requests; only for existing nodes. Absent: all of them."""
    devices: Literal["extended-resource", "claim"] | None = None
    """How pods ask for GPUs: by the extended resource, or by a claim of Dynamic Resource Allocation, for which a
    ResourceClaimTemplate is created. Absent: by the extended resource."""
    idle_seconds: int | None = Field(default=None, ge=0, le=MOST_SECONDS)
    """How long created nodes stay when it was scaled to 0 replicas, at most as the Environment sets it; absent: as the
    Environment sets it."""

    @property
    def claims(self) -> bool:
        """Whether pods get their GPUs by claims."""
        return self.devices == "claim"

    @model_validator(mode="after")
    def _whole_by_claim(self) -> "Resource":
        if self.claims and self.partition is not None:
            raise ValueError(CLAIMS_WHOLE)
        return self

    @property
    def selector(self) -> LabelSelector:
        """What existing nodes must match: `labelSelector`, and one of the zones."""
        if not self.zones:
            return self.label_selector
        zoned = LabelRequirement(key=ZONE, operator="In", values=self.zones)
        expressions = (*self.label_selector.match_expressions, zoned)
        return self.label_selector.model_copy(update={"match_expressions": expressions})

    @property
    def named_types(self) -> tuple[str, ...]:
        """The instance types that it names, in the order of `instanceTypes`."""
        return self.instance_types or ((self.instance_type,) if self.instance_type else ())

    @property
    def alternatives(self) -> tuple[Alternative, ...]:
        """What is tried for new nodes, in order; empty where there is no choice."""
        if not (self.instance_types or self.capacity_types):
            return ()
        paid = self.capacity_types or ("",)
        return tuple(dict.fromkeys(Alternative(name, each) for name in self.named_types for each in paid))

    @field_validator("instance_type")
    @classmethod
    def _empty_is_absent(cls, value: str | None) -> str | None:
        return value or None

    @model_validator(mode="after")
    def _one_way_to_choose(self) -> "Resource":
        if self.instance_type is not None and self.instance_types:
            raise ValueError(TYPE_XOR_TYPES)
        if self.capacity_type is not None and self.capacity_types:
            raise ValueError(PAID_XOR_PAID)
        if self.by_price and not self.instance_types:
            raise ValueError(BY_PRICE_OF_TYPES)
        if self.move_back_seconds is not None and not self.alternatives:
            raise ValueError(MOVE_BACK_OF_SEVERAL)
        return self


class WorkspaceSpec(Described):
    """What a model needs: its nodes, and what runs on them. Give `inference` or `tuning`."""

    resource: Resource = Resource()
    inference: Inference | None = None
    tuning: Tuning | None = None
    """Same fields as in KAITO; always refused: fine-tuning is not implemented."""
    queue: str | None = Field(default=None, max_length=63)
    """KAI queue; the pods get its label."""

    @model_validator(mode="after")
    def _inference_xor_tuning(self) -> "WorkspaceSpec":
        if self.inference is not None and self.tuning is not None:
            raise ValueError(INFERENCE_XOR_TUNING)
        return self


class ConditionType(StrEnum):
    RESOURCE_READY = "ResourceReady"
    NODE_CLAIMS_READY = "NodeClaimsReady"
    NODES_READY = "NodesReady"
    WORKLOAD_READY = "WorkloadReady"


class WorkspaceStatus(Reported):
    """Written by the controller, by server-side apply on the status subresource."""

    observed_generation: int | None = Field(default=None, validation_alias="observedGeneration")
    per_replica_node_count: int | None = Field(default=None, validation_alias="perReplicaNodeCount")
    target_node_count: int | None = Field(default=None, validation_alias="targetNodeCount")
    replicas: int | None = None
    """Replicas that exist, for the scale subresource."""
    selector: str = ""
    """Label selector of the pods, for the scale subresource."""
    context_length: int | None = Field(default=None, validation_alias="contextLength")
    """Tokens of the longest sequence that a preset's server accepts."""
    serving: str = ""
    """How the GPUs of a replica are used."""
    worker_nodes: tuple[str, ...] = Field(default=(), validation_alias="workerNodes")
    provisioning: Provisioning = Provisioning()
    startup: Startup = Startup()
    conditions: tuple[Condition, ...] = ()


class Workspace(ObservedObject):
    spec: WorkspaceSpec
    status: WorkspaceStatus = WorkspaceStatus()
    generation: int | None = Field(default=None, validation_alias=AliasPath("metadata", "generation"))
    finalizers: tuple[str, ...] = Field(default=(), validation_alias=AliasPath("metadata", "finalizers"))

    @property
    def ref(self) -> "WorkspaceRef":
        return WorkspaceRef(namespace=self.namespace, name=self.name, uid=self.uid)

    @property
    def surge(self) -> int:
        """Pods that a rollout may have more than replicas, as a Deployment reads it."""
        rollout = self.spec.inference.rollout if self.spec.inference is not None else None
        return rollout.max_surge or 1 if rollout is not None and rollout.strategy == "Surge" else 0

    @property
    def temporary_nodes(self) -> int:
        """Temporary nodes that a rollout may take: there are no more new pods than replicas."""
        return min(self.surge, self.replicas)

    @property
    def moves_back(self) -> bool:
        """Whether its replicas move to the first of several alternatives: all at once, on temporary nodes."""
        return self.spec.resource.move_back_seconds is not None and self.surge >= self.replicas

    def idle_seconds(self, most: int) -> int:
        """How long its created nodes stay without replicas; `most` is what the Environment sets."""
        own = self.spec.resource.idle_seconds
        return most if own is None else min(own, most)

    @property
    def type_in_use(self) -> str | None:
        """Its instance type; of several, the one that is recorded as chosen."""
        return self.spec.resource.instance_type or self.status.provisioning.instance_type or None

    def on(self, alternative: Alternative | None) -> "Workspace":
        """The Workspace with one alternative, as if it named no other; itself where nothing is chosen."""
        if alternative is None:
            return self
        resource = self.spec.resource
        chosen: dict[str, Any] = {
            "instance_type": alternative.instance_type,
            "capacity_type": alternative.capacity_type or resource.capacity_type,
            **{"instance_types": (), "capacity_types": (), "by_price": False},
        }
        spec = self.spec.model_copy(update={"resource": resource.model_copy(update=chosen)})
        return self.model_copy(update={"spec": spec})

    @property
    def template(self) -> dict[str, Any] | None:
        """The PodTemplateSpec that it runs; None if it runs a preset, or nothing."""
        return self.spec.inference.template if self.spec.inference is not None else None

    @property
    def pod_labels(self) -> dict[str, Any]:
        """Labels that it gives its pods: those of its template, or of its settings of a preset's pods."""
        inference = self.spec.inference
        if inference is None or inference.pods is None:
            return labels_of(self.template or {})
        return dict(inference.pods.labels)

    @property
    def replicas(self) -> int:
        """`inference.replicas`; with a template, as many as `resource.count` nodes have at least, unless it is 0.

        The cluster sets 1 where the number is absent, so that nothing tells one that was set: the larger one counts.
        """
        inference, count = self.spec.inference, self.spec.resource.count
        if inference is None:
            return 1
        if inference.template is None or count is None or not inference.replicas:
            return inference.replicas
        return max(inference.replicas, math.ceil(count / (inference.per_replica_node_count or 1)))


class WorkspaceRef(Observed):
    """Identifies a Workspace. The UID distinguishes it from an earlier one of the same name; empty for manifests from
    files."""

    namespace: str
    name: str
    uid: str = ""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"
