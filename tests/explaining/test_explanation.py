"""An explanation contains the inputs and steps of the verdict and the plan, as validation and planning compute them."""

from datetime import UTC, datetime
from typing import Any

import pytest

from plimsoll.cli.explanation import as_json
from plimsoll.explaining import Explanation, explain
from plimsoll.model import Reason
from plimsoll.model.api import Workspace, WorkspaceStatus
from plimsoll.plan import plan, validate
from plimsoll.plan.workspaces import WorkspaceNodes
from plimsoll.report import status_of
from tests.builders import NC24, V100, V100_MIB, a_claim, a_node, a_pod, a_snapshot, a_workspace, an_environment

NOW = datetime(2026, 1, 1, 0, 5, tzinfo=UTC)


def explanation_of(workspace: Workspace, *objects: Any, **environment: Any) -> Explanation:
    snapshot = a_snapshot(workspace, *objects, environment=an_environment(**environment))
    return explain(snapshot, plan(snapshot, validate(snapshot), NOW), workspace.ref, NOW)


@pytest.mark.parametrize(
    ("state", "why"),
    [
        ({"ready": False}, "not Ready"),
        ({"cordoned": True}, "cordoned"),
        ({"deleting": True}, "being deleted"),
        ({"taints": ["own"]}, "tainted own:NoSchedule"),
        ({"allocatable": 0}, "0 nvidia.com/gpu allocatable, 1 requested"),
        ({"memory": "much"}, "label nvidia.com/gpu.memory is 'much'"),
    ],
)
def test_an_unusable_node_has_its_problem(state: dict[str, Any], why: str) -> None:
    explanation = explanation_of(a_workspace(preset="phi-4-mini-instruct"), a_node("good"), a_node("odd", **state))
    (good, odd) = explanation.nodes
    assert good.problem == ""
    assert why in odd.problem
    assert not odd.counts


def test_the_estimate_is_that_of_the_estimator() -> None:
    explanation = explanation_of(a_workspace(preset="phi-4-mini-instruct"), a_node())
    assert explanation.estimate is not None
    assert explanation.estimate.outcome.nodes == 1
    assert explanation.estimate.outcome.lines[0].name == "available on one GPU"
    assert explanation.need is not None
    assert explanation.need.subject == "preset 'phi-4-mini-instruct'"


def test_a_refusal_is_explained_with_its_nodes() -> None:
    explanation = explanation_of(
        a_workspace(preset="phi-4-mini-instruct"), a_node("a"), a_node("v", product=V100, memory=V100_MIB)
    )
    assert explanation.verdict.reason is Reason.NON_UNIFORM_NODES
    assert [each.node.name for each in explanation.nodes] == ["a", "v"]
    assert explanation.creations == ()


def test_provisioning_is_explained_with_claims_limits_and_the_next_steps() -> None:
    workspace = a_workspace(preset="phi-4-mini-instruct", instance_type=NC24, replicas=3)
    other = a_workspace("other", preset="phi-4-mini-instruct", instance_type=NC24, replicas=1)
    access = [{"namespaces": ["default"], "gpus": 8, "instanceTypes": [NC24]}]
    claim = a_claim("mine", workspace, node="n", ready=True)
    explanation = explanation_of(
        workspace,
        other,
        claim,
        a_node("n", pool=None, instance_type=NC24),
        nap=True,
        limits={"nodes": 9},
        access=access,
    )
    assert [each.claim for each in explanation.claims] == [claim]
    assert [(each.node.name, each.counts) for each in explanation.nodes] == [("n", True)]
    assert [each.key.kind for each in explanation.creations] == ["NodeClaim", "NodeClaim"]
    assert explanation.bounds == (
        "limits.nodes of the Environment is 9, 1 in use",
        f"namespace 'default' may use the instance types {NC24} only",
        "namespace 'default' may have 8 GPUs",
    )


def test_operations_are_those_of_the_plan() -> None:
    workspace = a_workspace(preset="phi-4-mini-instruct", instance_type=NC24, replicas=1)
    snapshot = a_snapshot(workspace, a_claim("a", workspace), a_claim("b", workspace), nap=True)
    planned = plan(snapshot, validate(snapshot), NOW)
    explanation = explain(snapshot, planned, workspace.ref, NOW)
    assert (explanation.creations, explanation.updates, explanation.deletions) == (
        planned.creations,
        planned.updates,
        planned.deletions,
    )
    assert len(explanation.deletions) == 1


def test_an_existing_node_does_not_count_for_a_workspace_that_is_being_deleted() -> None:
    going = a_workspace("going", instance_type=NC24, created="2025-01-01T00:00:00Z", deleting=True)
    workspace = a_workspace(instance_type=NC24, replicas=1)
    node = a_node("existing", instance_type=NC24)
    explanation = explanation_of(workspace, going, node, nap=True, limits={"nodes": 0})
    assert explanation.verdict.reason is Reason.ACCEPTED, "it needs no node beyond the limit"
    [explained] = explanation.nodes
    assert (explained.counts, explained.users) == (True, ("Workspace default/ws",))
    assert [each.key.kind for each in explanation.creations] == ["Deployment"]
    snapshot = a_snapshot(workspace, going, node, nap=True)
    status = status_of(workspace, explanation.verdict, WorkspaceNodes(snapshot, validate(snapshot)), NOW)
    assert status["workerNodes"] == ["existing"]


def test_a_node_has_its_users() -> None:
    older = a_workspace("older", created="2025-01-01T00:00:00Z")
    workspace = a_workspace(replicas=2)
    pod = a_pod("train", node="used", devices=1)
    explanation = explanation_of(workspace, older, a_node("first"), a_node("second"), a_node("used"), pod)
    assert {each.node.name: each.users for each in explanation.nodes} == {
        "first": ("Workspace default/older",),
        "second": ("Workspace default/ws",),
        "used": ("pod others/train (1 device)",),
    }


def test_a_provisioned_node_has_its_workspace() -> None:
    other = a_workspace("other", instance_type=NC24)
    made = {"plimsoll.dev/workspace": "other", "plimsoll.dev/workspace-namespace": "default"}
    node = a_node("n", instance_type=NC24, more_labels=made)
    explanation = explanation_of(a_workspace(instance_type=NC24), other, node, nap=True)
    assert [each.users for each in explanation.nodes] == [("Workspace default/other",)]


def test_the_instance_type_has_the_source_of_its_figures() -> None:
    workspace = a_workspace(preset="phi-4-mini-instruct", instance_type=NC24)
    by_table = explanation_of(workspace, nap=True).offered
    live = explanation_of(workspace, a_node(pool=None, instance_type=NC24, count=2), nap=True).offered
    assert by_table is not None and by_table.kind is not None
    assert live is not None and live.kind is not None
    assert (by_table.kind.source, live.kind.source) == ("table", "the live nodes")
    assert [each.split(":")[0] for each in live.warnings] == [NC24]


def test_claims_have_their_step_and_deadline_and_attempts_the_next_time() -> None:
    workspace = a_workspace(preset="phi-4-mini-instruct", instance_type=NC24, replicas=2)
    failed = {
        "failures": 2,
        "tries": 2,
        "lastFailure": "2026-01-01T00:04:30Z",
        "reason": "NodeClaimLate",
        "message": "m",
    }
    status = WorkspaceStatus.model_validate({"provisioning": failed})
    waiting = a_claim("c", workspace, created="2026-01-01T00:04:50Z")
    reported = as_json(explanation_of(workspace.model_copy(update={"status": status}), waiting, nap=True), [])
    [claim] = reported["nodeClaims"]
    assert (claim["waitsFor"], claim["since"], claim["deadline"]) == (
        "Launched",
        "2026-01-01T00:04:50Z",
        "2026-01-01T00:09:50Z",
    )
    attempts = reported["attempts"]
    assert (attempts["failures"], attempts["reason"], attempts["nextAttempt"]) == (
        2,
        "NodeClaimLate",
        "2026-01-01T00:05:30Z",
    )
    assert reported["need"]["estimate"]["settings"]["utilization"] == 0.84


def test_a_missed_deadline_is_reported_as_late() -> None:
    workspace = a_workspace(preset="phi-4-mini-instruct", instance_type=NC24)
    late = a_claim("c", workspace, created="2025-12-31T00:00:00Z")
    attempts = as_json(explanation_of(workspace, late, nap=True), [])["attempts"]
    assert attempts["late"] == [{"name": "c", "why": "NodeClaim c is not Launched after 5 min"}]


def test_a_node_with_too_small_a_disk_is_not_usable() -> None:
    node = a_node(allocatable=1)
    node = node.model_copy(update={"allocatable": {**node.allocatable, "ephemeral-storage": "20Gi"}})
    [shown] = explanation_of(a_workspace(preset="phi-4"), node).nodes
    assert shown.problem.startswith("too little ephemeral-storage")
