"""The share binder: observes, plans and writes until it is stopped."""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import structlog
from tenacity import Retrying, retry_if_exception_type, wait_exponential

from plimsoll.bind.cluster_cache import ClusterCache
from plimsoll.bind.kai import refuse_beside_kai
from plimsoll.bind.planning import BindPlanner
from plimsoll.bind.step_writer import StepWriter
from plimsoll.errors import PlimsollError
from plimsoll.kube import Connection, ConnectionFailedError, RequestError
from plimsoll.logs import log_retry
from plimsoll.model.api import BinderSettings
from plimsoll.observe.cluster import NotSyncedError
from plimsoll.stop_request import StopRequest

log = structlog.get_logger(__name__)

RESYNC_SECONDS: Final = 60.0
"""Longest time between two rounds, and between two checks that KAI's binder does not run in the cluster."""
SYNC_SECONDS: Final = 60.0
IDLE_SECONDS: Final = 0.02
"""A round begins when nothing has changed for this long,"""
BURST_SECONDS: Final = 0.2
"""or this long after the first change."""
RETRY_SECONDS: Final = 1.0
"""Pause after a round that wrote something, unless the cluster shows a change before."""


class ShareBinder:
    """The share binder of a cluster. Only the holder of its Lease may run it."""

    def __init__(
        self, connection: Connection, settings: BinderSettings, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._connection = connection
        self._clock = clock
        self._cluster = ClusterCache(connection, settings, clock)
        self._planner = BindPlanner(settings)
        self._refused: list[str] = []
        self._unbindable: list[str] = []
        self._writing = StepWriter(
            connection,
            settings,
            self._cluster,
            self._refused.append,
            self._unbindable.append,
        )
        self.stopping = StopRequest()
        self._ended_by: PlimsollError | None = None
        self._looked_for_kai = float("-inf")

    def run(self) -> None:
        """Runs until `stop` is called. Raises KaiBinderError if KAI's binder runs in the cluster, and the error that
        was passed to `stop`."""
        refuse_beside_kai(self._connection)
        try:
            self._cluster.start()
            self._cluster.wait_synced(SYNC_SECONDS)
            log.info("watches are synced: binding pods that share GPUs")
            while not self.stopping.requested:
                self._cluster.wait(IDLE_SECONDS, BURST_SECONDS, timeout=self._retried_round())
        finally:
            self._cluster.stop()
            self._writing.close()
        if self._ended_by is not None:
            raise self._ended_by

    def stop(self, why: PlimsollError | None = None) -> None:
        """Ends `run` after the current round; `run` then raises `why`. Safe in a signal handler."""
        self._ended_by = self._ended_by or why
        self.stopping.request()
        self._cluster.wake()

    def _retried_round(self) -> float:
        """Runs a round, with retries. Returns the seconds until the next one if nothing changes before."""
        retrying = Retrying(
            retry=retry_if_exception_type((ConnectionFailedError, RequestError, NotSyncedError)),
            wait=wait_exponential(multiplier=0.5, max=30.0),
            sleep=self.stopping.sleep,
            stop=lambda _: self.stopping.requested,
            before_sleep=log_retry,
            reraise=True,
        )
        with suppress(ConnectionFailedError, RequestError, NotSyncedError):
            return retrying(self._round)
        return 0.0  # stopped during the back-off

    def _round(self) -> float:
        if self._clock() - self._looked_for_kai >= RESYNC_SECONDS:
            refuse_beside_kai(self._connection)
            self._looked_for_kai = self._clock()
        now = self._clock()
        while self._refused:
            self._planner.refused(self._refused.pop(), now)
        while self._unbindable:
            self._planner.leave(self._unbindable.pop(), now)
        plan = self._planner.plan(self._cluster.nodes(), self._cluster.pods(), now)
        if self.stopping.requested:
            return 0.0
        if plan.steps:
            self._writing.carry_out(plan.steps)
            return RETRY_SECONDS  # the watch usually delivers the writes before this
        due = self._looked_for_kai + RESYNC_SECONDS - now
        return max(0.0, due if plan.next_deadline is None else min(due, plan.next_deadline - now + 0.05))
