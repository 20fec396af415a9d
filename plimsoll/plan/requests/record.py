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
        blocked = tuple(each for each in status.blocked if (until := parse_time(each.until)) is None or until > now)
        return cls(status.failures, parse_time(status.last_failure), blocked)

    def failed(
        self, failing: Sequence[RequestFailure], attempts: Iterable[int], settings: DemandSettings, now: datetime
    ) -> "FailureRecord":
        """A copy with new failures, in these attempts. Failures of one attempt count as one, also after a restart."""
        if not failing:
            return self
        pause = timedelta(seconds=settings.retry_seconds)
        again = any(each > self.failures for each in attempts)
        until = format_time(now + pause)
        blocked = {(each.node_pool, each.instance_type): each for each in self.blocked}
        for each in failing:
            for kind in each.instance_types:
                blocked[each.node_pool, kind] = BlockedType(
                    node_pool=each.node_pool, instance_type=kind, until=until, reason=each.message[:MESSAGE_LENGTH]
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
        return replace(self, failures=0, last=None) if any(each > self.failures for each in attempts) else self

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
