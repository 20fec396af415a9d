"""Effort: the limit of a search, in seconds of a clock or of counted work."""

from collections.abc import Callable
from typing import Final

Clock = Callable[[], float]

_BACKSTOP_SECONDS: Final = 60.0


class Effort:
    """The limit of a search, in seconds.

    With a clock (a function that returns seconds and never decreases), elapsed time counts. Without one, the search
    reports its work with `spend`, and the result depends on the input only.
    """

    def __init__(self, seconds: float, clock: Clock | None = None) -> None:
        self._seconds = seconds
        self._clock = clock
        self._start = clock() if clock is not None else 0.0
        self._spent = 0.0

    def spend(self, seconds: float) -> None:
        """Counts work that takes about this many seconds on one core."""
        self._spent += seconds

    @property
    def left(self) -> float:
        """Seconds that are left, at least 0."""
        spent = self._spent if self._clock is None else self._clock() - self._start
        return max(0.0, self._seconds - spent)

    def wall(self, seconds: float) -> float:
        """Time limit in seconds for a solver that uses the machine's clock.

        Without a clock of the caller's, the limit is a minute or more: it only stops a solver that would not end, so
        that a busy machine has the same result as an idle one.
        """
        return seconds if self._clock is not None else max(_BACKSTOP_SECONDS, seconds)

    @property
    def exhausted(self) -> bool:
        return self.left <= 0
