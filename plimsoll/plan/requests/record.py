"""What is remembered of a demand's failures: in the status of its GPUDemand, so that a restart forgets none."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from plimsoll.model.api import BlockedType, DemandSettings, GPUDemandStatus
from plimsoll.plan.owned import parse_time


@dataclass(frozen=True)
class RequestFailure:
    """Something that was asked for and did not come."""

    message: str
    node_pool: str
    instance_types: tuple[str, ...]
    attempt: int
    """Of what asked for it."""


@dataclass(frozen=True)
class FailureRecord:
    """Failures in a row, and instance types that are not asked for now."""

    failures: int = 0
    last: datetime | None = None
    blocked: tuple[BlockedType, ...] = ()

    @classmethod
    def of(cls, status: GPUDemandStatus, now: datetime) -> "FailureRecord":
        """Without the blocks that are over."""
        blocked = tuple(each for each in status.blocked if (until := parse_time(each.until)) is None or until > now)
        return cls(status.failures, parse_time(status.last_failure), blocked)

    def failed(self, failing: Sequence[RequestFailure], settings: DemandSettings, now: datetime) -> "FailureRecord":
        """With new failures; all that fails of one attempt is one, also where a restart sees it again."""
        if not failing:
            return self
        pause = timedelta(seconds=settings.retry_seconds)
        again = any(each.attempt > self.failures for each in failing)
        until = text_of(now + pause)
        blocked = {(each.node_pool, each.instance_type): each for each in self.blocked}
        for each in failing:
            for kind in each.instance_types:
                blocked[each.node_pool, kind] = BlockedType(
                    node_pool=each.node_pool, instance_type=kind, until=until, reason=each.message[:400]
                )
        return FailureRecord(
            failures=self.failures + 1 if again else self.failures,
            last=now if again else self.last,
            blocked=tuple(blocked[key] for key in sorted(blocked)),
        )

    def succeeded(self, attempts: Iterable[int]) -> "FailureRecord":
        """Nothing fails any more where a node has just come for something that was asked for after the last failure.

        Attempts tell before from after: the clocks of the cluster and the loop may differ.
        """
        return replace(self, failures=0, last=None) if any(each > self.failures for each in attempts) else self

    def paused_until(self, settings: DemandSettings, now: datetime) -> datetime | None:
        """When a demand that has used up its retries is asked for again; None where it may be now."""
        if self.last is None or self.failures <= settings.retries:
            return None
        until = self.last + timedelta(seconds=settings.pause_seconds)
        return until if now < until else None

    def resumed(self, settings: DemandSettings, now: datetime) -> "FailureRecord":
        """Begun anew after the pause."""
        if self.failures > settings.retries and self.paused_until(settings, now) is None:
            return replace(self, failures=0, last=None)
        return self


def text_of(time: datetime) -> str:
    """RFC 3339, in UTC, whole seconds."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
