"""CapacityBuffer (autoscaling.x-k8s.io/v1beta1): virtual pods for which Karpenter keeps nodes."""

from pydantic import Field
from pydantic.aliases import AliasPath

from plimsoll.model.meta import ObservedObject


class CapacityBuffer(ObservedObject):
    replicas: int = Field(default=0, validation_alias=AliasPath("spec", "replicas"))
    """Virtual pods; each is one of the PodTemplate."""
    template: str = Field(default="", validation_alias=AliasPath("spec", "podTemplateRef", "name"))
