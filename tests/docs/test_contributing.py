"""The examples of CONTRIBUTING are working code."""

import re
from datetime import UTC, datetime
from typing import Any

import pytest

from plimsoll.model import Plan
from plimsoll.plan import plan, validate
from plimsoll.policy import PolicyContext
from tests.builders import NC24, a_snapshot, a_workspace, an_environment
from tests.pages import CHECKOUT


def example(title: str) -> dict[str, Any]:
    """The names that the Python blocks of a section define."""
    text = (CHECKOUT / "CONTRIBUTING.md").read_text()
    section = text.partition(f"## Example: {title}\n")[2].partition("\n## ")[0]
    names: dict[str, Any] = {"__name__": "example"}
    for block in re.findall(r"```python\n(.*?)```", section, re.DOTALL):
        exec(block, names)
    return names


def test_the_example_kind_reads_its_fields() -> None:
    kind = example("observing another kind")["LIMIT_RANGES"]
    limit = {"type": "Container", "max": {"cpu": "4"}}
    manifest = {"metadata": {"name": "b", "namespace": "team"}, "spec": {"limits": [limit]}}
    assert kind.read(manifest).limits == (limit,)
    assert kind.read({"metadata": {"name": "b"}}).limits == ()


def test_the_example_rule_finds_a_violation() -> None:
    (rule,) = example("adding a policy rule")["RULES"]

    def faults(**labels: str) -> list[str]:
        workspace = {
            "apiVersion": "plimsoll.dev/v1alpha1",
            "kind": "Workspace",
            "metadata": {"name": "w", "labels": labels},
        }
        return [fault.field for fault in rule.check(workspace, PolicyContext(), None)]

    assert faults() == ["metadata.labels.team"]
    assert faults(team="vision") == []
    assert "team" in rule.cel.holds


def test_the_example_provisioner_plans_once_and_within_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    made = example("adding a provisioner")["MachineDeploymentProvisioner"]

    def planned(replicas: int, existing: dict[str, int], **limits: int) -> Plan:
        monkeypatch.setattr(
            "plimsoll.plan.workspace_objects.NodeClaimProvisioner", lambda context, *_: made(context, existing)
        )
        snapshot = a_snapshot(
            a_workspace("ws", instance_type=NC24, replicas=replicas),
            environment=an_environment(nap=True, **({"limits": limits} if limits else {})),
        )
        return plan(snapshot, validate(snapshot), datetime(2026, 1, 1, tzinfo=UTC))

    (change,) = planned(2, {}).creations
    assert (change.key.name, change.manifest["spec"]["replicas"]) == ("default-ws", 2)
    assert planned(2, {"default-ws": 2}).empty
    (change,) = planned(1, {"default-ws": 2}).updates
    assert change.manifest["spec"]["replicas"] == 1
    assert planned(3, {"default-ws": 1}, nodes=3).updates[0].manifest["spec"]["replicas"] == 3
