"""Adds to events about pods that get no capacity the change that would help, in a background thread: to prove it takes
plans, for which no round waits."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Final

import structlog

from plimsoll.explaining import Remedy, plan_demand, proven_remedies
from plimsoll.model import PodRef, Snapshot
from plimsoll.model.api import PodState
from plimsoll.report.events import Event

PAUSE_SECONDS: Final = 60.0
"""Between two questions: tenants who create pods that nothing can serve must not keep the controller planning."""
_WORK: Final = 1_000_000
"""Plans times nodes and pods that one question may take, about two seconds."""
_MOST_PLANS: Final = 60
_LEAST_PLANS: Final = 8
"""With fewer, nothing is asked."""
_REFUSED: Final = frozenset({PodState.KEPT_OUT.value, PodState.NOT_REQUESTED.value, PodState.FITS_NOTHING.value})

log = structlog.get_logger(__name__)


class PodRemedies:
    """Records events about pods; those of one round at a time wait for what would help."""

    def __init__(
        self, record: Callable[[Iterable[Event], datetime], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`record` takes events from any thread."""
        self._record, self._clock = record, clock
        self._lock = threading.Lock()
        self._next = clock()
        """When the next question may be asked; infinite while one is being answered."""
        # Its thread is joined at the end of the process, so that the events are still recorded.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="remedies")

    def record(self, events: Iterable[Event], snapshot: Snapshot, now: datetime) -> None:
        """Returns at once."""
        everything = tuple(events)
        blocked = [each for each in everything if each.reason in _REFUSED and isinstance(each.regarding, PodRef)]
        plans = min(_MOST_PLANS, _WORK // (len(snapshot.nodes) + len(snapshot.pods) + 1))
        if not blocked or plans < _LEAST_PLANS or not self._may_ask():
            self._record(everything, now)
            return
        told = {id(each) for each in blocked}
        self._record([each for each in everything if id(each) not in told], now)
        self._thread.submit(self._answer, blocked, snapshot, now, plans)

    def flush(self) -> None:
        """Returns when the question that is being answered is answered."""
        self._thread.submit(lambda: None).result()

    def close(self) -> None:
        """Returns when all events are recorded; nothing may be recorded afterwards."""
        self._thread.shutdown(wait=True)

    def _may_ask(self) -> bool:
        with self._lock:
            due = self._clock() >= self._next
            if due:
                self._next = float("inf")
            return due

    def _answer(self, events: list[Event], snapshot: Snapshot, now: datetime, plans: int) -> None:
        remedies: Mapping[str, Remedy] = {}
        try:
            remedies = proven_remedies(plan_demand(snapshot, now), [each.regarding.uid for each in events], plans)
        except Exception:
            # The events matter more: they say why, and which command says what would help.
            log.exception("no change is proposed for pods without capacity")
        self._record([_with(each, remedies.get(each.regarding.uid)) for each in events], now)
        with self._lock:
            self._next = self._clock() + PAUSE_SECONDS


def _with(event: Event, remedy: Remedy | None) -> Event:
    """The event keeps its name, by which repetitions are counted."""
    if remedy is None:
        return event
    return event._replace(note=f"{event.note}; proven to help: {'; '.join(remedy.changes)}", series=event.note)
