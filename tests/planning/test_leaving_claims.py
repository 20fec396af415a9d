"""What keeps NodeClaims that are being deleted is told where they are in the way, and they count for a time."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from plimsoll.cluster.pods import with_blocking_pods
from plimsoll.labels import DO_NOT_DISRUPT, WORKSPACE
from plimsoll.model import Plan, Snapshot
from plimsoll.model.cluster import Pod, PodDisruptionBudget
from plimsoll.model.karpenter import NodeClaim
from plimsoll.model.meta import Condition, Placement
from plimsoll.plan import plan, validate
from plimsoll.plan.workspaces import WorkspaceNodes
from plimsoll.report import status_of
from tests.builders import NC24, a_claim, a_node_pool, a_pod, a_snapshot, a_workspace, an_environment

DELETED = datetime(2026, 1, 1, 1, tzinfo=UTC)
"""Since when the claim of a_claim is being deleted."""
HOUR = timedelta(hours=1)


def a_leaving(*steps: tuple[str, str]) -> NodeClaim:
    conditions = tuple(
        Condition.model_validate({"type": step, "status": status, "reason": "R"}) for step, status in steps
    )
    claim = a_claim("old", ready=True, deleting=True)
    return claim.model_copy(update={"finalizers": ("karpenter.sh/termination",), "conditions": conditions})


def a_cluster(claim: NodeClaim, *objects: Any, limits: dict[str, int] | None = None, **claims: Any) -> Snapshot:
    environment = an_environment(nap=True, limits={"nodes": 1} if limits is None else limits, nodeClaims=claims)
    return a_snapshot(a_workspace(instance_type=NC24), claim, *objects, environment=environment)


def planned(snapshot: Snapshot, after: timedelta) -> Plan:
    return plan(snapshot, validate(snapshot), DELETED + after)


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ((), "finalizers are karpenter.sh/termination"),
        ((("Drained", "Unknown"),), "PodDisruptionBudgets"),
        ((("Drained", "True"), ("VolumesDetached", "Unknown")), "volumes are attached"),
        ((("Drained", "True"), ("VolumesDetached", "True")), "finalizers are karpenter.sh/termination"),
    ],
)
def test_the_limit_names_what_is_in_the_way(steps: tuple[tuple[str, str], ...], said: str) -> None:
    found = planned(a_cluster(a_leaving(*steps)), HOUR)
    assert not found.creations
    [warning] = found.warnings
    assert "NodeClaim old" in warning and "2026-01-01T01:00:00Z" in warning and said in warning


OWN = a_workspace(instance_type=NC24)


def on_the_node(name: str, **update: Any) -> Pod:
    return a_pod(name, OWN, node="n", phase="Running").model_copy(update=update)


def a_budget(name: str, allowed: int | None = 0, selector: dict[str, Any] | None = None, **spec: Any) -> Any:
    status = {} if allowed is None else {"disruptionsAllowed": allowed}
    given = {"selector": {} if selector is None else selector, **spec}
    metadata = {"name": name, "namespace": "default"}
    return PodDisruptionBudget.read({"metadata": metadata, "spec": given, "status": status})


def blocking(*objects: Any) -> tuple[str, ...]:
    claim = a_leaving(("Drained", "Unknown")).model_copy(update={"node_name": "n"})
    pods = tuple(each for each in objects if isinstance(each, Pod))
    [found] = with_blocking_pods((claim,), pods, [each for each in objects if isinstance(each, PodDisruptionBudget)])
    return found.blocking


@pytest.mark.parametrize(
    ("objects", "why"),
    [
        ((), ""),
        ((a_budget("b"),), " (PodDisruptionBudget default/b allows no disruption)"),
        ((a_budget("b", 1),), ""),
        ((a_budget("b", None),), ""),
        ((a_budget("b", selector={"matchLabels": {WORKSPACE: "other"}}),), ""),
        ((a_budget("b", unhealthyPodEvictionPolicy="AlwaysAllow"),), ""),
        (
            (a_budget("c", 1), a_budget("b", 1)),
            " (PodDisruptionBudgets default/b, default/c: a pod with several is never evicted)",
        ),
    ],
)
def test_the_pod_for_which_a_drain_waits_is_named_with_its_budget(objects: tuple[Any, ...], why: str) -> None:
    assert blocking(on_the_node("p"), *objects) == (f"pod default/p{why}",)


@pytest.mark.parametrize(
    ("update", "named"),
    [
        ({"deletion_timestamp": "2026-01-01T01:00:00Z"}, " (being deleted since 2026-01-01T01:00:00Z)"),
        ({"annotations": {DO_NOT_DISRUPT: "true"}}, " (annotation karpenter.sh/do-not-disrupt)"),
        ({"phase": "Pending"}, ""),
        # Karpenter does not wait for these.
        ({"phase": "Succeeded"}, None),
        ({"owner_kind": "Node"}, None),
        ({"placement": Placement.read({"tolerations": [{"operator": "Exists"}]})}, None),
    ],
)
def test_what_else_a_drain_waits_for(update: dict[str, Any], named: str | None) -> None:
    expected = () if named is None else (f"pod default/p{named}",)
    assert blocking(on_the_node("p", **update), a_budget("b")) == expected


def test_the_limit_names_the_pod_and_the_budget() -> None:
    claim = a_leaving(("Drained", "Unknown")).model_copy(update={"node_name": "n"})
    [claim] = with_blocking_pods((claim,), (on_the_node("p"),), [a_budget("b")])
    [warning] = planned(a_cluster(claim), HOUR).warnings
    assert "pod default/p (PodDisruptionBudget default/b allows no disruption)" in warning


def test_of_a_node_that_stays_no_pod_is_named() -> None:
    claims = (a_claim("new", ready=True, node="n"),)
    assert with_blocking_pods(claims, (on_the_node("p"),), []) == claims


def test_the_condition_names_it_too() -> None:
    snapshot = a_cluster(a_leaving(("Drained", "Unknown")))
    [verdict] = validate(snapshot)
    status = status_of(snapshot.workspaces[0], verdict, WorkspaceNodes(snapshot, (verdict,)), DELETED + HOUR)
    [ready] = [each for each in status["conditions"] if each["type"] == "NodeClaimsReady"]
    assert ready["status"] == "False" and "old is being deleted since" in ready["message"]


@pytest.mark.parametrize(
    ("limits", "pool_limits"),
    [({"nodes": 1}, None), ({"gpus": 1}, None), ({}, {"nvidia.com/gpu": "1"})],
    ids=["nodes", "GPUs", "the NodePool's"],
)
def test_a_late_deletion_counts_no_more_and_is_told(limits: dict[str, int], pool_limits: dict[str, str] | None) -> None:
    pools = [] if pool_limits is None else [a_node_pool("gpus", [NC24], limits=pool_limits)]
    snapshot = a_cluster(a_leaving(), *pools, limits=limits, deletionDeadlineSeconds=3600)
    before = planned(snapshot, HOUR - timedelta(seconds=1))
    assert not before.creations
    assert before.next_deadline == DELETED + HOUR
    after = planned(snapshot, HOUR)
    assert [each.key.kind for each in after.creations] == ["NodeClaim"]
    assert any("old counts against no limit any more" in each for each in after.warnings)


def test_without_the_setting_it_counts_as_long_as_it_exists() -> None:
    assert not planned(a_cluster(a_leaving()), timedelta(days=400)).creations


def test_a_deletion_that_takes_no_longer_causes_no_warning() -> None:
    found = planned(a_cluster(a_leaving(), limits={}, deletionDeadlineSeconds=3600), timedelta(minutes=1))
    assert len(found.creations) == 1 and not found.warnings
