"""How long planning may search: a limit in seconds, with or without a clock."""

from collections.abc import Callable
from typing import Final

Clock = Callable[[], float]

_BACKSTOP_SECONDS: Final = 60.0


class Effort:
    """A limit in seconds on a search.

    With a clock (seconds that only grow), time is what the clock says. Without one, it is what the searchers say they
    spent, by counting their work: the result then depends on nothing but the input.
    """

    def __init__(self, seconds: float, clock: Clock | None = None) -> None:
        self._seconds = seconds
        self._clock = clock
        self._start = clock() if clock is not None else 0.0
        self._spent = 0.0

    def spend(self, seconds: float) -> None:
        """Counts work that takes about so many seconds on one core."""
        self._spent += seconds

    @property
    def left(self) -> float:
        """Seconds, never negative."""
        spent = self._spent if self._clock is None else self._clock() - self._start
        return max(0.0, self._seconds - spent)

    def wall(self, seconds: float) -> float:
        """A limit in seconds for a solver that looks at the machine's clock.

        Without a clock of the caller's it only ends what would go on without end, so that a busy machine has the same
        result as an idle one.
        """
        return seconds if self._clock is not None else max(_BACKSTOP_SECONDS, seconds)

    @property
    def exhausted(self) -> bool:
        return self.left <= 0
