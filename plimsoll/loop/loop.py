"""The loop: observe, validate, plan, apply and report after each relevant change."""

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from types import MappingProxyType

import structlog

from plimsoll.apply import Applier, Failure, LeaseLostError, Outcome, UpdateInterruptedError
from plimsoll.errors import PlimsollError
from plimsoll.loop.burst import BurstGathering
from plimsoll.loop.created_claims import with_claims
from plimsoll.loop.dry_runs import DryRuns
from plimsoll.loop.environments import require_same
from plimsoll.loop.expectations import Expectations, created_kinds
from plimsoll.loop.planned import Planned
from plimsoll.loop.ready_signals import ReadySignals
from plimsoll.loop.refused_operations import RefusedOperations
from plimsoll.loop.retries import retried
from plimsoll.model import ObjectKey, Plan, Snapshot
from plimsoll.model.api import Environment
from plimsoll.observe.cluster import Observer
from plimsoll.plan import Known, validate
from plimsoll.plan import plan as make_plan
from plimsoll.plan.demand import ClusterState, ClusterStates, DemandPlanner
from plimsoll.plan.view import ClusterView
from plimsoll.policy import withhold
from plimsoll.report import KIND as DEMAND
from plimsoll.report import Reporter, with_failed_requests
from plimsoll.stop_request import StopRequest

IDLE_SECONDS = 0.02
"""A change is handled once nothing has followed it for this long."""
MAXIMUM_SECONDS = 1.0
"""A stream of changes is handled after at most this long."""
RESYNC_SECONDS = 30.0
"""Longest time between two plans. Deadlines pass without an event."""
SOON_SECONDS = 0.1
"""Added to a deadline, so that it has passed when the loop wakes."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class RoundResult:
    """One round: the snapshot, the plan and its outcome."""

    snapshot: Snapshot
    plan: Plan | None
    """None while the watches do not show the result of the last Plan."""
    outcome: Outcome
    seconds: float = 0.0
    """Time spent on validating and planning."""
    gates_removed: int = 0
    """Number of capacity gates that were removed."""
    state: ClusterState | None = None
    """What was read of the snapshot."""
    waiting: Mapping[ObjectKey, Failure] = field(default_factory=lambda: MappingProxyType({}))
    """Why the operations were refused that the plan leaves out until they are tried again."""


class Loop:
    """The loop of one environment. The caller holds the Lease."""

    def __init__(
        self,
        observer: Observer,
        applier: Applier,
        reporter: Reporter,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        environment: Environment | None = None,
    ) -> None:
        """`environment` is the one that the applier serves; None: the cluster's, whatever its name."""
        self._environment = environment
        self._observer = observer
        self._applier = applier
        self._reporter = reporter
        self._clock = clock
        self._states = ClusterStates()
        self._planner = DemandPlanner(states=self._states)
        self._known = Known()
        self._bursts = BurstGathering(observer, applier, self._observe_and_plan)
        self._expectations = Expectations()
        self._refused = RefusedOperations()
        self._dry_runs = DryRuns(applier)
        self._stopping = StopRequest()
        self._warned: frozenset[str] = frozenset()
        """Warnings of the last plan; a warning is logged when it first appears."""

    def run_round(self) -> RoundResult:
        """Runs one round. Raises the errors of observing and applying."""
        self._applier.require_lease()
        with self._bursts.gathered(self._observe_and_plan()) as planned:
            observed = planned.view.observed
            state = self._states.of(observed)
            if planned.plan is None:
                return RoundResult(observed, None, Outcome(), state=state)
            self._log_warnings(planned.plan)
            outcome, error = self._try_apply(observed, planned.plan)
            removed = self._applier.remove_gates(planned.plan.gate_removals)
            waiting = self._refused.failures(planned.plan)
            self._refused.note(planned.plan, outcome.failed, planned.now)
            plan = with_failed_requests(planned.plan, observed, outcome.failed)
            self._expect(observed, plan, outcome)
            self._report(planned, plan, outcome, state)
            if error is not None:
                raise error
            if plan.empty:
                self._applier.forget_missing({each.uid for each in created_kinds(observed)})
            return RoundResult(observed, plan, outcome, planned.seconds, removed, state, waiting)

    def _observe_and_plan(self) -> Planned:
        """Observes, validates and plans. No plan while the watches do not show the result of the last Plan, because it
        would request objects twice. Planned again without the Workspaces whose workload the apiserver refuses."""
        now, began = self._clock(), time.monotonic()
        view = self._view(self._recorded(self._observer.snapshot(), now))
        require_same(self._environment, view.observed.environment)
        if not self._expectations.met_by(view.observed, now):
            return Planned(view, None, now)
        self._known.begin()
        made = make_plan(view, validate(view, now), now, self._planner, self._refused.waiting(now))
        while self._dry_runs.ask(made, view.observed, now):
            view = self._view(self._recorded(view.observed, now))
            made = make_plan(view, validate(view, now), now, self._planner, self._refused.waiting(now))
        return Planned(view, withhold(made, view.observed, now), now, time.monotonic() - began)

    def _recorded(self, snapshot: Snapshot, now: datetime) -> Snapshot:
        """What the watches show, with what the states record and what dry runs say."""
        known = {"recorded": self._applier.recorded(), "refused_workloads": self._dry_runs.observed(snapshot, now)}
        return snapshot.model_copy(update=known)

    def _try_apply(self, snapshot: Snapshot, plan: Plan) -> tuple[Outcome, PlimsollError | None]:
        """Applies the plan. The error, if nothing of it was done, is to be raised after the report: gates, statuses and
        finalizers do not depend on the stacks. Raises the error of a lost Lease or a stop at once."""
        try:
            return self._apply(snapshot, plan), None
        except (LeaseLostError, UpdateInterruptedError):
            raise
        except PlimsollError as error:
            changed = (*plan.creations, *plan.updates)
            keys = [each.key for each in changed] + [each.key for each in plan.deletions]
            return Outcome.failing(keys, Failure.of(error)), error

    def _apply(self, snapshot: Snapshot, plan: Plan) -> Outcome:
        """Applies the plan. Trigger pods whose nodes become Ready meanwhile are signalled at once."""
        # Before it is done: whatever happens, the log has what was planned, and why an object was deleted.
        if plan.creations:
            log.info("creating", objects=[str(each.key) for each in plan.creations])
        for deletion in plan.deletions:
            log.info("deleting", object=str(deletion.key), uid=deletion.uid, reason=deletion.reason)
        if plan.empty or not plan.demands:
            return self._applier.apply(plan)
        with ReadySignals(snapshot, self._observer.snapshot, self._plan_again, self._applier.signal) as ready_signals:
            outcome = self._applier.apply(plan)
        return replace(outcome, signalled=(*outcome.signalled, *ready_signals.sent))

    def _plan_again(self, snapshot: Snapshot) -> Plan:
        now = self._clock()
        view = self._view(self._recorded(snapshot, now))
        return make_plan(view, validate(view, now), now, self._planner)

    def _expect(self, snapshot: Snapshot, plan: Plan, outcome: Outcome) -> None:
        """Sets what the watches must show before the next plan."""
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

    def _report(self, planned: Planned, plan: Plan, outcome: Outcome, state: ClusterState) -> None:
        """Writes statuses. They count created objects before the watches show them."""
        if not outcome.empty:
            _log_delta(outcome, planned)
        before = planned.view.observed
        done = (each for each in plan.creations if each.key not in outcome.failed)
        after = with_claims(before, done, planned.now)
        stacks = {each.stack: each.seconds for each in outcome.timings}
        view = planned.view if after is before else self._view(after)
        self._reporter.report(view, plan, planned.now, outcome.failed, stacks, queues_in_use=state.queues_in_use)

    def _view(self, snapshot: Snapshot) -> ClusterView:
        return ClusterView(snapshot, self._known)

    def _log_warnings(self, plan: Plan) -> None:
        before, self._warned = self._warned, frozenset(plan.warnings)
        for warning in sorted(self._warned - before):
            log.warning(warning)

    def run(
        self,
        on_round: Callable[[RoundResult], bool] = lambda _: True,
        *,
        retry: bool = True,
        resync_seconds: float = RESYNC_SECONDS,
        on_begin: Callable[[], None] = lambda: None,
        on_failure: Callable[[PlimsollError], None] = lambda _: None,
    ) -> None:
        """Runs a round after each change until `stop` is called, or until `on_round` returns False.

        `on_begin` is called when a round begins, `on_failure` when one failed and will be retried.

        If `retry`, temporary errors are logged and retried with back-off, and only a lost Lease ends the loop;
        otherwise the first error does.
        """

        def attempt() -> RoundResult:
            on_begin()
            return self.run_round()

        while not self._stopping.requested:
            result = retried(attempt, self._stopping, on_failure) if retry else attempt()
            if result is None or not on_round(result):
                return
            self._observer.wait(IDLE_SECONDS, MAXIMUM_SECONDS, self._until_next_round(result, resync_seconds))

    def _until_next_round(self, result: RoundResult, resync_seconds: float) -> float:
        """Seconds until the plan's next deadline, at most `resync_seconds`."""
        now = self._clock()
        deadline = self._expectations.deadline if result.plan is None else result.plan.next_deadline
        due = [each for each in (deadline, self._dry_runs.due(now)) if each is not None]
        if not due:
            return resync_seconds
        return min(resync_seconds, max(0.0, (min(due) - now).total_seconds()) + SOON_SECONDS)

    def stop(self) -> None:
        """Ends `run` after the current round. Safe in a signal handler."""
        self._stopping.request()
        self._observer.wake()


def _log_delta(outcome: Outcome, planned: Planned) -> None:
    """Logs the operations; the seconds for planning, waiting and signals; and the timings of each stack."""
    done = {"created": outcome.created, "updated": outcome.updated, "deleted": outcome.deleted}
    timings = [asdict(timing) for timing in outcome.timings]
    keys = {verb: [str(key) for key in keys] for verb, keys in done.items() if keys}
    seconds = {"planned": planned.seconds, "waited": planned.waited, "signalling": outcome.signalling}
    if keys or timings:
        log.info("delta applied", **keys, **seconds, timings=timings)
    for key, failure in outcome.failed.items():
        log.error("object not applied", object=str(key), failure=str(failure))
