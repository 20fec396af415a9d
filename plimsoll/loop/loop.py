"""The loop: observe, validate, plan, apply, report, again at each change that can matter."""

import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import NamedTuple

import structlog
from tenacity import RetryCallState, Retrying, retry_if_exception, wait_exponential

from plimsoll.apply import Applier, LeaseLostError, Outcome
from plimsoll.errors import PlimsollError
from plimsoll.loop.disarming import Disarming
from plimsoll.loop.expectations import Expectations
from plimsoll.loop.outlook import with_claims
from plimsoll.model import Plan, Snapshot
from plimsoll.observe.cluster import Observer
from plimsoll.plan import plan as make_plan
from plimsoll.plan import validate
from plimsoll.plan.demand import DemandPlanner
from plimsoll.policy import withhold
from plimsoll.report import KIND as DEMAND
from plimsoll.report import Reporter

IDLE_SECONDS = 0.02
"""A change is acted on once nothing has followed it for this long."""
MAXIMUM_SECONDS = 1.0
"""A stream of changes is cut after this long."""
BURST = 40
"""A delta of so many creations comes of a burst, and starts engines: one for the whole of it costs least."""
BURST_IDLE_SECONDS = 0.5
BURST_MAXIMUM_SECONDS = 5.0
LOOK_AGAIN_SECONDS = 30.0
"""Deadlines pass without an event: the snapshot in memory is planned anew at least this often."""

SOON_SECONDS = 0.1

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Tick:
    """One round: what was seen, what was planned, what came of it. `plan` is None while own writes are unseen."""

    snapshot: Snapshot
    plan: Plan | None
    outcome: Outcome
    seconds: float = 0.0
    """That planning took."""


class _Seen(NamedTuple):
    """What was seen and planned, when, and the seconds that planning took and that the end of a burst was awaited."""

    snapshot: Snapshot
    plan: Plan | None
    now: datetime
    seconds: float
    waited: float = 0.0


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
        self._planner = DemandPlanner()
        self._expectations = Expectations()
        self._stopping = threading.Event()
        self._warned: frozenset[str] = frozenset()
        """Warnings of the last plan, each of which is logged when it appears."""

    def tick(self) -> Tick:
        """One round. Raises what observing and applying raise; nothing is half-planned."""
        self._applier.require_lease()
        seen = self._look()
        if seen.plan is not None and (number := len(seen.plan.creations)) >= BURST:
            self._applier.signal(each for each in seen.plan.signals if each.uid)
            with self._applier.expecting(number):
                return self._act(self._after_burst(seen))
        return self._act(seen)

    def _act(self, seen: _Seen) -> Tick:
        """What a look has come to: applied, lifted, reported."""
        if seen.plan is None:
            return Tick(seen.snapshot, None, Outcome())
        self._warn(seen.plan)
        outcome = self._apply(seen.snapshot, seen.plan)
        if not outcome.empty:
            _log_delta(outcome, seen)
        done = (each for each in seen.plan.creations if each.key not in outcome.failed)
        snapshot = with_claims(seen.snapshot, done, seen.now)
        self._applier.lift(seen.plan.lifts)
        self._expect(seen.snapshot, seen.plan, outcome)
        self._reporter.report(snapshot, seen.plan, seen.now, outcome.failed)
        return Tick(seen.snapshot, seen.plan, outcome, seen.seconds)

    def _warn(self, plan: Plan) -> None:
        before, self._warned = self._warned, frozenset(plan.warnings)
        for warning in sorted(self._warned - before):
            log.warning(warning)

    def _apply(self, snapshot: Snapshot, plan: Plan) -> Outcome:
        """What is armed and answered meanwhile is disarmed at once."""
        if plan.empty or not plan.demands:
            return self._applier.apply(plan)
        with Disarming(snapshot, self._observer.snapshot, self._plan, self._applier.signal) as disarming:
            outcome = self._applier.apply(plan)
        return replace(outcome, signalled=(*outcome.signalled, *disarming.sent))

    def _plan(self, snapshot: Snapshot) -> Plan:
        return make_plan(snapshot, validate(snapshot), self._clock(), self._planner)

    def _look(self) -> _Seen:
        snapshot, now, began = self._observer.snapshot(), self._clock(), time.monotonic()
        if not self._expectations.met_by(snapshot, now):
            # A plan from a snapshot without our last delta would double it.
            return _Seen(snapshot, None, now, 0.0)
        plan = withhold(make_plan(snapshot, validate(snapshot), now, self._planner), snapshot, now)
        return _Seen(snapshot, plan, now, time.monotonic() - began)

    def _after_burst(self, seen: _Seen) -> _Seen:
        """What is seen at the end of a burst: the same where there was no more of it."""
        began = time.monotonic()
        more = self._observer.pause(BURST_IDLE_SECONDS, BURST_MAXIMUM_SECONDS)
        waited = time.monotonic() - began
        last = self._look() if more else seen
        return last._replace(seconds=seen.seconds + last.seconds if more else seen.seconds, waited=waited)

    def run(
        self,
        on_tick: Callable[[Tick], bool] = lambda _: True,
        *,
        patient: bool = True,
        look_again: float = LOOK_AGAIN_SECONDS,
    ) -> None:
        """Ticks at each change until `stop`, or until `on_tick` says False.

        Where `patient`, what may pass is logged and tried again with back-off, and only a lost Lease ends the loop;
        else the first error does.
        """
        while not self._stopping.is_set():
            tick = self._patient_tick() if patient else self.tick()
            if tick is None or not on_tick(tick):
                return
            self._observer.wait(IDLE_SECONDS, MAXIMUM_SECONDS, self._until_next_look(tick, look_again))

    def _until_next_look(self, tick: Tick, look_again: float) -> float:
        """Seconds until the plan may change by itself, at most `look_again`."""
        look = self._expectations.deadline if tick.plan is None else tick.plan.next_look
        if look is None:
            return look_again
        # A little later than that: a deadline is missed when it has passed.
        return min(look_again, max(0.0, (look - self._clock()).total_seconds()) + SOON_SECONDS)

    def _patient_tick(self) -> Tick | None:
        """A tick that got through; None where the loop was stopped while it waited."""
        retrying = Retrying(
            retry=retry_if_exception(_may_pass),
            wait=wait_exponential(multiplier=0.5, max=60.0),
            sleep=self._sleep,
            stop=lambda _: self._stopping.is_set(),
            before_sleep=_log_retry,
            reraise=True,
        )
        try:
            return retrying(self.tick)
        except PlimsollError:
            if self._stopping.is_set():
                return None
            raise

    def _sleep(self, seconds: float) -> None:
        self._stopping.wait(seconds)

    def stop(self) -> None:
        """Ends `run` after the tick in progress; safe in a signal handler."""
        self._stopping.set()
        self._observer.wake()

    def _expect(self, snapshot: Snapshot, plan: Plan, outcome: Outcome) -> None:
        if outcome.empty and not outcome.signalled:
            return
        created, deleted = set(outcome.created), set(outcome.deleted)
        self._expectations = Expectations.of(
            (resource.uid for resource in self._applier.resources() if resource.key in created),
            (deletion.uid for deletion in plan.deletions if deletion.key in deleted and deletion.uid),
            self._clock(),
            outcome.signalled,
            plan.demands if DEMAND not in snapshot.missing_kinds else (),
        )


def _log_delta(outcome: Outcome, seen: _Seen) -> None:
    """What was done; the seconds of planning, waiting and signals; where each stack's part spent its time."""
    done = {"created": outcome.created, "updated": outcome.updated, "deleted": outcome.deleted}
    timings = [asdict(timing) for timing in outcome.timings]
    keys = {verb: [str(key) for key in keys] for verb, keys in done.items() if keys}
    seconds = {"planned": seen.seconds, "waited": seen.waited, "signalling": outcome.signalling}
    log.info("delta applied", **keys, **seconds, timings=timings)
    for key, failure in outcome.failed.items():
        log.error("not applied", object=str(key), failure=str(failure))


def _may_pass(error: BaseException) -> bool:
    return isinstance(error, PlimsollError) and not isinstance(error, LeaseLostError)


def _log_retry(state: RetryCallState) -> None:
    error = state.outcome.exception() if state.outcome is not None else None
    log.error("tick failed", error=str(error), attempt=state.attempt_number, next_seconds=state.upcoming_sleep)
