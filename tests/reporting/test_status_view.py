"""`plimsoll status` shows the state of the cluster, as text and as JSON."""

import pytest

from plimsoll.cli.tables.status import as_json
from plimsoll.model import InvalidObject
from plimsoll.model.api import Workspace, WorkspaceRef, WorkspaceStatus
from plimsoll.model.meta import Condition
from plimsoll.plan.owned import phase_of
from tests.builders import NC24, a_claim, a_snapshot, a_workspace


def verdict_of(workspace: Workspace, ready: str, reason: str, generation: int = 1) -> Workspace:
    condition = {"type": "ResourceReady", "status": ready, "reason": reason, "message": "so it is"}
    status = WorkspaceStatus.model_validate({"observedGeneration": generation, "conditions": [condition]})
    return workspace.model_copy(update={"status": status, "generation": 1})


@pytest.mark.parametrize(
    ("workspace", "accepted", "outdated"),
    [
        pytest.param(a_workspace(), None, False, id="not judged"),
        pytest.param(verdict_of(a_workspace(), "True", "Accepted"), True, False, id="ready"),
        pytest.param(verdict_of(a_workspace(), "False", "NodeClaimsPending"), True, False, id="accepted and waiting"),
        pytest.param(verdict_of(a_workspace(), "False", "NonUniformNodes"), False, False, id="refused"),
        pytest.param(verdict_of(a_workspace(), "True", "Accepted", generation=0), True, True, id="changed since"),
    ],
)
def test_a_workspace_is_shown_as_its_conditions_say(
    workspace: Workspace, accepted: bool | None, outdated: bool
) -> None:
    (shown,) = as_json(a_snapshot(workspace))["workspaces"]
    assert (shown["accepted"], shown["outdated"]) == (accepted, outdated)


def test_an_invalid_workspace_is_shown_as_refused() -> None:
    invalid = InvalidObject(ref=WorkspaceRef(namespace="team", name="bad"), message="spec.replicas: too small")
    snapshot = a_snapshot().model_copy(update={"invalid_workspaces": (invalid,)})
    (shown,) = as_json(snapshot)["workspaces"]
    assert (shown["reason"], shown["message"]) == ("InvalidSpec", "spec.replicas: too small")


def test_a_namespace_can_be_selected() -> None:
    here, there = a_workspace("here", namespace="a"), a_workspace("there", namespace="b")
    snapshot = a_snapshot(here, there, a_claim("c1", here), a_claim("c2", there))
    shown = as_json(snapshot, "b")
    assert [each["name"] for each in shown["workspaces"]] == ["there"]
    assert [each["name"] for each in shown["nodeClaims"]] == ["c2"]


def test_only_claims_of_workspaces_are_shown() -> None:
    shown = as_json(a_snapshot(a_claim("ours"), a_claim("foreign", ("", ""))))
    assert [(each["name"], each["workspace"], each["instanceType"]) for each in shown["nodeClaims"]] == [
        ("ours", "default/ws", NC24)
    ]


@pytest.mark.parametrize(
    ("steps", "phase"),
    [
        ([], "Pending"),
        (["Launched"], "Launched"),
        (["Launched", "Registered"], "Registered"),
        (["Launched", "Registered", "Initialized"], "Initialized"),
        (["Launched", "Registered", "Initialized", "Ready"], "Ready"),
    ],
)
def test_the_phase_is_the_last_completed_step(steps: list[str], phase: str) -> None:
    conditions = tuple(Condition(type=step, status="True") for step in steps)
    claim = a_claim("c").model_copy(update={"conditions": conditions})
    assert phase_of(claim) == phase
    assert phase_of(claim.model_copy(update={"deletion_timestamp": "2026-01-01T00:00:00Z"})) == "Deleting"
