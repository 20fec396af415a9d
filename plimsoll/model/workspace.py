"""Workspace: an inference workload that needs whole nodes (plimsoll.dev/v1alpha1, namespaced).

Field names under `spec` are KAITO's.
"""

from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import Field, field_validator, model_validator
from pydantic.aliases import AliasPath

from plimsoll.model.base import Declared, Observed, ObservedObject
from plimsoll.model.condition import Condition
from plimsoll.model.label_selector import LabelSelector
from plimsoll.model.pod_template import check_pod_template

PRESET_XOR_TEMPLATE: Final = "preset and template exclude each other: keep one"
NEEDS_PRESET_OR_TEMPLATE: Final = "needs a preset or a template"

PositiveInt = Annotated[int, Field(ge=1, le=10_000)]


class Preset(Declared):
    name: str = Field(min_length=1, max_length=253)


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
        return self


class Resource(Declared):
    """Which nodes: brought ones by selector, or provisioned ones by instance type."""

    instance_type: str | None = Field(default=None, max_length=63)
    """Needed where node auto-provisioning is enabled, forbidden where it is disabled."""
    label_selector: LabelSelector = LabelSelector()
    count: PositiveInt | None = None
    """Deprecated: nodes in all; `inference.replicas` and `perReplicaNodeCount` say it."""

    @field_validator("instance_type")
    @classmethod
    def _empty_is_absent(cls, value: str | None) -> str | None:
        return value or None


class WorkspaceSpec(Declared):
    resource: Resource = Resource()
    inference: Inference | None = None
    queue: str | None = Field(default=None, max_length=63)
    """KAI queue that the pods are labelled with."""


class ConditionType(StrEnum):
    RESOURCE_READY = "ResourceReady"
    NODE_CLAIMS_READY = "NodeClaimsReady"
    NODES_READY = "NodesReady"
    WORKLOAD_READY = "WorkloadReady"


class WorkspaceStatus(Observed):
    """Written by the engine alone, by server-side apply on the status subresource."""

    observed_generation: int | None = Field(default=None, validation_alias="observedGeneration")
    per_replica_node_count: int | None = Field(default=None, validation_alias="perReplicaNodeCount")
    target_node_count: int | None = Field(default=None, validation_alias="targetNodeCount")
    worker_nodes: tuple[str, ...] = Field(default=(), validation_alias="workerNodes")
    conditions: tuple[Condition, ...] = ()


class Workspace(ObservedObject):
    spec: WorkspaceSpec
    status: WorkspaceStatus = WorkspaceStatus()
    generation: int | None = Field(default=None, validation_alias=AliasPath("metadata", "generation"))

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
