"""Combines a burst of changes into one Plan."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from plimsoll.apply import Applier
from plimsoll.loop.planned import Planned
from plimsoll.observe.cluster import Observer

BURST: Final = 40
"""A Plan with this many creations starts a burst, because one large Plan is cheaper than many small ones."""
IDLE_SECONDS: Final = 0.5
"""A burst ends when nothing has changed for this long."""
MAXIMUM_SECONDS: Final = 5.0
"""Longest wait for the end of a burst."""


class BurstGathering:
    """Waits for the end of a burst; the Pulumi engines that the Plan needs start meanwhile."""

    def __init__(self, observer: Observer, applier: Applier, replan: Callable[[], Planned]) -> None:
        """`replan` observes and plans again."""
        self._observer = observer
        self._applier = applier
        self._replan = replan

    @contextmanager
    def gathered(self, planned: Planned) -> Iterator[Planned]:
        """Context manager: the plan at the end of the burst, or the given plan without one. Its engines are kept in the
        context.

        Signals that are already due are sent first.
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
        last = self._replan() if changed else planned
        seconds = planned.seconds + last.seconds if changed else planned.seconds
        return last._replace(seconds=seconds, waited=waited)
