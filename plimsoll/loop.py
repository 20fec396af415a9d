"""The loop: observe, validate, plan, apply, report, again at each change that can matter."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import structlog

from plimsoll.apply import Applier, Outcome
from plimsoll.model.plan import Plan
from plimsoll.model.snapshot import Snapshot
from plimsoll.observe import Observer
from plimsoll.plan.expectations import Expectations
from plimsoll.plan.planning import plan as make_plan
from plimsoll.plan.validating import validate
from plimsoll.report import Reporter

IDLE_SECONDS = 0.02
"""A change is acted on once nothing has followed it for this long."""
MAXIMUM_SECONDS = 1.0
"""A stream of changes is cut after this long."""
LOOK_AGAIN_SECONDS = 30.0
"""Deadlines pass without an event: the snapshot in memory is planned anew at least this often."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Tick:
    """One round: what was seen, what was planned, what came of it. `plan` is None while own writes are unseen."""

    snapshot: Snapshot
    plan: Plan | None
    outcome: Outcome


class Loop:
    """One writer's loop over one environment. The Lease is the caller's to hold."""

    def __init__(
        self,
        observer: Observer,
        applier: Applier,
        reporter: Reporter,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._observer = observer
        self._applier = applier
        self._reporter = reporter
        self._clock = clock
        self._expectations = Expectations()
        self._stopping = threading.Event()

    def tick(self) -> Tick:
        """One round. Raises what observing and applying raise; nothing is half-planned."""
        snapshot = self._observer.snapshot()
        now = self._clock()
        if not self._expectations.met_by(snapshot, now):
            return Tick(snapshot, None, Outcome())  # a plan from a snapshot without our last delta would double it
        verdicts = validate(snapshot)
        plan = make_plan(snapshot, verdicts, now)
        outcome = Outcome()
        if not plan.empty:
            outcome = self._applier.apply(plan)
            self._expect(plan, outcome)
        self._reporter.report(snapshot, plan, now, outcome.failed)
        return Tick(snapshot, plan, outcome)

    def run(self, on_tick: Callable[[Tick], bool] = lambda _: True) -> None:
        """Ticks at each change until `stop`, or until `on_tick` says False."""
        while not self._stopping.is_set():
            if not on_tick(self.tick()):
                return
            self._observer.wait(IDLE_SECONDS, MAXIMUM_SECONDS, LOOK_AGAIN_SECONDS)

    def stop(self) -> None:
        """Ends `run` after the tick in progress; safe in a signal handler."""
        self._stopping.set()
        self._observer.wake()

    def _expect(self, plan: Plan, outcome: Outcome) -> None:
        deleted = set(outcome.deleted)
        self._expectations = Expectations.of(
            outcome.created,
            (deletion.uid for deletion in plan.deletions if deletion.key in deleted and deletion.uid),
            self._clock(),
        )
