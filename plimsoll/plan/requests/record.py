"""FailureRecord: failed attempts of a demand, kept in the status of its GPUDemand so that a restart keeps them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from plimsoll.model.api import BlockedType, DemandSettings, GPUDemandStatus
from plimsoll.plan.owned import MESSAGE_LENGTH, format_time, parse_time


@dataclass(frozen=True)
class RequestFailure:
    """A requested node that failed."""

    message: str
    node_pool: str
    instance_types: tuple[str, ...]


@dataclass(frozen=True)
class FailureRecord:
    """Consecutive failures, and instance types that are skipped for now."""

    failures: int = 0
    last: datetime | None = None
    blocked: tuple[BlockedType, ...] = ()

    @classmethod
    def of(cls, status: GPUDemandStatus, now: datetime) -> "FailureRecord":
        """Reads a status, without the instance types whose time is over."""
        blocked = tuple(kept for kept in status.blocked if (until := parse_time(kept.until)) is None or until > now)
        return cls(status.failures, parse_time(status.last_failure), blocked)

    def failed(
        self, failing: Sequence[RequestFailure], attempts: Iterable[int], settings: DemandSettings, now: datetime
    ) -> "FailureRecord":
        """A copy with new failures, in these attempts. Failures of one attempt count as one, also after a restart."""
        if not failing:
            return self
        pause = timedelta(seconds=settings.retry_seconds)
        again = any(attempt > self.failures for attempt in attempts)
        until = format_time(now + pause)
        blocked = {(kept.node_pool, kept.instance_type): kept for kept in self.blocked}
        for failure in failing:
            for kind in failure.instance_types:
                blocked[failure.node_pool, kind] = BlockedType(
                    node_pool=failure.node_pool,
                    instance_type=kind,
                    until=until,
                    reason=failure.message[:MESSAGE_LENGTH],
                )
        return FailureRecord(
            failures=self.failures + 1 if again else self.failures,
            last=now if again else self.last,
            blocked=tuple(blocked[key] for key in sorted(blocked)),
        )

    def succeeded(self, attempts: Iterable[int]) -> "FailureRecord":
        """A copy without failures, if a node registered for a request that is newer than the last failure.

        The attempt number tells newer from older, because the clocks of the cluster and the controller may differ.
        """
        return replace(self, failures=0, last=None) if any(attempt > self.failures for attempt in attempts) else self

    def paused_until(self, settings: DemandSettings, now: datetime) -> datetime | None:
        """When requests resume after the last retry failed; None where they are not paused."""
        if self.last is None or self.failures <= settings.retries:
            return None
        until = self.last + timedelta(seconds=settings.pause_seconds)
        return until if now < until else None

    def resumed(self, settings: DemandSettings, now: datetime) -> "FailureRecord":
        """A copy without failures once the pause is over."""
        if self.failures > settings.retries and self.paused_until(settings, now) is None:
            return replace(self, failures=0, last=None)
        return self
