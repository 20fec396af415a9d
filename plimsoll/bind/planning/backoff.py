"""How long a condition has lasted, and how long no reservation is created on a node after failures."""

from collections.abc import Hashable
from dataclasses import dataclass


class FirstSeen:
    """Remembers since when each condition holds. A condition that is not queried in a round has ended."""

    def __init__(self) -> None:
        self._since: dict[Hashable, float] = {}
        self._round: dict[Hashable, float] = {}
        self._next: float | None = None

    def begin(self) -> None:
        """Starts a new round."""
        self._since, self._round, self._next = self._round, {}, None

    def lasted(self, what: Hashable, seconds: float, now: float) -> bool:
        """Whether the condition `what` has held for that many seconds. If not, the time at which it will have counts
        for `next_end`."""
        since = self._round[what] = self._round.get(what, self._since.get(what, now))
        if now - since >= seconds:
            return True
        self._next = since + seconds if self._next is None else min(self._next, since + seconds)
        return False

    def begins(self, what: Hashable) -> bool:
        """Whether the condition `what`, which holds now, did not hold in the round before."""
        begins = what not in self._since
        self._round[what] = 0.0
        return begins

    def next_end(self) -> float | None:
        """When the first condition of this round will have lasted long enough; None if there is none."""
        return self._next


@dataclass(slots=True)
class _Backoff:
    until: float
    counted: frozenset[str]
    """UIDs of the reservations that failed."""
    failures: int


class NodeBackoff:
    """Exponential back-off of nodes after failed reservations. Times are seconds of one monotonic clock. Back-offs do
    not survive a restart, after which one more attempt follows."""

    def __init__(self, first: float, limit: float) -> None:
        self._first = first
        self._limit = limit
        self._backoff: dict[str, _Backoff] = {}

    def failed(self, node: str, uid: str, now: float) -> None:
        """Records that a reservation failed on the node; each counts once."""
        backoff = self._backoff.get(node)
        if backoff is None or uid not in backoff.counted:
            self._extend(node, now, {uid})

    def refused(self, node: str, now: float) -> None:
        """Records that the cluster refused to create reservations on the node; counts once in a pause."""
        if node not in self.paused(now):
            self._extend(node, now, set())

    def _extend(self, node: str, now: float, uids: set[str]) -> None:
        backoff = self._backoff.get(node) or _Backoff(now, frozenset(), 0)
        pause = min(self._limit, self._first * 2 ** min(backoff.failures, 30))
        self._backoff[node] = _Backoff(now + pause, backoff.counted | uids, backoff.failures + 1)

    def succeeded(self, node: str) -> None:
        """Records that a reservation on the node succeeded. Those that failed before still count once."""
        backoff = self._backoff.get(node)
        if backoff is not None:
            self._backoff[node] = _Backoff(float("-inf"), backoff.counted, 0)

    def paused(self, now: float) -> frozenset[str]:
        """The nodes on which no reservation is created now."""
        return frozenset(node for node, backoff in self._backoff.items() if backoff.until > now)

    def next_end(self, now: float) -> float | None:
        """When the first of these back-offs ends; None if there is none."""
        return min((backoff.until for backoff in self._backoff.values() if backoff.until > now), default=None)
