"""NodeClaims whose deletion takes longer than the Environment allows, so that they count as capacity no more."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from plimsoll.model.karpenter import NodeClaim
from plimsoll.plan.owned.progress import parse_time


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
