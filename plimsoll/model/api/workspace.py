"""Workspace: an inference workload that needs whole nodes (plimsoll.dev/v1alpha1, namespaced).

Field names under `spec` are KAITO's.
"""

from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import Field, field_validator, model_validator
from pydantic.aliases import AliasPath

from plimsoll.model.api.provisioning import Provisioning
from plimsoll.model.api.workspace_parts import Adapter, Partition, Preset, Tuning
from plimsoll.model.meta import (
    Condition,
    Declared,
    LabelSelector,
    Observed,
    ObservedObject,
    PositiveInt,
    Reported,
    check_pod_template,
)

PRESET_XOR_TEMPLATE: Final = "preset and template exclude each other: keep one"
NEEDS_PRESET_OR_TEMPLATE: Final = "needs a preset or a template"
INFERENCE_XOR_TUNING: Final = "inference and tuning exclude each other: keep one"
PRESET_ONLY: Final = "adapters, config and contextLength are for presets: a template says itself what its containers do"
ADAPTERS_TWICE: Final = "two adapters have the same name: every source.name stands once"


class Inference(Declared):
    """What runs: a preset, or a pod template."""

    preset: Preset | None = None
    template: dict[str, Any] | None = None
    """A PodTemplateSpec, handed to the workload as it is."""
    replicas: Annotated[int, Field(ge=0, le=10_000)] = 1
    per_replica_node_count: PositiveInt | None = None
    """Nodes that one replica spans; absent: computed from the need and the node's GPU memory into status."""
    gpu_memory_gib: Annotated[float, Field(gt=0, le=1_000_000)] | None = Field(default=None, alias="gpuMemoryGiB")
    """GPU memory that one replica needs in all, GiB; needed where no preset says it and nodes are to be checked."""
    context_length: Annotated[int, Field(ge=1, le=100_000_000)] | None = None
    """Tokens that a preset's server takes at most (vLLM's max-model-len) and whose KV cache is counted; absent: the
    Environment's are counted, and the server chooses."""
    stable_identity: bool = False
    """Whether each replica keeps its name (a StatefulSet); replicas that span nodes always do."""
    adapters: tuple[Adapter, ...] = Field(default=(), max_length=10)
    """LoRA weights that are served beside the preset's own, each under its name."""
    config: str | None = Field(default=None, min_length=1, max_length=253)
    """ConfigMap of the Workspace's namespace whose key vllm.yaml holds options of the preset's server."""

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
        if self.template is not None and (self.adapters or self.config is not None or self.context_length is not None):
            raise ValueError(PRESET_ONLY)
        if len({adapter.source.name for adapter in self.adapters}) < len(self.adapters):
            raise ValueError(ADAPTERS_TWICE)
        return self


class Resource(Declared):
    """Which nodes: brought ones by selector, or provisioned ones by instance type."""

    instance_type: str | None = Field(default=None, max_length=63)
    """Needed where node auto-provisioning is enabled, forbidden where it is disabled."""
    label_selector: LabelSelector = LabelSelector()
    count: PositiveInt | None = None
    """Deprecated: nodes in all; `inference.replicas` and `perReplicaNodeCount` say it."""
    node_count_limit: PositiveInt | None = None
    """Nodes that the Workspace may take at most; one that wants more is refused."""
    preferred_nodes: tuple[Annotated[str, Field(min_length=1, max_length=253)], ...] = ()
    """Deprecated and not read, as in KAITO: nodes are named by `labelSelector`."""
    partition: Partition | None = None
    """The part of a node's GPUs that each pod asks for; for brought nodes only. Absent: all of them."""

    @field_validator("instance_type")
    @classmethod
    def _empty_is_absent(cls, value: str | None) -> str | None:
        return value or None


class WorkspaceSpec(Declared):
    resource: Resource = Resource()
    inference: Inference | None = None
    tuning: Tuning | None = None
    """Read as KAITO has it, and refused: fine-tuning is not scheduled."""
    queue: str | None = Field(default=None, max_length=63)
    """KAI queue that the pods are labelled with."""

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
    """Written by the engine alone, by server-side apply on the status subresource."""

    observed_generation: int | None = Field(default=None, validation_alias="observedGeneration")
    per_replica_node_count: int | None = Field(default=None, validation_alias="perReplicaNodeCount")
    target_node_count: int | None = Field(default=None, validation_alias="targetNodeCount")
    worker_nodes: tuple[str, ...] = Field(default=(), validation_alias="workerNodes")
    provisioning: Provisioning = Provisioning()
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
    def replicas(self) -> int:
        return self.spec.inference.replicas if self.spec.inference is not None else 1


class WorkspaceRef(Observed):
    """Names a Workspace; the UID tells a recreated one apart, and is empty in manifests from files."""

    namespace: str
    name: str
    uid: str = ""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"
