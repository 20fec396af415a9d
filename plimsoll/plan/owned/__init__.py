"""Objects that the controller created: their names, labels, owners and progress."""

from plimsoll.plan.owned.attempts import MESSAGE_LENGTH, Attempts, AttemptTracker, Failed, as_status
from plimsoll.plan.owned.idle import Idle, idle_nodes
from plimsoll.plan.owned.leaving import Leaving, deletion_text, foreign_finalizers, leaving_claims
from plimsoll.plan.owned.names import NAME_LENGTH, claim_names, object_labels, ownership_labels
from plimsoll.plan.owned.ownership import Owned, Ownership, alive, by_age, created_objects
from plimsoll.plan.owned.plan_builder import KARPENTER, PlanBuilder, PlanPart, key_of, warnings_of
from plimsoll.plan.owned.progress import GPUS, ClaimProgress, Wait, format_time, parse_time, phase_of
from plimsoll.plan.owned.request_object import RequestObject, request_objects, signalled

__all__ = [
    "GPUS",
    "KARPENTER",
    "MESSAGE_LENGTH",
    "NAME_LENGTH",
    "AttemptTracker",
    "Attempts",
    "ClaimProgress",
    "Failed",
    "Idle",
    "Leaving",
    "Owned",
    "Ownership",
    "PlanBuilder",
    "PlanPart",
    "RequestObject",
    "Wait",
    "alive",
    "as_status",
    "by_age",
    "claim_names",
    "created_objects",
    "deletion_text",
    "foreign_finalizers",
    "format_time",
    "idle_nodes",
    "key_of",
    "leaving_claims",
    "object_labels",
    "ownership_labels",
    "parse_time",
    "phase_of",
    "request_objects",
    "signalled",
    "warnings_of",
]
