"""The strip of what needs attention: each kind with its number, and nothing where nothing is wrong."""

from datetime import UTC, datetime
from typing import Any

from plimsoll.cost import Prices
from plimsoll.labels import OWNER_NAMESPACE, OWNER_QUEUE
from plimsoll.model import Plan, Snapshot
from plimsoll.model.api import DemandPhase, DemandReport, GPUDemandStatus
from plimsoll.plan import plan, validate
from plimsoll.ui.view import Filter, Kind, NodeRows, attention_rows, cluster_page, demand_rows, plan_page
from tests.builders import (
    NC24,
    a_gpu_node,
    a_node_pool,
    a_queue,
    a_snapshot,
    a_waiting_pod,
    a_workspace,
    an_environment,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DELTA = {
    "time": "2026-01-01T00:00:00Z",
    "changes": [{"operation": "create", "kind": "NodeClaim", "count": 2, "failure": "Forbidden: no rights"}],
}


def found(snapshot: Snapshot, made: Plan | None = None) -> dict[Kind, str]:
    rows = NodeRows().update(snapshot, Prices.of(snapshot))
    made = plan(snapshot, validate(snapshot), NOW) if made is None else made
    return {each.kind: each.text for each in attention_rows(snapshot, made, rows)}


def reported(**demands: GPUDemandStatus) -> Plan:
    return Plan(demands=tuple(DemandReport(name=name, status=status) for name, status in demands.items()))


def status(phase: DemandPhase, **more: Any) -> GPUDemandStatus:
    return GPUDemandStatus(phase=phase, pod_count=2, **more)


def test_a_sound_cluster_needs_none() -> None:
    assert found(a_snapshot(a_gpu_node("n", gpus=2))) == {}


def test_each_kind_is_found_by_its_cause() -> None:
    environment = an_environment().model_copy(
        update={"status": type(an_environment().status).model_validate({"deltas": [DELTA]})}
    )
    snapshot = a_snapshot(a_gpu_node("n", gpus=2, more_labels={"nvidia.com/gpu.count": "4"}), environment=environment)
    made = reported(
        blocked=status(DemandPhase.QUOTA_BLOCKED, refused_pods=2),
        given=status(DemandPhase.EXPIRED),
        lost=status(DemandPhase.FAILED),
        some=status(DemandPhase.SCHEDULED, refused_pods=1),
    )
    texts = found(snapshot.model_copy(update={"stale": ("x", "y")}), made)
    assert list(texts) == [Kind.STALE, Kind.REFUSED, Kind.QUOTA, Kind.GIVEN_UP, Kind.FAILED, Kind.CONTRADICTIONS]
    assert "2 reasons" in texts[Kind.STALE]
    assert texts[Kind.REFUSED].startswith("1 pod without capacity, of some")
    assert texts[Kind.QUOTA] == "2 pods of 1 demand: blocked"
    assert texts[Kind.GIVEN_UP] == "4 pods of 2 demands: given, lost"
    assert "2 operations" in texts[Kind.FAILED]
    assert texts[Kind.CONTRADICTIONS] == "1 node: n"


def test_a_demand_is_named_by_what_it_serves_and_its_own_name_is_last() -> None:
    pods = [a_waiting_pod(f"p{number}", gpu_fraction="0.5", queue="a") for number in range(3)]
    queues = (a_queue("root", parent=""), a_queue("a", limit=0))
    pool = a_node_pool("l4", ("g6.xlarge",), group="karpenter.k8s.aws")
    environment = an_environment(demand={"provisioner": "trigger-pod"})
    snapshot = a_snapshot(pool, *pods, *queues, environment=environment)
    made = plan(snapshot, validate(snapshot), NOW)
    (name,) = [each.name for each in made.demands]
    assert found(snapshot, made)[Kind.QUOTA] == f"3 pods of 1 demand: a: 3 x 0.5 of a GPU ({name})"


def test_refused_workspaces_are_named_with_the_reason() -> None:
    snapshot = a_snapshot(*(a_workspace(f"ws{number}", instance_type="no-such-type") for number in range(5)))
    assert found(snapshot)[Kind.REFUSED].startswith("5 Workspaces: default/ws0 (")


def test_operations_that_are_alike_are_one_row_with_their_number() -> None:
    environment = an_environment(nap=True, catalog={"prices": {NC24: 3.5}})
    snapshot = a_snapshot(a_workspace("ws", instance_type=NC24, selector={}, count=3), environment=environment)
    page = plan_page(plan(snapshot, validate(snapshot), NOW), snapshot, Prices.of(snapshot), Filter())
    (claims,) = (row for row in page.rows if row.kind == "NodeClaim")
    assert (claims.sign, claims.count, len(set(claims.names)), claims.price) == ("+", 3, 3, 10.5)


def test_the_cost_of_nodes_is_shown_by_whom_they_were_requested_for() -> None:
    owners = {"x": "a", "y": "b", "z": "b", "w": ""}
    nodes = [
        a_gpu_node(name, instance_type=NC24, more_labels={OWNER_NAMESPACE: owner, OWNER_QUEUE: "q"} if owner else {})
        for name, owner in owners.items()
    ]
    environment = an_environment(catalog={"prices": {NC24: 3.5}})
    snapshot = a_snapshot(*nodes, a_gpu_node("unpriced", instance_type="other"), environment=environment)
    prices = Prices.of(snapshot)
    shown = NodeRows().update(snapshot, prices)
    page = cluster_page(shown, snapshot, prices, Filter())
    assert page.owned == (("b", "q", 7.0), ("", "", 3.5), ("a", "q", 3.5))
    assert page.hourly == sum(price for _, _, price in page.owned)
    nobody = [row for row in shown if row.name == "w"]
    assert cluster_page(nobody, snapshot, prices, Filter()).owned == (), "no owner is known"


def test_a_demand_is_named_by_who_asks_for_what_on_which_gpus() -> None:
    pods = [a_waiting_pod(f"p{number}", gpu_fraction="0.5", queue="a") for number in range(3)]
    pool = a_node_pool("l4", ("g6.xlarge",), group="karpenter.k8s.aws")
    environment = an_environment(demand={"provisioner": "trigger-pod"})
    snapshot = a_snapshot(pool, *pods, environment=environment)
    (row,) = demand_rows(snapshot, plan(snapshot, validate(snapshot), NOW), Filter())
    assert row.title == "a: 3 x 0.5 of a GPU on NVIDIA-L4"
