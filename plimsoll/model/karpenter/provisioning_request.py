"""ProvisioningRequest (autoscaling.x-k8s.io/v1): pods for which Cluster Autoscaler makes nodes, all or none."""

from typing import Any

from pydantic import Field
from pydantic.aliases import AliasPath

from plimsoll.model.meta import Condition, ObservedObject, condition_of


class ProvisioningRequest(ObservedObject):
    pod_sets: tuple[dict[str, Any], ...] = Field(default=(), validation_alias=AliasPath("spec", "podSets"))
    """`count` and `podTemplateRef.name` of each."""
    conditions: tuple[Condition, ...] = Field(default=(), validation_alias=AliasPath("status", "conditions"))

    def says(self, kind: str) -> str:
        """The words of a condition that is True, such as `Failed`; empty where it is not."""
        condition = condition_of(self.conditions, kind)
        if condition is None or condition.status != "True":
            return ""
        return ": ".join(part for part in (condition.reason, condition.message) if part) or kind
