"""What is being deleted: what keeps a Workspace, and NodeClaims that take so long that they count no more."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from plimsoll.labels import CAPACITY_FINALIZER
from plimsoll.model.api import Workspace
from plimsoll.model.cluster import Workload
from plimsoll.model.karpenter import NodeClaim
from plimsoll.plan.owned.ownership import Owned
from plimsoll.plan.owned.progress import parse_time
from plimsoll.text import shortlist


class Leaving(NamedTuple):
    """NodeClaims that are being deleted."""

    overdue: tuple[NodeClaim, ...]
    """Those that are late, by name."""
    next_deadline: datetime | None
    """When the next one will be."""


def leaving_claims(claims: Iterable[NodeClaim], allowed_seconds: int | None, now: datetime) -> Leaving:
    """Evaluates the deletions of the NodeClaims; without `allowed_seconds`, none is ever late."""
    if allowed_seconds is None:
        return Leaving((), None)
    due = {
        claim.name: (since + timedelta(seconds=allowed_seconds), claim)
        for claim in claims
        if (since := parse_time(claim.deletion_timestamp or "")) is not None
    }
    overdue = tuple(due[name][1] for name in sorted(due) if due[name][0] <= now)
    return Leaving(overdue, min((deadline for deadline, _ in due.values() if deadline > now), default=None))


def deletion_text(workspace: Workspace, left: Iterable[Owned]) -> str:
    """Since when a Workspace is being deleted, and what keeps it: the objects that are left of it, and finalizers."""
    names = shortlist(sorted(map(_leaving, left)))
    parts = [f"being deleted since {workspace.deletion_timestamp}"]
    if names:
        parts.append(f"left of it: {names}")
    if CAPACITY_FINALIZER in workspace.finalizers:
        until = "stays until these are gone" if names else "goes with the next round"
        parts.append(f"Plimsoll's finalizer {CAPACITY_FINALIZER} {until}")
    if others := foreign_finalizers(workspace):
        parts.append(f"finalizers of other controllers: {shortlist(others)}; only these controllers may remove them")
    return "; ".join(parts)


def foreign_finalizers(workspace: Workspace) -> tuple[str, ...]:
    return tuple(each for each in workspace.finalizers if each != CAPACITY_FINALIZER)


def _leaving(obj: Owned) -> str:
    name = f"{obj.kind if isinstance(obj, Workload) else type(obj).__name__} {obj.name}"
    if isinstance(obj, NodeClaim) and obj.deleting:
        return f"{name} ({obj.stays})"
    return f"{name} ({f'being deleted since {obj.deletion_timestamp}' if obj.deleting else 'not deleted yet'})"
