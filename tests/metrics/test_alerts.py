"""Alerts fire when their condition holds, and only then: by promtool, over the metrics that the controller exposes."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from plimsoll.labels import DEMAND, ENVIRONMENT, SHARD
from plimsoll.model import Deletion, ObjectKey, Plan, Snapshot
from plimsoll.model.api import DemandPhase, DemandReport, GPUDemandStatus, WorkspaceRef
from plimsoll.model.cluster import Pod
from plimsoll.report import Metrics
from plimsoll.sandbox.parts import Installation, find_programs, missing_programs, part
from tests.builders import a_claim, a_snapshot
from tests.metrics.prometheus import STEP, Prometheus

START = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE = 60 // STEP
"""Scrapes."""


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


@pytest.fixture(scope="module")
def promtool() -> Path:
    Installation(missing_programs(find_programs(["prometheus"]))).run()
    return part("prometheus").cached / "promtool"


@pytest.fixture
def prometheus(promtool: Path, tmp_path: Path) -> Prometheus:
    return Prometheus(promtool, tmp_path)


class Loop(Metrics):
    """The metrics of a controller that observes what the test says."""

    def __init__(self) -> None:
        super().__init__()
        self._claims = 0
        self.holds_lease(True)
        self.seen(a_snapshot(), at(0))

    def claims(self, *, ready: int = 0, failed: int = 0) -> None:
        """Records this many NodeClaims with this result."""
        names = [f"claim-{self._claims + number}" for number in range(ready + failed)]
        self._claims += len(names)
        self.seen(a_snapshot(*(a_claim(name) for name in names)), at(0))
        self.seen(a_snapshot(*(a_claim(name, ready=True) for name in names[:ready])), at(0))
        self.seen(a_snapshot(), at(0))

    def scalings(self, *seconds: float) -> None:
        """Records trigger pods whose nodes were ready after these times."""
        for number, taken in enumerate(seconds):
            for answered in (False, True):
                self.seen(triggers(f"trigger-{number}", answered=answered), at(taken))
        self.seen(a_snapshot(), at(0))

    def deletions(self, *, failed: int) -> None:
        """Records this many attempted and failed deletions."""
        keys = [
            ObjectKey(api_version="karpenter.sh/v1", kind="NodeClaim", namespace="", name=f"claim-{number}")
            for number in range(failed)
        ]
        owner = WorkspaceRef(namespace="default", name="ws")
        deletions = tuple(Deletion(key=key, uid=key.name, owner=owner, reason="not wanted") for key in keys)
        self.applied(Plan(deletions=deletions), failed=keys)


def triggers(*names: str, answered: bool = False) -> Snapshot:
    """A cluster with trigger pods that were created at the start."""
    snapshot = a_snapshot()
    reason = "CapacityReady" if answered else "Unschedulable"
    metadata = {
        "namespace": snapshot.environment.spec.demand.namespace,
        "labels": {SHARD: "0", ENVIRONMENT: snapshot.environment.name, DEMAND: "demand"},
        "creationTimestamp": START.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    pods = tuple(
        Pod.read(
            {
                "metadata": {**metadata, "name": name, "uid": f"uid-{name}"},
                "status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": reason}]},
            }
        )
        for name in names
    )
    return snapshot.model_copy(update={"pods": pods})


def test_a_missing_controller_fires_no_controller(prometheus: Prometheus) -> None:
    loop = Loop()
    prometheus.scrape(loop, times=10 * MINUTE)
    prometheus.is_silent()
    prometheus.scrape(times=5 * MINUTE)
    prometheus.is_silent()
    prometheus.scrape(times=6 * MINUTE)
    prometheus.tells("PlimsollNoController", "")
    prometheus.check()


def test_a_lease_without_a_holder_fires_with_its_cluster(prometheus: Prometheus) -> None:
    left, right = Loop(), Loop()
    for each in (left, right):
        each.of(cluster="uid-1")
    prometheus.scrape(left, right, times=2 * MINUTE)
    for each in (left, right):
        each.holds_lease(False)
    prometheus.scrape(left, right, times=5 * MINUTE)
    prometheus.is_silent()
    prometheus.scrape(left, right, times=2 * MINUTE)
    prometheus.tells("PlimsollNoController", "", cluster="uid-1")
    right.holds_lease(True)
    prometheus.scrape(left, right)
    prometheus.is_silent()
    prometheus.check()


def test_a_controller_that_does_not_plan_fires_no_plan(prometheus: Prometheus) -> None:
    loop = Loop()
    loop.of(cluster="uid-1", environment="prod")
    loop.planned(Plan(), 0.1, datetime.fromtimestamp(60, UTC))
    prometheus.scrape(loop, times=11 * MINUTE)
    prometheus.is_silent()
    prometheus.scrape(loop, times=2 * MINUTE + 1)
    prometheus.tells("PlimsollNoPlan", "12m 0s", cluster="uid-1", environment="prod")
    loop.planned(Plan(), 0.1, datetime.fromtimestamp(13 * 60, UTC))
    prometheus.scrape(loop)
    prometheus.is_silent()
    prometheus.check()


def test_a_silent_watch_fires_with_its_kind(prometheus: Prometheus) -> None:
    loop, ages = Loop(), {"Node": 20.0, "Pod": 180.0}
    loop.of(cluster="uid-1")
    loop.watches(lambda: ages)
    prometheus.scrape(loop, times=4 * MINUTE)
    prometheus.is_silent()
    ages["Pod"] = 240.0
    prometheus.scrape(loop, times=MINUTE + 1)
    prometheus.tells("PlimsollWatchSilent", "4m 0s", cluster="uid-1", kind="Pod")
    ages["Pod"] = 1.0
    prometheus.scrape(loop)
    prometheus.is_silent()
    prometheus.check()


def test_failing_rounds_fire_rounds_fail(prometheus: Prometheus) -> None:
    loop = Loop()
    loop.of(cluster="uid-1", environment="prod")
    loop.round_failed("BackendUnreachableError")
    prometheus.scrape(loop, times=20 * MINUTE)
    prometheus.is_silent()
    for _ in range(3):
        loop.round_failed("BackendUnreachableError")
    prometheus.scrape(loop, times=4 * MINUTE)
    prometheus.tells(
        "PlimsollRoundsFail",
        "3",
        cluster="uid-1",
        environment="prod",
        error="BackendUnreachableError",
    )
    prometheus.check()


def test_a_failed_demand_fires_demand_failed(prometheus: Prometheus) -> None:
    loop = Loop()
    loop.of(cluster="uid-1", environment="prod")
    status = GPUDemandStatus(phase=DemandPhase.FAILED)
    for demands in ((), (DemandReport(name="demand", status=status),)):
        loop.planned(Plan(demands=demands), 0.1, at(0))
        prometheus.scrape(loop, times=MINUTE)
        prometheus.is_silent()
    prometheus.scrape(loop, times=MINUTE)
    prometheus.tells("PlimsollDemandFailed", "1", cluster="uid-1", environment="prod")
    prometheus.check()


def test_an_idle_controller_fires_nothing(prometheus: Prometheus) -> None:
    loop, standby = Loop(), Loop()
    for _ in prometheus.scrapes(loop, standby, times=60 * MINUTE):
        prometheus.is_silent()
    prometheus.check()


def test_a_pending_trigger_pod_fires_after_its_threshold_and_a_minute(prometheus: Prometheus) -> None:
    loop = Loop()
    for scrape in range(11 * MINUTE + 1):
        loop.seen(triggers("a"), at(scrape * STEP))
        prometheus.scrape(loop)
        prometheus.is_silent()
    loop.seen(triggers("a"), at(11 * 60 + STEP))
    prometheus.scrape(loop)
    prometheus.tells("PlimsollTriggerPending", "11m 30s", pod="plimsoll-0")
    loop.seen(triggers("a", answered=True), at(12 * 60))
    prometheus.scrape(loop)
    prometheus.is_silent()
    prometheus.check(scaling_seconds=1000)


def test_trigger_pods_of_an_ended_controller_fire_nothing(prometheus: Prometheus) -> None:
    loop, successor = Loop(), Loop()
    for scrape in range(20 * MINUTE):
        loop.seen(triggers("a"), at(scrape * STEP))
        prometheus.scrape(successor, loop)
    prometheus.tells("PlimsollTriggerPending", "19m 30s", pod="plimsoll-1")
    prometheus.scrape(successor)
    prometheus.is_silent()
    prometheus.check()


@pytest.mark.parametrize(("ready", "failed", "part"), [(9, 1, ""), (8, 1, "11.11%"), (0, 1, "100%"), (18, 2, "")])
def test_failed_claims_fire_above_the_failure_rate(prometheus: Prometheus, ready: int, failed: int, part: str) -> None:
    """Whatever happened before the last half hour, in each of three clusters."""
    loops = {cluster: Loop() for cluster in ("idle", "well", "ill")}
    for cluster, loop in loops.items():
        loop.of(cluster=cluster)
    loops["well"].claims(ready=7)
    loops["ill"].claims(failed=7)
    prometheus.scrape(*loops.values(), times=40 * MINUTE)
    prometheus.is_silent()
    for loop in loops.values():
        loop.claims(ready=ready // 2)
    prometheus.scrape(*loops.values())
    for loop in loops.values():
        loop.claims(ready=ready - ready // 2, failed=failed)
    prometheus.scrape(*loops.values(), times=5 * MINUTE)
    prometheus.is_silent()
    for _ in prometheus.scrapes(*loops.values(), times=20 * MINUTE):
        if part:
            prometheus.tells_each("PlimsollNodeClaimsFail", part, *({"cluster": cluster} for cluster in loops))
        else:
            prometheus.is_silent()
    prometheus.scrape(*loops.values(), times=30 * MINUTE)
    prometheus.is_silent()
    prometheus.check()


def test_claims_that_failed_count_over_a_restart(prometheus: Prometheus) -> None:
    """In the same pod, where counters are reset, and in another pod."""
    first, second, third = Loop(), Loop(), Loop()
    first.claims(ready=40)
    prometheus.scrape(first, times=40 * MINUTE)
    for loop in (first, second):
        prometheus.scrape(loop)
        loop.claims(ready=6, failed=1)
        prometheus.scrape(loop)
    prometheus.scrape(second, third, times=MINUTE)
    third.claims(ready=6)
    prometheus.scrape(second, third, times=8 * MINUTE)
    prometheus.tells("PlimsollNodeClaimsFail", "10%")
    prometheus.check(node_claim_failure_rate=0.09)


@pytest.mark.parametrize("before", [(), (1000.0, 20.0)])
@pytest.mark.parametrize(("slow", "taken"), [(1, ""), (2, "12m 30s")])
def test_slow_scaling_fires_if_more_than_one_in_twenty_is_slow(
    prometheus: Prometheus, before: tuple[float, ...], slow: int, taken: str
) -> None:
    loop = Loop()
    loop.scalings(*before)
    prometheus.scrape(loop, times=40 * MINUTE)
    loop.scalings(*[600.0] * (20 - slow), *[601.0] * slow)
    prometheus.scrape(loop, times=10 * MINUTE)
    prometheus.is_silent()
    for _ in prometheus.scrapes(loop, times=15 * MINUTE):
        if taken:
            prometheus.tells("PlimsollScalingSlow", taken)
        else:
            prometheus.is_silent()
    prometheus.scrape(loop, times=10 * MINUTE)
    prometheus.is_silent()
    prometheus.check()


@pytest.mark.parametrize("before", [0, 5])
@pytest.mark.parametrize("allowed", [0, 3])
def test_failed_deletions_fire_above_the_threshold(prometheus: Prometheus, before: int, allowed: int) -> None:
    loop, standby = Loop(), Loop()
    loop.deletions(failed=before)
    prometheus.scrape(loop, standby, times=20 * MINUTE)
    loop.deletions(failed=allowed)
    for _ in prometheus.scrapes(loop, standby, times=5 * MINUTE):
        prometheus.is_silent()
    loop.deletions(failed=1)
    prometheus.scrape(loop, standby)
    prometheus.tells("PlimsollCleanupFails", str(allowed + 1))
    prometheus.scrape(loop, standby, times=15 * MINUTE)
    prometheus.is_silent()
    prometheus.check(cleanup_failures=allowed)


def test_deletions_that_fail_count_over_a_restart(prometheus: Prometheus) -> None:
    first, second = Loop(), Loop()
    first.deletions(failed=7)
    prometheus.scrape(first, times=20 * MINUTE)
    first.deletions(failed=2)
    prometheus.scrape(first)
    prometheus.scrape(second)
    second.deletions(failed=1)
    prometheus.scrape(second)
    prometheus.is_silent()
    second.deletions(failed=1)
    prometheus.scrape(second)
    prometheus.tells("PlimsollCleanupFails", "4")
    prometheus.check(cleanup_failures=3)
