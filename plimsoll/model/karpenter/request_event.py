"""What an autoscaler says of an object that requests nodes, in an Event about it."""

from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import BeforeValidator, Field
from pydantic.aliases import AliasPath

from plimsoll.model.api import DemandPhase
from plimsoll.model.meta import ObservedObject

_OF_KARPENTER: Final = {"FailedScheduling": DemandPhase.REFUSED, "Nominated": DemandPhase.SCHEDULED}
_ANSWERS: Final[Mapping[str, Mapping[str, DemandPhase]]] = {
    "karpenter": _OF_KARPENTER,
    "eks-auto-mode/compute": _OF_KARPENTER,
    "cluster-autoscaler": {"NotTriggerScaleUp": DemandPhase.REFUSED, "TriggeredScaleUp": DemandPhase.LAUNCHING},
}
"""What an Event means for the request, by the component that reports it and by its reason. A nomination may be for a
node that exists; how far a new one is, its NodeClaim says. Sources: Karpenter's pkg/events/reason.go, EKS Auto Mode's
name for its Karpenter in Events of pods, and Cluster Autoscaler's EventingScaleUpStatusProcessor and
FakePodsScaleUpStatusProcessor."""

Time = Annotated[str, BeforeValidator(lambda time: time or "")]
"""RFC 3339; the apiserver sends a time that is not set as null."""


class RequestEvent(ObservedObject):
    """A v1 Event. Some clients write the fields of events.k8s.io instead, which v1 has under other names."""

    about_uid: str = Field(default="", validation_alias=AliasPath("involvedObject", "uid"))
    reason: str = ""
    message: str = ""
    reporting_component: str = Field(default="", validation_alias="reportingComponent")
    source_component: str = Field(default="", validation_alias=AliasPath("source", "component"))
    first_timestamp: Time = Field(default="", validation_alias="firstTimestamp")
    last_timestamp: Time = Field(default="", validation_alias="lastTimestamp")
    event_time: Time = Field(default="", validation_alias="eventTime")
    last_observed_time: Time = Field(default="", validation_alias=AliasPath("series", "lastObservedTime"))

    @property
    def reporter(self) -> str:
        """The component that reports it."""
        return self.reporting_component or self.source_component

    @property
    def phase(self) -> DemandPhase | None:
        """What it means for the request; None if it is no answer, or not one of an autoscaler."""
        return _ANSWERS.get(self.reporter, {}).get(self.reason)

    @property
    def first(self) -> str:
        """When it was said first."""
        return self.first_timestamp or self.event_time or self.creation_timestamp

    @property
    def last(self) -> str:
        """When it was said last: a repetition changes the object of the first time."""
        return self.last_observed_time or self.last_timestamp or self.first
