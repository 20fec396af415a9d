"""A burst of changes becomes one delta."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from plimsoll.apply import Applier
from plimsoll.loop.planned import Planned
from plimsoll.observe.cluster import Observer

BURST: Final = 40
"""A plan with so many creations is taken for the beginning of a burst: one large delta costs less than many."""
IDLE_SECONDS: Final = 0.5
"""The burst is over once nothing has changed for so long."""
MAXIMUM_SECONDS: Final = 5.0
"""The end of a burst is awaited for at most so long."""


class BurstGathering:
    """Waits for the end of a burst, with the engines that its delta will need starting meanwhile."""

    def __init__(self, observer: Observer, applier: Applier, look: Callable[[], Planned]) -> None:
        """`look` observes and plans again."""
        self._observer = observer
        self._applier = applier
        self._look = look

    @contextmanager
    def gathered(self, planned: Planned) -> Iterator[Planned]:
        """What is planned at the end of the burst; the same where there is none. Engines are kept within the context.

        Signals that are due already are sent first: they wait for nothing.
        """
        if planned.plan is None or (number := len(planned.plan.creations)) < BURST:
            yield planned
            return
        self._applier.signal(each for each in planned.plan.signals if each.uid)
        with self._applier.expecting(number):
            yield self._after(planned)

    def _after(self, planned: Planned) -> Planned:
        began = time.monotonic()
        changed = self._observer.pause(IDLE_SECONDS, MAXIMUM_SECONDS)
        waited = time.monotonic() - began
        last = self._look() if changed else planned
        seconds = planned.seconds + last.seconds if changed else planned.seconds
        return last._replace(seconds=seconds, waited=waited)
