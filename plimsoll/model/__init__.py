"""Plimsoll's values: what users declare, what was observed in the cluster, and plans.

Nothing here reads a clock, a network or a file.
"""

from plimsoll.model.creator import is_created
from plimsoll.model.owner import DemandRef, Owner, PodRef
from plimsoll.model.plan import (
    REQUEST_KINDS,
    Change,
    Deletion,
    GateRemoval,
    ObjectKey,
    Plan,
    PreferredDeletion,
    RefusedOperation,
    Signal,
    SignalReason,
    Withheld,
)
from plimsoll.model.refusal import NO_NODES_FOR, Refusal
from plimsoll.model.serving import Serving, Tier
from plimsoll.model.snapshot import InvalidObject, Snapshot
from plimsoll.model.verdict import Reason, Verdict

__all__ = [
    "NO_NODES_FOR",
    "REQUEST_KINDS",
    "Change",
    "Deletion",
    "DemandRef",
    "GateRemoval",
    "InvalidObject",
    "ObjectKey",
    "Owner",
    "Plan",
    "PodRef",
    "PreferredDeletion",
    "Reason",
    "Refusal",
    "RefusedOperation",
    "Serving",
    "Signal",
    "SignalReason",
    "Snapshot",
    "Tier",
    "Verdict",
    "Withheld",
    "is_created",
]
