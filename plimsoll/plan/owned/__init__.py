"""Objects that the controller created: their names, labels, owners and progress."""

from plimsoll.plan.owned.attempts import MESSAGE_LENGTH, Attempts, AttemptTracker, Failed, as_status
from plimsoll.plan.owned.names import claim_names, object_labels, ownership_labels
from plimsoll.plan.owned.ownership import Owned, Ownership, alive, by_age, created_objects
from plimsoll.plan.owned.plan_builder import KARPENTER, PlanBuilder, key_of, warnings_of
from plimsoll.plan.owned.progress import ClaimProgress, Wait, format_time, parse_time, phase_of
from plimsoll.plan.owned.request_object import RequestObject, request_objects, signalled

__all__ = [
    "KARPENTER",
    "MESSAGE_LENGTH",
    "AttemptTracker",
    "Attempts",
    "ClaimProgress",
    "Failed",
    "Owned",
    "Ownership",
    "PlanBuilder",
    "RequestObject",
    "Wait",
    "alive",
    "as_status",
    "by_age",
    "claim_names",
    "created_objects",
    "format_time",
    "key_of",
    "object_labels",
    "ownership_labels",
    "parse_time",
    "phase_of",
    "request_objects",
    "signalled",
    "warnings_of",
]
