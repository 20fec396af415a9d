"""How long something has been so, by the clock of whoever looks."""

from collections.abc import Hashable


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
