"""Attempts to provision a Workspace's NodeClaims: which are late or lost, and when the next attempt is due.

All of it is read from the cluster: from the NodeClaims, and from the Workspace's status for those that no longer exist.
Therefore a restart neither loses nor restarts a back-off.
"""

from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final, NamedTuple

from pydantic.alias_generators import to_camel

from plimsoll.labels import NODEPOOL
from plimsoll.model import Snapshot
from plimsoll.model.api import Alternative, PendingClaim, Provisioning, Tries
from plimsoll.model.karpenter import ClaimEvent, NodeClaim
from plimsoll.plan.owned.progress import GPUS, ClaimProgress, Wait, format_time, parse_time

MESSAGE_LENGTH: Final = 400
"""Maximum length of a message of Karpenter or a provider in a status, in characters."""
NOTHING_CHOSEN: Final = Alternative("")
"""In the status before anything was requested."""
_DOUBLINGS: Final = 20
"""Keeps the back-off computable: it has reached its limit long before."""


class Failed(StrEnum):
    """Why a NodeClaim is replaced."""

    LATE = "NodeClaimLate"
    LOST = "NodeClaimLost"
    INSUFFICIENT_CAPACITY = "InsufficientCapacity"


class _Failure(NamedTuple):
    reason: Failed
    claim: str
    message: str


@dataclass(frozen=True)
class Attempts:
    """The attempts of one Workspace."""

    late: Mapping[str, str]
    """NodeClaims to replace: name to reason."""
    overdue: tuple[str, ...]
    """Late NodeClaims of a static NodePool that stay until the next attempt is due: the problem of each."""
    record: Provisioning
    """What the status is to record."""
    next_try: datetime | None
    """No NodeClaim is created before this time; None where nothing failed."""
    next_deadline: datetime | None
    """The next deadline or attempt, whichever is first."""

    @property
    def settled(self) -> bool:
        """Whether they are the same at any later time: nothing is awaited, and nothing that failed is tried again."""
        return not (self.late or self.overdue or self.record.pending or self.next_try or self.next_deadline)


class AttemptTracker:
    """Evaluates the NodeClaims of the Workspaces of one snapshot."""

    def __init__(self, snapshot: Snapshot, progress: ClaimProgress, now: datetime) -> None:
        self._progress = progress
        self._settings = snapshot.environment.spec.node_claims
        self._events = {event.claim: event for event in snapshot.claim_events}
        self.now = now

    def evaluate(
        self,
        previous: Provisioning,
        claims: Sequence[NodeClaim],
        *,
        gpus_known: bool,
        created: Collection[str] = (),
        dropped: Container[str] = (),
        on: Alternative | None = None,
    ) -> Attempts:
        """Evaluates a Workspace's NodeClaims, including those that are being deleted; `previous` is from its status.

        `created` and `dropped` name NodeClaims that a plan has just created, or deleted as surplus, which the snapshot
        does not show yet. A static NodePool replaces a deleted NodeClaim at once, so there the back-off precedes the
        deletion. Of several instance types, `on` is the one that is chosen; what failed of another is counted already.
        """
        known = self._with_provider_message(
            self._recovered(previous, [claim for claim in claims if not claim.deleting])
        )
        due = self._next_try(known, on)
        recorded = {each.name: each for each in previous.pending}
        alive = {claim.name: claim for claim in claims if not claim.deleting}
        late: dict[str, str] = {}
        overdue: list[str] = []
        pending: list[PendingClaim] = []
        failed: list[_Failure] = []
        deadlines: list[datetime] = []
        for name in sorted(alive):
            claim = alive[name]
            waits = self._progress.wait(claim, gpus_known=gpus_known, recorded=recorded.get(name), now=self.now)
            if waits is None:
                continue
            if self.now <= waits.due:
                if name in dropped:
                    continue
                deadlines.append(waits.due)
            elif NODEPOOL in claim.labels and due is not None and self.now < due:
                overdue.append(_late(claim, waits))
            else:
                late[name] = _late(claim, waits)
                failed.append(_Failure(Failed.LATE, name, late[name]))
                continue
            since = format_time(waits.since) if waits.step == GPUS else ""
            pending.append(PendingClaim(name=name, step=waits.step, since=since, message=waits.detail[:MESSAGE_LENGTH]))
        for each in previous.pending:
            if each.name not in alive and each.name not in dropped and each.name not in created:
                failed.append(_lost(each, self._events.get(each.name)))
        for name in sorted(set(created) - alive.keys()):
            pending.append(PendingClaim(name=name, step="Launched"))
        record = self._counted(known, failed, on)
        next_try = self._next_try(record, on)
        if next_try is not None and next_try > self.now:
            deadlines.append(next_try)
        return Attempts(
            late=late,
            overdue=tuple(overdue),
            record=record.model_copy(update={"pending": tuple(pending)}),
            next_try=next_try,
            next_deadline=min(deadlines, default=None),
        )

    def of_move(
        self,
        previous: Tries,
        claims: Sequence[NodeClaim],
        *,
        created: Collection[str] = (),
        dropped: Container[str] = (),
    ) -> Attempts:
        """As `evaluate`, of the NodeClaims of the alternative to which replicas move back."""
        record = Provisioning.model_construct(**dict(previous))
        return self.evaluate(record, claims, gpus_known=True, created=created, dropped=dropped)

    def _recovered(self, previous: Provisioning, alive: Collection[NodeClaim]) -> Provisioning:
        """Without failures, if a NodeClaim that was created after the last failure became Ready."""
        last = parse_time(previous.last_failure)
        if last is not None and any(
            created > last and self._progress.ready(claim)
            for claim in alive
            if (created := parse_time(claim.creation_timestamp)) is not None
        ):
            kept = previous.alternative._asdict()
            return Provisioning.model_construct(tries=previous.tries, **kept)
        return previous

    def _with_provider_message(self, record: Provisioning) -> Provisioning:
        """With the provider's message, which may arrive after the NodeClaim is gone."""
        event = self._events.get(record.claim)
        detail = event.detail[:MESSAGE_LENGTH] if event is not None else ""
        if not record.failures or detail in record.message:
            return record
        update = {"reason": Failed.INSUFFICIENT_CAPACITY.value, "message": f"{record.message}: {detail}"}
        return record.model_copy(update=update)

    def _counted(self, record: Provisioning, failed: Sequence[_Failure], on: Alternative | None) -> Provisioning:
        """With new failures, and the chosen alternative. Failures before the next attempt is due count for the previous
        attempt; what fails of an alternative that is not used any more is counted already."""
        if on is not None:
            failed = failed if record.alternative == NOTHING_CHOSEN or record.alternative.same(on) else ()
            record = record.model_copy(update=on._asdict())
        if not failed:
            return record
        first = failed[0]
        update: dict[str, Any] = {"claim": first.claim, "reason": first.reason.value, "message": first.message}
        next_try = self._next_try(record, on)
        if next_try is None or self.now >= next_try:
            if on is not None:
                entry = record.failed(on)
                counted = {"failures": entry.failures + 1, "last_failure": format_time(self.now)}
                record = record.with_failed(entry.model_copy(update=counted | {"message": first.message}))
            update |= {
                "failures": record.failures + 1,
                "tries": record.tries + 1,
                "last_failure": format_time(self.now),
            }
        return record.model_copy(update=update)

    def _next_try(self, record: Provisioning, on: Alternative | None) -> datetime | None:
        """When the next attempt is due, of the chosen alternative where there are several."""
        counted = record if on is None else record.failed(on)
        last = parse_time(counted.last_failure)
        if last is None or not counted.failures:
            return None
        doubled = self._settings.retry_seconds * 2 ** min(counted.failures - 1, _DOUBLINGS)
        return last + timedelta(seconds=min(doubled, self._settings.retry_limit_seconds))


def as_status(record: Provisioning) -> dict[str, Any] | None:
    """The record as a status field; None where it is empty."""
    if record == Provisioning():
        return None
    fields = _tries(record)
    if record.alternatives:
        fields["alternatives"] = [_fields(each.model_dump(exclude_defaults=True)) for each in record.alternatives]
    if record.move_back != Tries():
        fields["moveBack"] = _tries(record.move_back)
    return fields


def _tries(record: Tries) -> dict[str, Any]:
    nested = {"pending", "alternatives", "move_back"}
    fields = _fields(record.model_dump(exclude=nested, exclude_defaults=True))
    if record.pending:
        fields["pending"] = [each.model_dump(exclude_defaults=True) for each in record.pending]
    return fields


def _fields(values: Mapping[str, Any]) -> dict[str, Any]:
    return {to_camel(name): value for name, value in values.items()}


def _late(claim: NodeClaim, waits: Wait) -> str:
    step = f"shows no {GPUS}" if waits.step == GPUS else f"is not {waits.step}"
    message = f" ({waits.detail[:MESSAGE_LENGTH]})" if waits.detail else ""
    return f"NodeClaim {claim.name} {step} after {duration(waits.allowed)}{message}"


def _lost(claim: PendingClaim, event: ClaimEvent | None) -> _Failure:
    message = event.detail[:MESSAGE_LENGTH] if event is not None else claim.message
    reason = Failed.LOST if event is None else Failed.INSUFFICIENT_CAPACITY
    text = f"NodeClaim {claim.name} was deleted before it was {'ready' if claim.step == GPUS else claim.step}"
    return _Failure(reason, claim.name, f"{text}: {message}" if message else text)


def duration(time: timedelta) -> str:
    """Such as `10 min` or `90 s`."""
    seconds = int(time.total_seconds())
    return f"{seconds // 60} min" if seconds >= 60 and seconds % 60 == 0 else f"{seconds} s"
