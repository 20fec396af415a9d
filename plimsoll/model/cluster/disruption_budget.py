"""PodDisruptionBudget (policy/v1), as far as it holds back the eviction of pods."""

from pydantic import Field
from pydantic.aliases import AliasPath

from plimsoll.model.meta import LabelSelector, ObservedObject


class PodDisruptionBudget(ObservedObject):
    selector: LabelSelector | None = Field(default=None, validation_alias=AliasPath("spec", "selector"))
    """Its pods: an empty selector matches all of its namespace, None none."""
    evicts_unhealthy: str = Field(default="", validation_alias=AliasPath("spec", "unhealthyPodEvictionPolicy"))
    """`AlwaysAllow`: it holds back no pod that is not Ready."""
    allowed: int | None = Field(default=None, validation_alias=AliasPath("status", "disruptionsAllowed"))
    """Pods that may be evicted now; None: its controller has not said it yet."""
