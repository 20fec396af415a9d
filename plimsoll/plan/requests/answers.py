"""What autoscalers say of capacity requests: in Events about the request objects, and in conditions.

Answers are shown in GPUDemands and change no plan: who may write Events in the namespace of the requests has not
necessarily the right to withdraw a request.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Final, NamedTuple

from plimsoll.model import Snapshot
from plimsoll.model.api import DemandPhase
from plimsoll.model.cluster import Pod
from plimsoll.model.karpenter import CapacityBuffer, NodeClaim, ProvisioningRequest, RequestEvent
from plimsoll.model.meta import Condition, condition_of
from plimsoll.plan.owned import MESSAGE_LENGTH, parse_time
from plimsoll.plan.requests.capacity_request import CapacityRequest

KARPENTER: Final = "karpenter"
SOME_AUTOSCALER: Final = "the autoscaler"
"""Who writes the conditions of CapacityBuffers and ProvisioningRequests: they do not say it."""
_NOMINATED: Final = re.compile(r"\bnodeclaim/([a-z0-9.-]+)")
"""In Karpenter's message on a pod that it nominates (NominatePodEvent)."""
_NEVER: Final = datetime.min.replace(tzinfo=UTC)
_INITIAL: Final = ("", "AwaitingReconciliation")
"""Reasons of a NodeClaim's conditions that Karpenter has not evaluated yet (operatorpkg's status.NewConditions)."""
_OF_PROVISIONING_REQUESTS: Final = (
    ("CapacityRevoked", "True", DemandPhase.REFUSED),
    ("BookingExpired", "True", DemandPhase.REFUSED),
    ("Provisioned", "True", DemandPhase.LAUNCHING),
    ("Provisioned", "False", DemandPhase.REFUSED),
)
"""(condition, status, what it means); the first that applies counts. `Failed` ends the request. Source: Cluster
Autoscaler's API, provisioningrequest/autoscaling.x-k8s.io/v1."""
_OF_CAPACITY_BUFFERS: Final = (
    ("ReadyForProvisioning", "False", DemandPhase.REFUSED),
    ("LimitedByQuotas", "True", DemandPhase.REFUSED),
    ("Provisioning", "True", DemandPhase.SCHEDULED),
)
"""The same for CapacityBuffers. `Provisioning` is False whenever new nodes are needed. Source: Karpenter's
pkg/controllers/capacitybuffer and pkg/apis/autoscaling/v1beta1/constants.go."""


class Answer(NamedTuple):
    by: str
    """The component that gave it."""
    reason: str
    message: str
    """In the words of the component, at most MESSAGE_LENGTH characters; may be empty."""
    since: str
    """RFC 3339: when it was given first; may be empty."""
    time: datetime | None
    """When it was given last; None where that is not known."""
    phase: DemandPhase
    """What it means for the request: Refused, Launching, or Scheduled if there is no refusal any more."""

    @property
    def refused(self) -> bool:
        return self.phase is DemandPhase.REFUSED

    @property
    def text(self) -> str:
        """`reason: message`."""
        return f"{self.reason}: {self.message}" if self.message else self.reason

    def after(self, time: datetime | None) -> bool:
        """Whether it was given after `time`, or one of the times is not known."""
        return self.time is None or time is None or self.time > time


class Answers:
    """The answers to the requests of one snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._events: dict[str, list[RequestEvent]] = {}
        """By the UID of the object that they are about."""
        self._nominated = nominations(snapshot.request_events)
        for event in snapshot.request_events:
            for uid in _about(event):
                self._events.setdefault(uid, []).append(event)

    def to(self, request: CapacityRequest) -> Answer | None:
        """The newest answer to the request; None if there is none since the request was created."""
        given = [*self._said(request), *_conditions(request.obj)]
        return max(given, key=lambda answer: (answer.time or _NEVER, not answer.refused), default=None)

    def of_another(self, claim: str, request: CapacityRequest) -> bool:
        """Whether Karpenter said for which pods it created the NodeClaim, and the request is not one of them."""
        nominated = self._nominated.get(claim)
        return nominated is not None and request.obj.uid not in nominated

    def _said(self, request: CapacityRequest) -> Iterator[Answer]:
        for event in self._events.get(request.obj.uid, ()) if request.obj.uid else ():
            time = parse_time(event.last)
            since_then = request.since is None or (time is not None and time >= request.since)
            if event.phase is not None and since_then:
                message = event.message[:MESSAGE_LENGTH]
                yield Answer(event.reporter, event.reason, message, event.first, time, event.phase)


def nominations(events: Iterable[RequestEvent]) -> dict[str, dict[str, str]]:
    """For which request objects Karpenter said that it created a NodeClaim, by the NodeClaim's name: their UIDs, with
    when it said so first (RFC 3339). It says so of few in a burst."""
    found: dict[str, dict[str, str]] = {}
    for event in events:
        for claim in _NOMINATED.findall(event.message) if event.phase is DemandPhase.SCHEDULED else ():
            times = found.setdefault(claim, {})
            times |= {uid: min(event.first, times.get(uid, event.first)) for uid in _about(event)}
    return found


def _about(event: RequestEvent) -> tuple[str, ...]:
    """The UID that the event names; that of a virtual pod of Karpenter is the UID of its CapacityBuffer and a number
    (BuildVirtualPods)."""
    buffer, _, number = event.about_uid.rpartition("-")
    return (event.about_uid, buffer) if number.isdecimal() else (event.about_uid,)


def _conditions(obj: Pod | CapacityBuffer | ProvisioningRequest) -> Iterator[Answer]:
    """The answer in the conditions of a CapacityBuffer or ProvisioningRequest, if there is one."""
    if isinstance(obj, Pod):
        return
    for kind, status, phase in _OF_CAPACITY_BUFFERS if isinstance(obj, CapacityBuffer) else _OF_PROVISIONING_REQUESTS:
        condition = condition_of(obj.conditions, kind)
        if condition is not None and condition.status == status:
            yield _of_condition(SOME_AUTOSCALER, condition, condition.message, phase)
            return


def refusal_of(claim: NodeClaim, step: str) -> Answer | None:
    """Why the step that a NodeClaim waits for fails, so that Karpenter tries it again; None while it is merely awaited.

    Launched stays Unknown when a provider refuses, with the reason LaunchFailed or one of the provider's. A step with
    the status False has failed (Registered: MultipleNodesFound). Source: Karpenter's
    pkg/controllers/nodeclaim/lifecycle.
    """
    condition = claim.condition(step)
    if condition is None or condition.reason in _INITIAL:
        return None
    failed = condition.status == "False" or (step == "Launched" and condition.status == "Unknown")
    message = f"NodeClaim {claim.name}: {condition.message or condition.reason}"
    return _of_condition(KARPENTER, condition, message, DemandPhase.REFUSED) if failed else None


def _of_condition(by: str, condition: Condition, message: str, phase: DemandPhase) -> Answer:
    since = condition.last_transition_time
    reason = condition.reason or condition.type
    return Answer(by, reason, message[:MESSAGE_LENGTH], since, parse_time(since), phase)
