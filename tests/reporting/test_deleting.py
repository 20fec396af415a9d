"""A Workspace that is being deleted: since when, and what keeps it, in the verdict, the status and `why`."""

from datetime import UTC, datetime
from typing import Any

import pytest

from plimsoll.explaining import State, explain, plan_demand, why_workspace
from plimsoll.labels import CAPACITY_FINALIZER
from plimsoll.model import Snapshot, Verdict
from plimsoll.model.api import Workspace
from plimsoll.plan import Known, plan, validate
from plimsoll.plan.view import ClusterView
from plimsoll.plan.workspaces import WorkspaceNodes
from plimsoll.report import status_of
from tests.builders import NC24, a_claim, a_snapshot, a_workspace

NOW = datetime(2026, 1, 8, 2, tzinfo=UTC)
SINCE = "2026-01-01T02:00:00Z"
FOREIGN = "example.com/audit"


def going(*finalizers: str, **fields: Any) -> Workspace:
    workspace = a_workspace(**{"instance_type": NC24, "deleting": True, "uid": "u", **fields})
    return workspace.model_copy(update={"finalizers": finalizers})


def seen(workspace: Workspace, *objects: Any) -> tuple[Snapshot, Verdict]:
    snapshot = a_snapshot(workspace, *objects, nap=True)
    [verdict] = validate(snapshot)
    return snapshot, verdict


@pytest.mark.parametrize(
    ("finalizers", "state"),
    [
        ((FOREIGN,), State.BLOCKED),
        ((CAPACITY_FINALIZER,), State.WAITING),
        ((CAPACITY_FINALIZER, FOREIGN), State.BLOCKED),
    ],
)
def test_since_when_and_which_finalizers_keep_it(finalizers: tuple[str, ...], state: State) -> None:
    workspace = going(*finalizers)
    snapshot, verdict = seen(workspace)
    assert verdict.deleting
    assert SINCE in verdict.message
    for each in (CAPACITY_FINALIZER, FOREIGN):
        assert (each in verdict.message) is (each in finalizers)
    whole = plan(snapshot, (verdict,), NOW)
    assert whole.empty
    chain = why_workspace(plan_demand(snapshot, NOW), explain(snapshot, whole, workspace.ref, NOW), whole)
    assert (chain.decisive.state, chain.decisive.reason) == (state, "Deleting")
    assert SINCE in chain.decisive.text
    assert not chain.remedies
    status = status_of(workspace, verdict, WorkspaceNodes(snapshot, (verdict,)), NOW)
    [ready] = [each for each in status["conditions"] if each["type"] == "ResourceReady"]
    assert (ready["status"], ready["reason"], ready["message"]) == ("False", "Deleting", verdict.message)


def test_the_capacity_that_is_left_and_what_keeps_it() -> None:
    workspace = going(CAPACITY_FINALIZER)
    draining = a_claim("draining", workspace, deleting=True).model_copy(update={"finalizers": ("karpenter.sh/x",)})
    earlier = a_claim("earlier", ("default", "ws"), uid="another")
    _, verdict = seen(workspace, a_claim("staying", workspace), draining, earlier)
    assert "NodeClaim staying (not deleted yet)" in verdict.message
    assert f"NodeClaim draining ({draining.stays})" in verdict.message
    assert "karpenter.sh/x" in draining.stays
    assert "earlier" not in verdict.message


def test_a_refused_one_stays_refused() -> None:
    """Its message is what keeps it: nobody corrects a Workspace that goes."""
    _, verdict = seen(going(FOREIGN, instance_type="no.such-type"))
    assert (verdict.accepted, verdict.deleting) == (False, True)
    assert FOREIGN in verdict.message


def test_what_is_left_changes_from_round_to_round() -> None:
    known, told = Known(), []
    workspace = going(CAPACITY_FINALIZER)
    for objects in ([a_claim("c", workspace)], [a_claim("c", workspace, deleting=True)], []):
        known.begin()
        [verdict] = validate(ClusterView(a_snapshot(workspace, *objects, nap=True), known))
        told.append(verdict.message)
    assert len(set(told)) == 3
