"""The share binder: observes, plans and writes until it is stopped."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import structlog
from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_when_event_set, wait_exponential
from tenacity.nap import sleep_using_event

from plimsoll.bind.cluster import Cluster
from plimsoll.bind.kai import refuse_beside_kai
from plimsoll.bind.planning import BindPlanner
from plimsoll.bind.writing import Writing
from plimsoll.errors import PlimsollError
from plimsoll.kube import Connection, ConnectionFailedError, RequestError
from plimsoll.model.api import BinderSettings
from plimsoll.observe.cluster import NotSyncedError

log = structlog.get_logger(__name__)

LOOK_AGAIN_SECONDS: Final = 60.0
"""The longest time between two rounds, in each of which KAI is looked for."""
SYNC_SECONDS: Final = 60.0
IDLE_SECONDS: Final = 0.02
"""A round begins once nothing has changed for so long,"""
BURST_SECONDS: Final = 0.2
"""or so long after the first change."""
RETRY_SECONDS: Final = 1.0
"""Pause after a round with steps, unless the cluster shows a change."""


class ShareBinder:
    """The share binder of a cluster. Only the holder of its Lease may run it."""

    def __init__(
        self, connection: Connection, settings: BinderSettings, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._connection = connection
        self._clock = clock
        self._cluster = Cluster(connection, settings, clock)
        self._planner = BindPlanner(settings)
        self._refused: list[tuple[str, str]] = []
        self._unbindable: list[str] = []
        self._writing = Writing(
            connection,
            settings,
            self._cluster,
            lambda *refused: self._refused.append(refused),
            self._unbindable.append,
        )
        self._stopping = threading.Event()
        self._ended_by: PlimsollError | None = None
        self._looked_for_kai = float("-inf")

    def run(self) -> None:
        """Until `stop`. Raises KaiBinderError where KAI's binder appears, and what `stop` was given."""
        refuse_beside_kai(self._connection)
        try:
            self._cluster.start()
            self._cluster.wait_synced(SYNC_SECONDS)
            log.info("binding shares")
            while not self._stopping.is_set():
                self._cluster.wait(IDLE_SECONDS, BURST_SECONDS, timeout=self._patient_round())
        finally:
            self._cluster.stop()
            self._writing.close()
        if self._ended_by is not None:
            raise self._ended_by

    def stop(self, why: PlimsollError | None = None) -> None:
        """Ends `run` after the round in progress, with that error; safe in a signal handler."""
        self._ended_by = self._ended_by or why
        self._stopping.set()
        self._cluster.wake()

    @property
    def stopping(self) -> bool:
        return self._stopping.is_set()

    def _patient_round(self) -> float:
        """A round that got through; seconds until the next one, without a change."""
        retrying = Retrying(
            retry=retry_if_exception_type((ConnectionFailedError, RequestError, NotSyncedError)),
            wait=wait_exponential(multiplier=0.5, max=30.0),
            sleep=sleep_using_event(self._stopping),
            stop=stop_when_event_set(self._stopping),
            before_sleep=_log_retry,
            reraise=True,
        )
        with suppress(ConnectionFailedError, RequestError, NotSyncedError):
            return retrying(self._round)
        return 0.0  # stopped while it was waiting

    def _round(self) -> float:
        if self._clock() - self._looked_for_kai >= LOOK_AGAIN_SECONDS:
            refuse_beside_kai(self._connection)
            self._looked_for_kai = self._clock()
        while self._refused:
            self._planner.failed(*self._refused.pop(), self._clock())
        while self._unbindable:
            self._planner.leave(self._unbindable.pop())
        now = self._clock()
        plan = self._planner.plan(self._cluster.nodes(), self._cluster.pods(), now)
        if self._stopping.is_set():
            return 0.0
        if plan.steps:
            self._writing.carry_out(plan.steps)
            return RETRY_SECONDS  # at the latest: what was written comes back by the watch
        return LOOK_AGAIN_SECONDS if plan.next_look is None else min(LOOK_AGAIN_SECONDS, plan.next_look - now + 0.05)


def _log_retry(state: RetryCallState) -> None:
    error = state.outcome.exception() if state.outcome is not None else None
    log.error("round failed", error=str(error), attempt=state.attempt_number, next_seconds=state.upcoming_sleep)
