"""A refused Workspace can always shrink, and without replicas nothing else matters."""

from datetime import UTC, datetime
from typing import Any

import pytest

from plimsoll.model import Reason
from plimsoll.model.api import Workspace
from plimsoll.plan import plan, validate
from tests.builders import NC24, a_claim, a_node, a_snapshot, a_workload, a_workspace, an_environment

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def a_running(workspace: Workspace) -> Any:
    """The workload that a plan made for the Workspace on six nodes."""
    snapshot = a_snapshot(workspace, *(a_node(f"n{number}") for number in range(6)))
    [creation] = [each for each in plan(snapshot, validate(snapshot), NOW).creations if each.key.kind != "Service"]
    return a_workload(creation.manifest)


@pytest.mark.parametrize(
    "fields",
    [
        {"preset": "unknown"},
        {"preset": "phi-4", "instance_type": "unknown"},
        {"preset": "phi-4", "instance_type": "trn1.2xlarge"},
        {"preset": "phi-4"},
        {"name": "Not-A-Label".lower() + ".x"},
    ],
)
def test_without_replicas_everything_of_it_goes(fields: dict[str, Any]) -> None:
    workspace = a_workspace(**fields, replicas=0)
    claim = a_claim("own", workspace, ready=True)
    snapshot = a_snapshot(workspace, claim, nap=True)
    [verdict] = verdicts = validate(snapshot)
    assert (verdict.accepted, verdict.target_node_count) == (True, 0), verdict.message
    assert [each.key.name for each in plan(snapshot, verdicts, NOW).deletions] == ["own"]


def test_a_refused_workspace_takes_fewer_replicas_and_no_more() -> None:
    running = a_running(a_workspace(replicas=4))
    denied = an_environment(access=[{"namespaces": ["others"]}])
    nodes = [a_node(f"n{number}") for number in range(6)]

    def verdict_on(replicas: int) -> Any:
        [verdict] = validate(a_snapshot(a_workspace(replicas=replicas), running, *nodes, environment=denied))
        return verdict

    assert verdict_on(4).reason is Reason.NOT_ALLOWED
    shrinking = verdict_on(2)
    assert shrinking.accepted and any("only because it shrinks" in warning for warning in shrinking.warnings)
    assert verdict_on(5).reason is Reason.NOT_ALLOWED


def test_a_typo_never_plans_a_hundred_thousand_nodes() -> None:
    one = a_workspace(instance_type=NC24, replicas=2_000)
    [verdict] = validate(a_snapshot(one, nap=True))
    assert (
        verdict.reason is Reason.LIMIT_EXCEEDED
        and "limits.workspaceNodes of the Environment is 1000" in verdict.message
    )
    many = [a_workspace(f"ws-{number}", instance_type=NC24, replicas=900) for number in range(6)]
    verdicts = validate(a_snapshot(*many, nap=True))
    assert sum(each.accepted for each in verdicts) == 5
    assert "limits.nodes of the Environment is 5000" in verdicts[-1].message
