"""Effort: the limit of a search, in seconds of counted work, so that a busy machine has the same result as an idle
one."""


class Effort:
    def __init__(self, seconds: float) -> None:
        self._left = seconds

    def spend(self, seconds: float) -> None:
        """Counts work that takes about this many seconds on one core."""
        self._left -= seconds

    @property
    def left(self) -> float:
        """Seconds that are left, at least 0."""
        return max(0.0, self._left)

    @property
    def exhausted(self) -> bool:
        return self.left <= 0
