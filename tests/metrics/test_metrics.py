"""The metrics of a controller after some rounds, and that the reference lists every one."""

import re
import urllib.request
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import promql_parser
import pytest
from pydantic import ValidationError

from plimsoll.apply import Outcome
from plimsoll.cli.controller import serving
from plimsoll.components import alert_rules
from plimsoll.components.specs import MonitoringSpec
from plimsoll.errors import PlimsollError
from plimsoll.labels import NODEPOOL, WORKSPACE
from plimsoll.loop import RoundResult
from plimsoll.model import Change, Deletion, DemandRef, GateRemoval, ObjectKey, Plan, Snapshot
from plimsoll.model.api import ClaimStage, DemandClaim, DemandPhase, DemandReport, GPUDemandStatus, WorkspaceRef
from plimsoll.model.karpenter import NodeClaim, NodePool
from plimsoll.observe.cluster import Health
from plimsoll.plan import plan as make_plan
from plimsoll.plan import validate
from plimsoll.report import Metrics
from plimsoll.sandbox.processes import LOOPBACK, hold_port, port_of
from tests.builders import a_claim, a_node, a_snapshot, a_workspace
from tests.capacity_requests.cluster import sold_out
from tests.metrics.test_alerts import triggers

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


def a_ready_claim(name: str, seconds: int) -> NodeClaim:
    claim = a_claim(name, ready=True)
    since = at(seconds).strftime("%Y-%m-%dT%H:%M:%SZ")
    return claim.model_copy(
        update={
            "conditions": tuple(each.model_copy(update={"last_transition_time": since}) for each in claim.conditions)
        }
    )


def deleting(claim: NodeClaim) -> Plan:
    key = ObjectKey(api_version="karpenter.sh/v1", kind="NodeClaim", namespace="", name=claim.name)
    owner = WorkspaceRef(namespace="default", name="ws")
    return Plan(deletions=(Deletion(key=key, uid=claim.uid, owner=owner, reason="not wanted"),))


def test_ready_claims_count_with_their_duration() -> None:
    metrics = Metrics()
    metrics.seen(a_snapshot(a_claim("a"), a_claim("b")), at(0))
    metrics.seen(a_snapshot(a_ready_claim("a", 90), a_claim("b")), at(95))
    metrics.seen(a_snapshot(a_ready_claim("a", 90), a_claim("b")), at(99))
    assert value(metrics, "plimsoll_nodeclaims_finished_total", result="ready") == 1
    assert value(metrics, "plimsoll_nodeclaim_provision_duration_seconds_sum", node_pool="") == 90
    assert value(metrics, "plimsoll_scaling_success_rate") == 1


def of_pool(claim: NodeClaim, pool: str, **owner: str) -> NodeClaim:
    return claim.model_copy(update={"labels": {**owner, NODEPOOL: pool}})


def pools_with_durations(metrics: Metrics) -> set[str]:
    return {
        sample.labels["node_pool"]
        for each in metrics.registry.collect()
        for sample in each.samples
        if sample.name == "plimsoll_nodeclaim_provision_duration_seconds_count"
    }


def test_the_durations_of_a_node_pool_end_with_it() -> None:
    pool = NodePool.read({"metadata": {"name": "gpu"}})
    metrics = Metrics()
    metrics.seen(a_snapshot(pool), at(0))
    metrics.seen(a_snapshot(pool, of_pool(a_ready_claim("a", 90), "gpu")), at(95))
    assert pools_with_durations(metrics) == {"gpu"}
    metrics.seen(a_snapshot(), at(99))
    assert pools_with_durations(metrics) == set()


def test_the_node_pools_of_workspaces_are_one_series() -> None:
    """The provisioner static-nodepool gives each Workspace a NodePool with a name of its own."""
    pools = [NodePool.read({"metadata": {"name": name}}) for name in ("ws-1", "ws-2")]
    owned = [of_pool(a_ready_claim(pool.name, 90), pool.name, **{WORKSPACE: pool.name}) for pool in pools]
    metrics = Metrics()
    metrics.seen(a_snapshot(*pools), at(0))
    metrics.seen(a_snapshot(*pools, *owned), at(95))
    assert pools_with_durations(metrics) == {""}
    assert value(metrics, "plimsoll_nodeclaim_provision_duration_seconds_count", node_pool="") == 2


def test_claims_deleted_before_they_are_ready_count_as_failed() -> None:
    metrics = Metrics()
    metrics.seen(a_snapshot(a_claim("a"), a_claim("b")), at(0))
    metrics.seen(a_snapshot(a_ready_claim("a", 5)), at(10))
    assert value(metrics, "plimsoll_nodeclaims_finished_total", result="failed") == 1
    assert value(metrics, "plimsoll_scaling_success_rate") == 0.5


@pytest.mark.parametrize(("after", "result"), [(20, "withdrawn"), (400, "failed")])
def test_claims_that_plimsoll_deletes_count_as_failed_only_if_late(after: float, result: str) -> None:
    metrics = Metrics()
    metrics.seen(a_snapshot(a_claim("a")), at(0))
    metrics.applied(deleting(a_claim("a")))
    metrics.seen(a_snapshot(), at(after))
    assert value(metrics, "plimsoll_nodeclaims_finished_total", result=result) == 1


def test_objects_from_before_a_restart_do_not_count() -> None:
    metrics = Metrics()
    metrics.seen(a_snapshot(a_ready_claim("a", 5)), at(10))
    assert value(metrics, "plimsoll_nodeclaims_finished_total", result="ready") == 0
    assert value(metrics, "plimsoll_scaling_success_rate") == 1


def test_an_unobserved_claim_without_capacity_counts_as_failed() -> None:
    metrics = Metrics()
    metrics.seen(a_snapshot().model_copy(update={"claim_events": (sold_out("gpu-older", at(0)),)}), at(1))
    events = (sold_out("gpu-older", at(0)), sold_out("gpu-abcde", at(2)))
    for second in (3, 4):
        metrics.seen(a_snapshot().model_copy(update={"claim_events": events}), at(second))
    assert value(metrics, "plimsoll_nodeclaims_finished_total", result="failed") == 1
    assert value(metrics, "plimsoll_scaling_success_rate") == 0


def test_a_claim_that_is_given_up_counts_as_failed_once() -> None:
    metrics = Metrics()
    metrics.seen(a_snapshot(a_claim("a")), at(0))
    late = DemandClaim(name="a", stage=ClaimStage.FAILED, message="waits for GPUs")
    reports = (DemandReport(name="demand", status=GPUDemandStatus(node_claims=(late,))),)
    metrics.planned(Plan(demands=reports), 0.01, at(1))
    metrics.planned(Plan(demands=reports), 0.01, at(2))
    metrics.seen(a_snapshot(a_ready_claim("a", 5)), at(6))
    metrics.seen(a_snapshot(), at(9))
    assert value(metrics, "plimsoll_nodeclaims_finished_total", result="failed") == 1
    assert value(metrics, "plimsoll_nodeclaims_finished_total", result="ready") == 0


def test_only_the_claim_that_a_demand_reports_counts_as_failed() -> None:
    metrics = Metrics()
    metrics.seen(a_snapshot(a_claim("a"), a_claim("b")), at(0))
    late = DemandClaim(name="a", stage=ClaimStage.FAILED, message="waits for GPUs")
    metrics.planned(
        Plan(demands=(DemandReport(name="demand", status=GPUDemandStatus(node_claims=(late,))),)), 0.01, at(1)
    )
    assert value(metrics, "plimsoll_nodeclaims_finished_total", result="failed") == 1


def test_a_claim_that_is_ready_when_first_observed_counts() -> None:
    metrics = Metrics()
    metrics.seen(a_snapshot(), at(0))
    metrics.seen(a_snapshot(a_ready_claim("a", 5)), at(6))
    assert value(metrics, "plimsoll_nodeclaims_finished_total", result="ready") == 1


def test_operations_and_trigger_pods_are_counted() -> None:
    def a_trigger(name: str) -> Change:
        manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "plimsoll-triggers"}}
        return Change(manifest=manifest, owner=DemandRef(name="demand"), reason="demand")

    plan = Plan(creations=(a_trigger("a"), a_trigger("b")), deletions=deleting(a_claim("c")).deletions)
    metrics = Metrics()
    failed = (plan.creations[1].key, plan.deletions[0].key)
    metrics.applied(plan, created=[plan.creations[0].key], failed=failed, seconds=[0.2])
    assert value(metrics, "plimsoll_triggers_created_total", kind="Pod") == 1
    assert value(metrics, "plimsoll_operations_total", operation="create", result="done") == 1
    assert value(metrics, "plimsoll_operations_total", operation="create", result="failed") == 1
    assert value(metrics, "plimsoll_operations_total", operation="delete", result="failed") == 1
    assert value(metrics, "plimsoll_apply_seconds_sum") == 0.2


def test_a_round_that_was_planned() -> None:
    snapshot = a_snapshot(a_node(), a_workspace("good"), a_workspace("bad", selector={"pool": "none"}))
    metrics = Metrics()
    metrics.planned(make_plan(snapshot, validate(snapshot), NOW), 0.02, NOW)
    assert value(metrics, "plimsoll_verdicts", reason="Accepted") == 1
    assert value(metrics, "plimsoll_verdicts", reason="NoMatchingNodes") == 1
    assert value(metrics, "plimsoll_plan_seconds_count") == 1
    assert value(metrics, "plimsoll_last_plan_timestamp_seconds") == NOW.timestamp()
    metrics.planned(Plan(), 0.02, NOW)
    assert value(metrics, "plimsoll_verdicts", reason="Accepted") is None


def test_gates_count_that_the_cluster_has_removed() -> None:
    key = ObjectKey(api_version="v1", kind="Pod", namespace="team", name="p")
    plan = Plan(gate_removals=(GateRemoval(key=key, uid="u", message="there"),))
    with serving("127.0.0.1", None, None) as service:
        for removed in (0, 1):
            service.completed(RoundResult(a_snapshot(), plan, Outcome(), gates_removed=removed))
    assert value(service.metrics, "plimsoll_capacity_gates_lifted_total") == 1


def test_demand_metrics_are_those_of_the_plan() -> None:
    busy = GPUDemandStatus(phase=DemandPhase.SCHEDULED, pod_count=5, gpus=3, gpu_milli=2500, least_gpus=2)
    blocked = GPUDemandStatus(phase=DemandPhase.QUOTA_BLOCKED, pod_count=2)
    reports = [DemandReport(name="a", status=busy), DemandReport(name="b", status=blocked)]
    metrics = Metrics()
    metrics.planned(Plan(demands=(*reports, DemandReport(name="over", status=None)), demand_least_gpus=2), 0.01, NOW)
    assert value(metrics, "plimsoll_demands", phase="Scheduled") == 1
    assert value(metrics, "plimsoll_demands", phase="QuotaBlocked") == 1
    assert value(metrics, "plimsoll_demands", phase="Failed") == 0
    assert value(metrics, "plimsoll_demand_pods") == 7
    assert (value(metrics, "plimsoll_demand_gpus"), value(metrics, "plimsoll_demand_least_gpus")) == (3, 2)


def test_without_the_lease_the_gauges_are_those_of_the_start() -> None:
    """Another controller reports on the cluster then: what this one saw last would fire alerts for ever."""
    metrics = Metrics()
    metrics.holds_lease(True)
    metrics.seen(a_snapshot(a_claim("lost")), at(0))
    snapshot = a_snapshot(a_node(), a_workspace("good")).model_copy(update={"pods": triggers("trigger").pods})
    metrics.seen(snapshot, at(700))
    failed = DemandReport(name="a", status=GPUDemandStatus(phase=DemandPhase.FAILED, pod_count=5, gpu_milli=2500))
    plan = make_plan(snapshot, validate(snapshot), NOW)
    metrics.planned(plan.model_copy(update={"demands": (failed,), "demand_least_gpus": 2}), 0.01, at(700))
    assert value(metrics, "plimsoll_triggers_oldest_pending_seconds") == 700
    assert value(metrics, "plimsoll_demands", phase="Failed") == 1
    assert value(metrics, "plimsoll_scaling_success_rate") == 0
    assert _gauges(metrics) != _gauges(Metrics())

    metrics.holds_lease(False)

    assert _gauges(metrics) == _gauges(Metrics())


def test_what_another_controller_did_meanwhile_is_not_counted() -> None:
    metrics = Metrics()
    metrics.seen(a_snapshot(a_claim("a"), a_claim("b")), at(0))
    metrics.holds_lease(False)
    metrics.holds_lease(True)
    metrics.seen(a_snapshot(a_ready_claim("a", 90)), at(95))
    for result in ("ready", "failed", "withdrawn"):
        assert value(metrics, "plimsoll_nodeclaims_finished_total", result=result) == 0


def ages_of_watches(metrics: Metrics) -> dict[str, float]:
    return {
        sample.labels["kind"]: sample.value
        for each in metrics.registry.collect()
        for sample in each.samples
        if sample.name == "plimsoll_watch_age_seconds"
    }


def test_watches_have_the_age_at_the_scrape_on_a_standby_too() -> None:
    now = 100.0
    health = Health(["Node", "Pod", "Queue"], 150.0, lambda: now)
    metrics = Metrics()
    assert ages_of_watches(metrics) == {}, "nothing is watched yet"
    metrics.watches(health.ages)
    health.listed("Node")
    health.listed("Pod")
    now = 260.0
    health.heard("Pod")
    assert ages_of_watches(metrics) == {"Node": 160.0, "Pod": 0.0}, "Queue is not defined"
    metrics.holds_lease(False)
    now = 300.0
    assert ages_of_watches(metrics) == {"Node": 200.0, "Pod": 40.0}
    health.unwatched("Node")
    assert ages_of_watches(metrics) == {"Pod": 40.0}


def test_metrics_are_served_while_the_controller_runs() -> None:
    snapshot: Snapshot = a_snapshot()
    with hold_port() as held:
        port = port_of(held)
        with serving(LOOPBACK, port, None) as service:
            assert service.completed(RoundResult(snapshot, Plan(), Outcome(), 0.01))
            with urllib.request.urlopen(f"http://{LOOPBACK}:{port}/metrics", timeout=10) as answer:
                text = answer.read().decode()
            assert "plimsoll_plan_seconds_count 1.0" in text
            with pytest.raises(PlimsollError, match=f"{LOOPBACK}:{port}"), serving(LOOPBACK, port, None):
                pass
        with serving(LOOPBACK, port, None):
            pass


def test_without_a_port_nothing_is_served() -> None:
    with serving("127.0.0.1", None, None) as service:
        assert service.completed(RoundResult(a_snapshot(), None, Outcome()))


def _gauges(metrics: Metrics) -> list[Any]:
    return [sample for each in metrics.registry.collect() if each.type == "gauge" for sample in each.samples]


def _names() -> set[str]:
    return {f"{each.name}_total" if each.type == "counter" else each.name for each in Metrics().registry.collect()}


def test_every_metric_is_in_the_reference_and_no_other() -> None:
    reported = set(re.findall(r"^\| `(plimsoll_[a-z_]+)", REFERENCE.read_text(), re.MULTILINE))
    assert reported == _names()


def test_alerts_use_existing_metrics() -> None:
    metrics = Metrics()
    metrics.watches(lambda: {"Node": 0.0})  # each process follows kinds before it does anything else
    samples = [sample for metric in metrics.registry.collect() for sample in metric.samples]
    output_text = {sample.name: [other.labels for other in samples if other.name == sample.name] for sample in samples}
    for rule in alert_rules(MonitoringSpec()):
        selectors = _selectors(rule["expr"])
        assert selectors, rule["expr"]
        for selector in selectors:
            fitting = [labels for labels in output_text[selector.name] if _fits(labels, selector.matchers)]
            assert fitting, f"{rule['alert']}: no series of {selector.name} when the process begins"
        assert rule["alert"] in REFERENCE.read_text()


def test_the_histogram_has_a_bound_for_the_longest_allowed_threshold() -> None:
    bounds = [
        float(sample.labels["le"])
        for metric in Metrics().registry.collect()
        for sample in metric.samples
        if sample.name == "plimsoll_scaling_duration_seconds_bucket"
    ]
    with pytest.raises(ValidationError):
        MonitoringSpec(scaling_seconds=int(sorted(bounds)[-2]))


def _selectors(expression: str) -> list[Any]:
    """The series that an expression reads, as Prometheus parses it."""
    found: list[Any] = []

    def visit(node: Any) -> bool:
        selector = getattr(node, "vector_selector", node)
        if isinstance(selector, promql_parser.VectorSelector):
            found.append(selector)
        return True

    promql_parser.walk(promql_parser.parse(expression), visit)
    return found


def _fits(labels: Mapping[str, str], matchers: Any) -> bool:
    for each in matchers.matchers:
        given = labels.get(each.name, "")
        if each.op == promql_parser.MatchOp.Equal and given != each.value:
            return False
        if each.op == promql_parser.MatchOp.Re and not re.fullmatch(each.value, given):
            return False
    return True
