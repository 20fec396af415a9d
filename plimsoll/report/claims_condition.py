"""NodeClaimsReady: how far the NodeClaims of a Workspace have come, what failed, and when it is tried again."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from plimsoll.model.karpenter import NodeClaim
from plimsoll.plan.owned import Attempts, words_of
from plimsoll.report.finding import ConditionReason, Finding
from plimsoll.text import counted, shortlist

STEPS: Final = (
    ("Launched", ConditionReason.NODE_CLAIM_NOT_LAUNCHED),
    ("Registered", ConditionReason.NODE_CLAIM_NOT_REGISTERED),
    ("Initialized", ConditionReason.NODE_CLAIM_NOT_INITIALIZED),
    ("Ready", ConditionReason.NODE_CLAIM_NOT_READY),
)
"""The way of a NodeClaim, by Karpenter's condition types."""


def node_claims_finding(claims: Sequence[NodeClaim], needed: int, tries: Attempts, now: datetime) -> Finding:
    """`claims` are those not under deletion, `needed` how many are wanted; `tries` is what became of them so far."""
    if not needed:
        return Finding(True, ConditionReason.NOT_NEEDED, "no NodeClaim is needed")
    ready = sum(claim.ready and claim.name not in tries.late for claim in claims)
    if ready >= needed:
        return Finding(True, ConditionReason.READY, f"{counted(ready, 'NodeClaim')} ready of {needed} needed")
    staying = [claim for claim in claims if claim.name not in tries.late]
    if tries.overdue:
        said = "; ".join(tries.overdue[:3])
        return Finding(
            False,
            ConditionReason.NODE_CLAIM_LATE,
            f"{ready} of {counted(needed, 'NodeClaim')} ready; {said}; {_next_try(tries, now)}",
        )
    if len(staying) < needed:
        return _missing(len(staying), ready, needed, tries, now)
    waiting = sorted((claim for claim in staying if not claim.ready), key=lambda claim: claim.name)
    step, reason, stuck = next(
        (step, reason, stuck)
        for step, reason in STEPS
        if (stuck := [each for each in waiting if not _passed(each, step)])
    )
    names = shortlist([claim.name for claim in stuck])
    before = f"; try {tries.record.failures + 1}: {tries.record.message}" if tries.record.failures else ""
    return Finding(
        False,
        reason,
        f"{ready} of {counted(needed, 'NodeClaim')} ready; not {step}: {names}{_why(stuck, step)}{before}",
    )


def _missing(there: int, ready: int, needed: int, tries: Attempts, now: datetime) -> Finding:
    record = tries.record
    if not record.failures or tries.next_try is None:
        return Finding(False, ConditionReason.NODE_CLAIMS_PENDING, f"{there} of {counted(needed, 'NodeClaim')} exist")
    said = f"{ready} of {counted(needed, 'NodeClaim')} ready; {record.message}; {_next_try(tries, now)}"
    return Finding(False, record.reason, said)


def _next_try(tries: Attempts, now: datetime) -> str:
    number = tries.record.failures + 1
    if tries.next_try is None or now >= tries.next_try:
        return f"try {number} is due"
    return f"try {number} at {tries.next_try.astimezone(UTC).strftime('%Y-%m-%dT%H:%M:%SZ')}"


def _passed(claim: NodeClaim, step: str) -> bool:
    condition = claim.condition(step)
    return condition is not None and condition.status == "True"


def _why(claims: Sequence[NodeClaim], step: str) -> str:
    """What Karpenter says of the first claim for which it says something."""
    for claim in claims:
        if said := words_of(claim.condition(step)):
            return f" ({claim.name}: {said})"
    return ""
