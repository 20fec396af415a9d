"""A HorizontalPodAutoscaler (autoscaling/v2): which workload's replicas it sets."""

from pydantic import Field
from pydantic.aliases import AliasPath

from plimsoll.model.meta import ObservedObject


class Autoscaler(ObservedObject):
    """It sets `spec.replicas` of its target, in its own namespace."""

    target_api_version: str = Field(default="", validation_alias=AliasPath("spec", "scaleTargetRef", "apiVersion"))
    target_kind: str = Field(default="", validation_alias=AliasPath("spec", "scaleTargetRef", "kind"))
    target_name: str = Field(default="", validation_alias=AliasPath("spec", "scaleTargetRef", "name"))
    min_replicas: int = Field(default=1, validation_alias=AliasPath("spec", "minReplicas"))
    max_replicas: int = Field(default=0, validation_alias=AliasPath("spec", "maxReplicas"))
    """0: not said."""

    @property
    def target(self) -> tuple[str, str, str, str]:
        """(API group, kind, namespace, name) of the workload."""
        return (self.target_api_version.rpartition("/")[0], self.target_kind, self.namespace, self.target_name)
