"""The data of the pages, computed from the newest Snapshot: each part once for each version, when a page needs it."""

import itertools
import secrets
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from typing import Final

from plimsoll.cluster.queues import IncrementalUsage, NextGpu, QueueUsage, next_gpu
from plimsoll.cost import Prices
from plimsoll.errors import PlimsollError
from plimsoll.explaining import Explanation, PlannedDemand, explain, plan_demand
from plimsoll.model import Plan, Snapshot
from plimsoll.model.api import WorkspaceRef
from plimsoll.plan import plan as plan_round
from plimsoll.plan import validate
from plimsoll.plan.demand import DemandPlanner
from plimsoll.plan.view import ClusterView
from plimsoll.policy import withhold
from plimsoll.ui.feed import Feed
from plimsoll.ui.view import NodeRow, NodeRows

Clock = Callable[[], datetime]
_PAGES: Final = 64
"""Addresses whose page is kept for a version."""


class _SharedCaches:
    """Caches that are kept from one version to the next, with a lock for each, so that a slow plan delays no other
    page."""

    def __init__(self, clock: Clock) -> None:
        self.clock: Final = clock
        self.rows: Final = NodeRows()
        self.queues: Final = IncrementalUsage()
        self.planner: Final = DemandPlanner()
        self.nodes_lock: Final = threading.Lock()
        self.queues_lock: Final = threading.Lock()
        self.plan_lock: Final = threading.Lock()


class State:
    """One version of the cluster, for several threads."""

    def __init__(self, version: str, snapshot: Snapshot, caches: _SharedCaches, *, followed: bool = True) -> None:
        self.version = version
        self.recency = "last known state" if snapshot.stale else "live" if followed else "from files"
        """Whether what the pages show is current, as a word for readers."""
        self.snapshot = snapshot
        self._caches = caches
        self._pages: dict[str, str] = {}
        self._planned_at: datetime | None = None
        self._due: datetime | None = None
        """When its Plan may change although the cluster does not; both are known when the Plan is made."""

    def page(self, address: str, render: Callable[[], str]) -> str:
        """The page at an address: rendered once for a version, however many browsers show it."""
        page = self._pages.get(address)
        if page is None:
            page = render()
            if len(self._pages) < _PAGES:
                self._pages[address] = page
        return page

    @property
    def outdated(self) -> bool:
        """Whether its Plan may be different by now, although the cluster did not change."""
        planned_at, due = self._planned_at, self._due
        return planned_at is not None and due is not None and planned_at < due < self._caches.clock()

    @property
    def now(self) -> datetime:
        return self._caches.clock()

    @property
    def nodes(self) -> tuple[NodeRow, ...]:
        with self._caches.nodes_lock:
            return self._nodes

    @property
    def usage(self) -> QueueUsage:
        with self._caches.queues_lock:
            return self._usage

    @property
    def next_gpu(self) -> NextGpu | None:
        with self._caches.queues_lock:
            return self._next_gpu

    @property
    def plan(self) -> Plan:
        """The next Plan, as `plimsoll plan` shows it."""
        with self._caches.plan_lock:
            return self._plan

    @property
    def planned_demand(self) -> PlannedDemand:
        """The demand alone, from which the steps of something and what would help are found."""
        with self._caches.plan_lock:
            return self._planned_demand

    @cached_property
    def prices(self) -> Prices:
        return Prices.of(self.snapshot)

    def explanation(self, ref: WorkspaceRef) -> Explanation:
        return explain(ClusterView(self.snapshot), self.plan, ref, self._caches.clock())

    @cached_property
    def _planned_demand(self) -> PlannedDemand:
        return plan_demand(ClusterView(self.snapshot), self._caches.clock(), self._caches.planner)

    @cached_property
    def _nodes(self) -> tuple[NodeRow, ...]:
        return self._caches.rows.update(self.snapshot, self.prices)

    @cached_property
    def _usage(self) -> QueueUsage:
        return self._caches.queues.of(self.snapshot)

    @cached_property
    def _next_gpu(self) -> NextGpu | None:
        return next_gpu(self._usage) if self.snapshot.queues else None

    @cached_property
    def _plan(self) -> Plan:
        view, now = ClusterView(self.snapshot), self._caches.clock()
        made = plan_round(view, validate(view, now), now, self._caches.planner)
        self._planned_at, self._due = now, made.next_deadline
        return withhold(made, self.snapshot, now)


class States:
    """The state of the newest version; the results of unchanged parts are kept from one to the next."""

    def __init__(self, feed: Feed, clock: Clock = lambda: datetime.now(UTC)) -> None:
        self._feed = feed
        self._caches = _SharedCaches(clock)
        self._lock = threading.Lock()
        self._state: State | None = None
        # Another process, such as another replica, has other versions.
        process = secrets.token_hex(4)
        self._versions = (f"{process}-{number}" for number in itertools.count(1))

    def latest(self) -> State:
        with self._lock:
            snapshot = self._feed.latest
            if self._state is None or self._state.snapshot is not snapshot or self._state.outdated:
                self._state = State(next(self._versions), snapshot, self._caches, followed=self._feed.followed)
            return self._state

    def prepare(self) -> None:
        """Computes all parts of the newest version, those of the first page first. The page of a part that fails says
        why."""
        state = self.latest()
        with suppress(PlimsollError):
            _ = (state.nodes, state.usage, state.plan, state.next_gpu)
