"""Karpenter's NodeClaim (karpenter.sh/v1)."""

from collections.abc import Mapping
from typing import Any, Final

from pydantic import Field
from pydantic.aliases import AliasPath

from plimsoll.labels import CAPACITY_TYPE, INSTANCE_TYPE
from plimsoll.model.karpenter.requirements import allowed_types, allowed_values
from plimsoll.model.meta import Condition, ObservedObject, condition_of, dig, objects_of
from plimsoll.text import shortlist

_ENDS: Final = (
    ("Drained", "its node is not drained: pods, or their PodDisruptionBudgets, are in the way"),
    ("VolumesDetached", "volumes are attached to its node"),
)
"""Karpenter's steps of a deletion, and what it means that one is not done."""


class NodeClaim(ObservedObject):
    """Its conditions Launched, Registered and Initialized are steps; Ready combines them."""

    finalizers: tuple[str, ...] = Field(default=(), validation_alias=AliasPath("metadata", "finalizers"))
    spec: dict[str, Any] = Field(default_factory=dict)
    conditions: tuple[Condition, ...] = Field(default=(), validation_alias=AliasPath("status", "conditions"))
    node_name: str = Field(default="", validation_alias=AliasPath("status", "nodeName"))
    provider_id: str = Field(default="", validation_alias=AliasPath("status", "providerID"))
    blocking: tuple[str, ...] = ()
    """While it is being deleted: the pods on its node for which the drain waits, with what holds each back. Whoever
    observes it, reads them (`with_blocking_pods`). Pods without GPUs are known from files only."""
    image_id: str = Field(default="", validation_alias=AliasPath("status", "imageID"))

    def condition(self, kind: str) -> Condition | None:
        return condition_of(self.conditions, kind)

    def passed(self, kind: str) -> bool:
        """Whether the condition is True."""
        condition = self.condition(kind)
        return condition is not None and condition.status == "True"

    @property
    def launched(self) -> bool:
        """Whether the provider has launched an instance for it."""
        return bool(self.provider_id) or self.passed("Launched") or self.passed("Ready")

    @property
    def ready(self) -> bool:
        """Whether the condition Ready is True and the NodeClaim is not being deleted."""
        return self.passed("Ready") and not self.deleting

    @property
    def initialized(self) -> bool:
        """Whether Karpenter has seen the node Ready, with its resources and without startup taints."""
        return self.passed("Initialized")

    @property
    def startup_taints(self) -> frozenset[tuple[str, str]]:
        """(key, effect) of the taints that another component removes before pods run on the node."""
        taints = objects_of(self.spec.get("startupTaints"))
        return frozenset((str(taint.get("key")), str(taint.get("effect"))) for taint in taints)

    @property
    def interrupted(self) -> bool:
        """Whether it is a spot instance in service that is being deleted: Karpenter deletes it when the provider
        announces the interruption, and says the reason in an event only."""
        return self.deleting and self.initialized and self.labels.get(CAPACITY_TYPE) == "spot"

    @property
    def stays(self) -> str:
        """Since when it is being deleted, and what Karpenter waits for; empty if it is not being deleted."""
        if not self.deleting:
            return ""
        waits = next((text for step, text in _ENDS if self.condition(step) is not None and not self.passed(step)), "")
        if self.blocking and not self.passed("Drained"):
            waits = f"its node is not drained: {shortlist(self.blocking)}"
        if not waits and self.finalizers:
            waits = f"its finalizers are {', '.join(self.finalizers)}"
        return f"being deleted since {self.deletion_timestamp}" + (f", {waits}" if waits else "")

    @property
    def requests(self) -> Mapping[str, Any]:
        """Amounts that its node must have, by resource."""
        found = dig(self.spec, "resources.requests")
        return found if isinstance(found, dict) else {}

    @property
    def instance_types(self) -> tuple[str, ...]:
        """Instance types that the requirements allow by `In`; empty if they name none."""
        return allowed_types(self.spec)

    @property
    def allowed_values(self) -> dict[str, tuple[str, ...]]:
        """Values by label that the requirements allow by `In`."""
        return allowed_values(self.spec)

    @property
    def possible_types(self) -> tuple[str, ...]:
        """The launched instance type; before the launch, those that the requirements allow."""
        launched = self.labels.get(INSTANCE_TYPE)
        return (launched,) if launched else self.instance_types
