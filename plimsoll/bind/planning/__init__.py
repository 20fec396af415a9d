"""Plans the next steps of the share binder; functions of nodes and pods."""

from plimsoll.bind.planning.backoff import NodeBackoff
from plimsoll.bind.planning.claims import claim_patch, claimed, unclaim_patch
from plimsoll.bind.planning.placement import (
    HostRoom,
    NoFit,
    ShareAssignment,
    SharePlacer,
    new_groups,
    unsuitable_because,
)
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
    "HostRoom",
    "MarkUnknown",
    "NoFit",
    "NodeBackoff",
    "Reserve",
    "SetUnscheduled",
    "ShareAssignment",
    "SharePlacer",
    "Unclaim",
    "UnscheduledReason",
    "claim_patch",
    "claimed",
    "new_groups",
    "reservation_manifest",
    "reservation_name",
    "unclaim_patch",
    "unsuitable_because",
]
