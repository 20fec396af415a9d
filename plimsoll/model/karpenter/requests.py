"""Objects that request nodes from an autoscaler: CapacityBuffer (v1beta1), ProvisioningRequest (v1), PodTemplate."""

from typing import Any

from pydantic import Field
from pydantic.aliases import AliasPath

from plimsoll.model.meta import Condition, ObservedObject, condition_of


class PodTemplate(ObservedObject):
    """A PodTemplate that Plimsoll created; its annotations have the request, like those of the object that refers to
    it."""


class CapacityBuffer(ObservedObject):
    replicas: int = Field(default=0, validation_alias=AliasPath("spec", "replicas"))
    """Number of virtual pods of the PodTemplate."""
    template: str = Field(default="", validation_alias=AliasPath("spec", "podTemplateRef", "name"))
    conditions: tuple[Condition, ...] = Field(default=(), validation_alias=AliasPath("status", "conditions"))


class ProvisioningRequest(ObservedObject):
    pod_sets: tuple[dict[str, Any], ...] = Field(default=(), validation_alias=AliasPath("spec", "podSets"))
    """`count` and `podTemplateRef.name` of each."""
    conditions: tuple[Condition, ...] = Field(default=(), validation_alias=AliasPath("status", "conditions"))

    def says(self, kind: str) -> str:
        """Reason and message of a condition that is True, such as `Failed`; empty if it is not."""
        condition = condition_of(self.conditions, kind)
        if condition is None or condition.status != "True":
            return ""
        return ": ".join(part for part in (condition.reason, condition.message) if part) or kind
