"""Verdicts use the Environment's estimator settings and a Workspace's own context length, as `plimsoll estimate`
does."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from plimsoll.cli import app
from plimsoll.explaining import explain
from plimsoll.model.api import Workspace
from plimsoll.plan import plan, validate
from tests.builders import NC24, a_node, a_snapshot, a_workspace, an_environment

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LLAMA = "llama-3.3-70b-instruct"
SETTINGS: list[tuple[dict[str, Any], list[str], int]] = [
    ({}, [], 3),
    ({"utilization": 0.95}, ["--utilization=0.95"], 2),
    ({"utilizationByProduct": {"A100": 0.95}}, ["--utilization=A100=0.95"], 2),
    ({"utilizationByProduct": {"H100": 0.95}}, ["--utilization=H100=0.95"], 3),
    ({"overheadGib": 40}, ["--overhead-gib=40"], 6),
    ({"activationFactor": 2}, ["--activation-factor=2"], 5),
    ({"weightFactor": 2}, ["--weight-factor=2"], 5),
    ({"contextLength": 60_000}, ["--context-length=60000"], 4),
    ({"contextLength": 60_000, "kvValueBytes": 1}, ["--context-length=60000", "--kv-value-bytes=1"], 3),
]


def with_context(tokens: int, **fields: Any) -> Workspace:
    workspace = a_workspace(**fields)
    assert workspace.spec.inference is not None
    inference = workspace.spec.inference.model_copy(update={"context_length": tokens})
    return workspace.model_copy(update={"spec": workspace.spec.model_copy(update={"inference": inference})})


@pytest.mark.parametrize(("declared", "flags", "nodes"), SETTINGS)
def test_flags_verdict_and_explanation_use_the_same_estimate(
    declared: dict[str, Any], flags: list[str], nodes: int, tmp_path: Path
) -> None:
    file = tmp_path / "environment.yaml"
    spec = {"nodeAutoProvisioning": "enabled", "estimator": declared}
    file.write_text(
        yaml.safe_dump({"apiVersion": "plimsoll.dev/v1alpha1", "kind": "Environment", "spec": spec}), "utf-8"
    )
    for given in (flags, ["-f", str(file)]):
        done = CliRunner().invoke(app, ["estimate", LLAMA, "-t", NC24, "--output", "json", *given])
        assert json.loads(done.stdout)["nodes"] == nodes
    workspace = a_workspace(preset=LLAMA, instance_type=NC24)
    snapshot = a_snapshot(workspace, environment=an_environment(nap=True, estimator=declared))
    assert validate(snapshot)[0].per_replica_node_count == nodes
    explanation = explain(snapshot, plan(snapshot, validate(snapshot), NOW), workspace.ref, NOW)
    assert explanation.estimate is not None
    assert explanation.estimate.outcome.nodes == nodes


@pytest.mark.parametrize(("declared", "_", "nodes"), SETTINGS)
def test_existing_nodes_have_the_same_number(declared: dict[str, Any], _: object, nodes: int) -> None:
    existing = [a_node(f"n{number}") for number in range(6)]
    snapshot = a_snapshot(a_workspace(preset=LLAMA), *existing, environment=an_environment(estimator=declared))
    assert validate(snapshot)[0].per_replica_node_count == nodes


@pytest.mark.parametrize("name", ["phi-4-mini-instruct", "qwen2.5-coder-32b-instruct", LLAMA, "gpt-oss-120b"])
@pytest.mark.parametrize(
    "instance_type", [NC24, "Standard_NC80adis_H100_v5", "Standard_NV36ads_A10_v5", "Standard_ND96isr_H200_v5"]
)
def test_the_number_of_provisioned_nodes_is_the_estimate(name: str, instance_type: str) -> None:
    reported = json.loads(CliRunner().invoke(app, ["estimate", name, "-t", instance_type, "--output", "json"]).stdout)
    [verdict] = validate(a_snapshot(a_workspace(preset=name, instance_type=instance_type), nap=True))
    assert (verdict.accepted, verdict.per_replica_node_count) == (True, reported["nodes"])


def test_a_workspaces_own_context_takes_precedence_and_is_served() -> None:
    workspace = with_context(60_000, preset=LLAMA, instance_type=NC24)
    environment = an_environment(nap=True, estimator={"contextLength": 200_000})
    [verdict] = validate(a_snapshot(workspace, environment=environment))
    assert verdict.per_replica_node_count == 4
    nodes = [a_node(f"n{number}") for number in range(4)]
    snapshot = a_snapshot(with_context(60_000, preset=LLAMA), *nodes)
    creations = plan(snapshot, validate(snapshot), NOW).creations
    [creation] = [each for each in creations if each.key.kind != "Service"]
    group = creation.manifest["spec"]["leaderWorkerTemplate"]["leaderTemplate"]["spec"]
    assert "--max-model-len 60000" in " ".join(map(str, group["containers"][0]["args"]))
