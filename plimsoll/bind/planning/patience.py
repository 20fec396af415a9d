"""How long something has been so, and how long a node is left alone after failures."""

from collections.abc import Hashable
from dataclasses import dataclass


class FirstSeen:
    """Since when each thing has been so; what is not asked for in a round has ended."""

    def __init__(self) -> None:
        self._since: dict[Hashable, float] = {}
        self._round: dict[Hashable, float] = {}
        self._next: float | None = None

    def begin(self) -> None:
        """Begins a round."""
        self._since, self._round, self._next = self._round, {}, None

    def lasted(self, what: Hashable, seconds: float, now: float) -> bool:
        """Whether it has been so for that long; where not, its end counts for `next_end`."""
        since = self._round[what] = self._round.get(what, self._since.get(what, now))
        if now - since >= seconds:
            return True
        self._next = since + seconds if self._next is None else min(self._next, since + seconds)
        return False

    def next_end(self) -> float | None:
        """When the first of the waits of this round ends."""
        return self._next


@dataclass(slots=True)
class _Hold:
    until: float
    failures: int
    last: str
    """UID of the reservation that failed last."""


class NodeHolds:
    """Times are seconds of one clock. What is held is not kept over a restart: one more try follows, not many."""

    def __init__(self, first: float, limit: float) -> None:
        self._first = first
        self._limit = limit
        self._holds: dict[str, _Hold] = {}

    def failed(self, node: str, uid: str, now: float) -> None:
        """A reservation failed there; each counts once."""
        hold = self._holds.get(node)
        if hold is not None and hold.last == uid:
            return
        failures = 1 if hold is None else hold.failures + 1
        pause = min(self._limit, self._first * 2 ** min(failures - 1, 30))
        self._holds[node] = _Hold(now + pause, failures, uid)

    def succeeded(self, node: str) -> None:
        """A reservation became known there."""
        self._holds.pop(node, None)

    def held(self, now: float) -> frozenset[str]:
        """The nodes that get no new reservation now."""
        return frozenset(node for node, hold in self._holds.items() if hold.until > now)

    def next_end(self, now: float) -> float | None:
        """When the first of these pauses ends."""
        return min((hold.until for hold in self._holds.values() if hold.until > now), default=None)
