"""The Grafana dashboard is generated from the metrics' definitions, and each expression has a result in a real
Prometheus."""

import json
import os
from datetime import timedelta
from pathlib import Path

import pytest

from plimsoll.cluster.profiles import DiscrepancyReason
from plimsoll.components import dashboard_json
from plimsoll.labels import GPU_COUNT, GPU_RESOURCE
from plimsoll.model import Plan
from plimsoll.model.api import DemandPhase, DemandReport, GPUDemandStatus
from plimsoll.plan import plan, validate
from plimsoll.plan.demand import ClusterStates
from plimsoll.report import Metrics, dashboard, expressions
from tests.builders import NC24, a_gpu_node, a_snapshot, a_workspace, an_environment
from tests.golden import UPDATE
from tests.metrics.prometheus import Prometheus
from tests.metrics.test_alerts import START, Loop, prometheus, promtool
from tests.pages import CHECKOUT

__all__ = ["prometheus", "promtool"]

FILE = CHECKOUT / "plimsoll" / "components" / "dashboard.json"


def test_the_file_is_generated_from_the_definitions() -> None:
    made = json.dumps(dashboard(Metrics().registry), indent=1) + "\n"
    if os.environ.get(UPDATE):
        FILE.write_text(made)
    assert dashboard_json() == made, f"{UPDATE}=1 pytest tests/metrics/test_dashboard.py writes it anew"


def test_every_metric_has_a_panel_of_its_own() -> None:
    panels = [panel for panel in json.loads(dashboard_json())["panels"] if panel["type"] != "row"]
    shown = [panel["description"].rpartition("Metric ")[2].rstrip(".") for panel in panels]
    assert sorted(shown) == sorted(metric.name for metric in Metrics().registry.collect())
    places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}
    assert len(places) == len(panels), "no panel covers another"


def test_every_expression_has_a_result(prometheus: Prometheus) -> None:
    """A controller works for some minutes: it plans, creates and deletes objects, nodes register and fail, capacity is
    requested."""
    loop = Loop()
    loop.of(cluster="one", environment="prod")
    loop.watches(lambda: {"Node": 30.0})
    prometheus.scrape(loop, times=4)
    environment = an_environment(nap=True, catalog={"prices": {NC24: 3.67}})
    node = a_gpu_node("n", gpus=2, instance_type=NC24)
    snapshot = a_snapshot(node, a_workspace("ws", instance_type=NC24), environment=environment)
    made = plan(snapshot, validate(snapshot), START)
    status = GPUDemandStatus(phase=DemandPhase.SCHEDULED, pod_count=5, gpus=3, least_gpus=2)
    for minute in range(8):
        now = START + timedelta(minutes=minute)
        loop.claims(ready=3, failed=1)
        loop.scalings(30.0, 90.0)
        loop.deletions(failed=1)
        loop.round_failed("BackendUnreachableError")
        loop.seen(snapshot, now)
        loop.planned(made.model_copy(update={"demands": (DemandReport(name="d", status=status),)}), 0.02, now)
        loop.applied(made, created=[each.key for each in made.creations], seconds=[0.3])
        prometheus.scrape(loop, times=2)
    found = expressions(dashboard(loop.registry))
    assert len(found) > 20
    prometheus.answers(*found)


def test_an_expression_without_a_result_is_detected(prometheus: Prometheus) -> None:
    prometheus.scrape(Loop(), times=3)
    for empty in (
        "max(plimsoll_unknown)",
        "histogram_quantile(0.5, sum by (le) (rate(plimsoll_plan_seconds_bucket[5m])))",
    ):
        try:
            prometheus.answers(empty)
        except AssertionError as error:
            assert empty in str(error)
        else:
            raise AssertionError(f"{empty} has no answer")


def test_a_standby_does_not_hide_the_success_rate_of_the_controller_at_work(prometheus: Prometheus) -> None:
    active, standby = Loop(), Metrics()
    active.claims(ready=1, failed=1)
    prometheus.scrape(active, standby, times=2)
    (rate,) = (each for each in expressions(json.loads(dashboard_json())) if "success_rate" in each)
    prometheus.answers(f"({rate}) == 0.5")


def test_costs_follow_the_nodes_and_the_plan() -> None:
    metrics = Metrics()
    environment = an_environment(nap=True, catalog={"prices": {NC24: 3.5}})
    nodes = [a_gpu_node("n", gpus=2, instance_type=NC24), a_gpu_node("other", gpus=1, instance_type="unknown")]
    snapshot = a_snapshot(*nodes, a_workspace("ws", instance_type=NC24, selector={}), environment=environment)
    metrics.seen(snapshot, START, ClusterStates().of(snapshot).accounts.values())
    metrics.planned(plan(snapshot, validate(snapshot), START), 0.01, START)
    value = metrics.registry.get_sample_value
    assert value("plimsoll_gpus", {"state": "free", "vendor": "nvidia"}) == 3
    assert value("plimsoll_cost_per_hour") == value("plimsoll_idle_cost_per_hour") == 3.5
    assert value("plimsoll_unpriced_nodes") == 1
    assert value("plimsoll_planned_cost_per_hour", {"change": "added"}) == 3.5
    metrics.planned(Plan(), 0.01, START)
    assert value("plimsoll_planned_cost_per_hour", {"change": "added"}) == 0


def test_contradictory_nodes_are_counted_by_reason() -> None:
    metrics = Metrics()
    broken = [a_gpu_node(name, gpus=2, more_labels={GPU_COUNT: "4"}) for name in "ab"]
    snapshot = a_snapshot(*broken, a_gpu_node("c", gpus=2))
    metrics.seen(snapshot, START, ClusterStates().of(snapshot).accounts.values())
    value = metrics.registry.get_sample_value
    counts = {each: value("plimsoll_contradictory_nodes", {"reason": each.value}) for each in DiscrepancyReason}
    assert counts == {each: 2 if each is DiscrepancyReason.FEWER_ALLOCATABLE else 0 for each in DiscrepancyReason}


@pytest.mark.parametrize("parts", [{"nvidia.com/mig-1g.10gb": "14"}, {}], ids=["slices", "none"])
def test_nodes_without_whole_gpus_have_their_cost(parts: dict[str, str]) -> None:
    """Of a node without any, such as while the device plugin fails, all is idle."""
    metrics = Metrics()
    node = a_gpu_node("n", gpus=2, instance_type=NC24)
    node = node.model_copy(update={"allocatable": node.allocatable | {GPU_RESOURCE: "0"} | parts})
    environment = an_environment(nap=True, catalog={"prices": {NC24: 3.5}})
    snapshot = a_snapshot(node, environment=environment)
    metrics.seen(snapshot, START, ClusterStates().of(snapshot).accounts.values())
    value = metrics.registry.get_sample_value
    assert value("plimsoll_cost_per_hour") == value("plimsoll_idle_cost_per_hour") == 3.5
    assert value("plimsoll_gpus", {"state": "free", "vendor": "nvidia"}) == 0


def test_the_file_is_in_the_documentation() -> None:
    page = Path(CHECKOUT / "docs" / "reference" / "metrics.md").read_text()
    assert str(FILE.relative_to(CHECKOUT)) in page
