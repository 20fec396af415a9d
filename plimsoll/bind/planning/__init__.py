"""What the share binder does next, as functions of nodes and pods."""

from plimsoll.bind.planning.claims import claim_patch, claimed, unclaim_patch
from plimsoll.bind.planning.placement import ShareSpot
from plimsoll.bind.planning.planner import BindPlan, BindPlanner
from plimsoll.bind.planning.reservation import reservation_manifest, reservation_name
from plimsoll.bind.planning.steps import Bind, BindStep, Claim, Collect, Evict, MarkUnknown, Reserve, Said, Say, Unclaim

__all__ = [
    "Bind",
    "BindPlan",
    "BindPlanner",
    "BindStep",
    "Claim",
    "Collect",
    "Evict",
    "MarkUnknown",
    "Reserve",
    "Said",
    "Say",
    "ShareSpot",
    "Unclaim",
    "claim_patch",
    "claimed",
    "reservation_manifest",
    "reservation_name",
    "unclaim_patch",
]
