"""What runs a Workspace, owned by a capacity stack: a Deployment, StatefulSet or LeaderWorkerSet, and a Service."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field
from pydantic.aliases import AliasPath

from plimsoll.labels import FIELD_MANAGER, GIVEN_UP, SPEC_HASH
from plimsoll.model.meta import Condition, ObservedObject, condition_of

SERVICE: Final = "Service"
"""Kind of the object that leads requests to the pods of a workload; it has no replicas."""


def _ours_to_set(managed_fields: Any) -> bool:
    """Whether an entry of `metadata.managedFields` (structured-merge-diff, FieldsV1) has our field manager."""
    return any(
        isinstance(entry, Mapping)
        and entry.get("manager") == FIELD_MANAGER
        and not entry.get("subresource")
        and "f:replicas" in ((entry.get("fieldsV1") or {}).get("f:spec") or {})
        for entry in managed_fields or ()
    )


def _number(value: Any) -> int:
    """0 for a percentage, which Plimsoll never sets."""
    return value if isinstance(value, int) else 0


class Workload(ObservedObject):
    api_version: str = Field(validation_alias="apiVersion")
    kind: str
    replicas: int = Field(default=1, ge=0, le=2**31 - 1, validation_alias=AliasPath("spec", "replicas"))
    """Pods, or groups of pods of a LeaderWorkerSet."""
    size: int = Field(default=1, validation_alias=AliasPath("spec", "leaderWorkerTemplate", "size"))
    """Pods of one replica, each on a node of its own."""
    ready_replicas: int = Field(default=0, validation_alias=AliasPath("status", "readyReplicas"))
    pods: int = Field(default=0, validation_alias=AliasPath("status", "replicas"))
    """Pods that exist, those of an earlier template included."""
    updated_replicas: int = Field(default=0, validation_alias=AliasPath("status", "updatedReplicas"))
    paused: bool = Field(default=False, validation_alias=AliasPath("spec", "paused"))
    """Whether a Deployment starts no pods of a new template."""
    max_surge: Annotated[int, BeforeValidator(_number)] = Field(
        default=0, validation_alias=AliasPath("spec", "strategy", "rollingUpdate", "maxSurge")
    )
    """Pods that a Deployment may have more than replicas during a rollout."""
    generation: int | None = Field(default=None, validation_alias=AliasPath("metadata", "generation"))
    observed_generation: int | None = Field(default=None, validation_alias=AliasPath("status", "observedGeneration"))
    conditions: tuple[Condition, ...] = Field(default=(), validation_alias=AliasPath("status", "conditions"))
    sets_replicas: Annotated[bool, BeforeValidator(_ours_to_set)] = Field(
        default=False, validation_alias=AliasPath("metadata", "managedFields")
    )
    """Whether our field manager owns `spec.replicas`; an autoscaler's first change takes ownership."""

    @property
    def rolling_out(self) -> bool:
        """Whether a Deployment has pods of an earlier template."""
        observed = self.kind == "Deployment" and self.generation == self.observed_generation
        return observed and self.pods > self.updated_replicas

    @property
    def stalled(self) -> bool:
        """Whether a Deployment made no progress within its deadline. It is kept: when a new pod leaves with its node,
        the one that takes its place is progress to the Deployment."""
        if GIVEN_UP in self.annotations:
            return True
        progressing = condition_of(self.conditions, "Progressing")
        return progressing is not None and progressing.status == "False"

    @property
    def spec_hash(self) -> str:
        return self.annotations.get(SPEC_HASH, "")

    @property
    def target(self) -> tuple[str, str, str, str]:
        """(API group, kind, namespace, name), as an autoscaler refers to it."""
        return (self.api_version.rpartition("/")[0], self.kind, self.namespace, self.name)
