"""Plans the next steps of the share binder; functions of nodes and pods."""

from plimsoll.bind.planning.backoff import NodeBackoff
from plimsoll.bind.planning.claims import claim_patch, claimed, unclaim_patch
from plimsoll.bind.planning.placement import ShareAssignment
from plimsoll.bind.planning.planner import BindPlan, BindPlanner
from plimsoll.bind.planning.reservation import reservation_manifest, reservation_name
from plimsoll.bind.planning.steps import (
    Bind,
    BindStep,
    Claim,
    DeleteReservation,
    Evict,
    MarkUnknown,
    Reserve,
    SetUnscheduled,
    Unclaim,
    UnscheduledReason,
)

__all__ = [
    "Bind",
    "BindPlan",
    "BindPlanner",
    "BindStep",
    "Claim",
    "DeleteReservation",
    "Evict",
    "MarkUnknown",
    "NodeBackoff",
    "Reserve",
    "SetUnscheduled",
    "ShareAssignment",
    "Unclaim",
    "UnscheduledReason",
    "claim_patch",
    "claimed",
    "reservation_manifest",
    "reservation_name",
    "unclaim_patch",
]
