"""Rounds of the controller: a burst is one Plan, and own writes are awaited before the next plan."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from itertools import count
from typing import Any

import pytest
from structlog.testing import capture_logs

from plimsoll.apply import Failure, FailureKind, LeaseLostError, LockedError, Outcome, WriterStoppingError
from plimsoll.errors import PlimsollError
from plimsoll.loop import BURST
from plimsoll.model import Plan
from plimsoll.model.api import DemandPhase
from plimsoll.plan.view import ClusterView
from tests.builders import a_node, a_snapshot, a_waiting_pod
from tests.capacity_gate.test_gate_removals import a_gated_pod
from tests.capacity_requests.cluster import Cluster as Demanding
from tests.capacity_requests.cluster import pool, share_pod
from tests.looping.cluster import Cluster, wanting
from tests.planning.cluster import after


def test_a_burst_is_awaited_and_applied_as_one_plan() -> None:
    cluster = Cluster(wanting(BURST), wanting(BURST + 7))
    cluster.loop().run_round()
    [plan] = cluster.applied
    assert len(plan.creations) == BURST + 7
    assert cluster.expected == [BURST]  # engines start while the end of it is awaited


def test_the_seconds_of_a_burst_are_those_of_both_plans_without_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(wanting(BURST), wanting(BURST + 7))
    loop = cluster.loop()
    monkeypatch.setattr("time.monotonic", partial(next, count(start=100)))  # each look at the clock takes a second
    with capture_logs() as logs:
        result = loop.run_round()
    [applied] = [entry for entry in logs if entry["event"] == "delta applied"]
    assert (result.seconds, applied["planned"], applied["waited"]) == (2, 2, 1)


def test_a_few_creations_are_applied_at_once() -> None:
    cluster = Cluster(wanting(BURST - 1), wanting(BURST + 7))
    cluster.loop().run_round()
    [plan] = cluster.applied
    assert len(plan.creations) == BURST - 1
    assert not cluster.expected


def test_created_objects_are_reported_before_they_are_observed() -> None:
    cluster = Cluster(wanting(1))
    cluster.loop().run_round()
    [snapshot] = cluster.reported
    assert [claim.name for claim in snapshot.node_claims] == [cluster.applied[0].creations[0].key.name]


class Failing(Cluster):
    """Nothing can be applied. Its plans have a gate to remove."""

    def __init__(self, error: PlimsollError) -> None:
        gated = a_gated_pod("gated")
        super().__init__(a_snapshot(a_node(allocatable=1, pool="gpu"), gated, *wanting(1).workspaces, nap=True))
        self.error = error
        self.ungated: list[str] = []
        self.failures: dict[str, str] = {}

    def apply(self, plan: Plan) -> Outcome:
        assert plan.creations
        raise self.error

    def remove_gates(self, removals: Sequence[Any]) -> int:
        self.ungated += [each.key.name for each in removals]
        return len(removals)

    def report(
        self, view: ClusterView, plan: Plan, now: datetime, failures: Any, stacks: object, **more: object
    ) -> None:
        super().report(view, plan, now, failures, stacks, **more)
        self.failures = {key.kind: str(failure) for key, failure in failures.items()}


def test_a_plan_that_cannot_be_applied_is_reported_and_its_gates_are_removed() -> None:
    cluster = Failing(LockedError("capacity-prod-0", ()))
    with pytest.raises(LockedError):
        cluster.loop().run_round()
    assert cluster.ungated == ["gated"]
    assert cluster.failures.keys() == {"NodeClaim"}
    assert "capacity-prod-0 is locked" in cluster.failures["NodeClaim"]
    assert not cluster.reported[0].node_claims, "it does not count as created"


def test_a_request_that_is_refused_is_not_reported_as_requested() -> None:
    class Refusing(Cluster):
        phases: tuple[str, ...] = ()

        def apply(self, plan: Plan) -> Outcome:
            return Outcome.failing([each.key for each in plan.creations], Failure(FailureKind.REFUSED, "no rights"))

        def report(
            self, view: ClusterView, plan: Plan, now: datetime, failures: Any, stacks: object, **more: object
        ) -> None:
            self.phases = tuple(each.status.phase for each in plan.demands if each.status)

    cluster = Refusing(Demanding(pool(), share_pod("share")).snapshot())
    result = cluster.loop().run_round()
    assert cluster.phases == (DemandPhase.PENDING,)
    assert result.plan is not None
    assert len(result.plan.creations) == len(result.outcome.failed) == 1


@pytest.mark.parametrize("error", [LeaseLostError("lost"), WriterStoppingError()])
def test_a_writer_without_the_lease_reports_nothing(error: PlimsollError) -> None:
    cluster = Failing(error)
    with pytest.raises(type(error)):
        cluster.loop().run_round()
    assert not cluster.reported


def test_removed_gates_are_in_the_result() -> None:
    class Ungating(Cluster):
        def remove_gates(self, removals: Sequence[Any]) -> int:
            return len(removals)

    cluster = Ungating(a_snapshot(a_node(allocatable=1, pool="gpu"), a_gated_pod("gated"), nap=True))
    assert cluster.loop().run_round().gates_removed == 1


def test_nothing_is_planned_until_the_last_plan_is_observed() -> None:
    before = wanting(1)
    cluster = Cluster(before)
    loop = cluster.loop()
    loop.run_round()
    cluster.now += timedelta(seconds=1)
    assert loop.run_round().plan is None
    cluster.seen = [after(before, cluster.applied[0])]
    result = loop.run_round()
    assert result.plan is not None
    assert result.plan.empty


def test_states_are_compared_with_the_watches_after_the_last_plan_is_observed() -> None:
    before = wanting(1)
    cluster = Cluster(before)
    loop = cluster.loop()
    loop.run_round()
    cluster.now += timedelta(seconds=1)
    loop.run_round()
    assert cluster.there == []
    cluster.seen = [after(before, cluster.applied[0])]
    loop.run_round()
    assert cluster.there == [{f"uid-{each.key.name}" for each in cluster.applied[0].creations}]


def test_a_claim_that_was_deleted_before_it_was_observed_does_not_delay_the_next_plan() -> None:
    before = wanting(1)
    cluster = Cluster(before)
    loop = cluster.loop()
    loop.run_round()
    name = cluster.applied[0].creations[0].key.name
    cluster.now += timedelta(seconds=1)
    cluster.seen = [before.model_copy(update={"gone": frozenset({f"uid-{name}"})})]
    assert loop.run_round().plan is not None


def test_a_warning_is_logged_when_it_first_appears() -> None:
    calm = a_snapshot(nap=True)
    adjuster = a_waiting_pod("node-scale-adjuster-1", namespace="kai-scheduler", node="n", phase="Running")
    cluster = Cluster(a_snapshot(adjuster, nap=True))
    loop = cluster.loop()
    with capture_logs() as logs:
        loop.run_round()
        loop.run_round()
        cluster.seen = [calm]
        loop.run_round()
    [message] = [entry["event"] for entry in logs if entry["log_level"] == "warning"]
    assert "KAI's node-scale-adjuster runs" in message
