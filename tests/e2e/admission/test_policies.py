"""The policy pack refuses an invalid program, with the pulumi command and with the Automation API."""

import json
from pathlib import Path
from typing import Any

import pytest
from pulumi import automation
from pulumi_kubernetes.apiextensions import CustomResource

from plimsoll.sandbox import Sandbox
from tests.e2e.programs.stacks import POLICIES, Project

pytestmark = pytest.mark.e2e

FORBIDDEN = "instanceType must be empty when node auto-provisioning is disabled (BYO scenario)"
CLAIM = "the provisioner of this environment is 'trigger-pod'"


@pytest.fixture(scope="module")
def project(byo_sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project(byo_sandbox, tmp_path_factory.mktemp("policies"))


def test_the_wrong_program_is_refused_in_preview(project: Project) -> None:
    project.init("sandbox-wrong")
    output = project.preview("sandbox-wrong", "--policy-pack", str(POLICIES), fails=True)
    assert f"Workspace default/phi: {FORBIDDEN}" in output
    assert "Workspace default/phi names Queue nobody, which is not declared" in output
    assert "Traceback" not in output


def test_the_declared_environment_passes(project: Project) -> None:
    project.init("sandbox")
    output = project.preview("sandbox", "--policy-pack", str(POLICIES))
    assert "plimsoll@" in output
    assert "[mandatory]" not in output


def _claim() -> None:
    CustomResource("claim", api_version="karpenter.sh/v1", kind="NodeClaim", metadata={"name": "claim"}, spec={})


def test_the_automation_api_runs_the_pack_and_creates_no_refused_object(
    byo_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ = byo_sandbox.environ()
    monkeypatch.setenv("PATH", environ["PATH"])  # where the Automation API looks for pulumi
    config = tmp_path / "policies.json"
    config.write_text(json.dumps({"node-claim-provisioner": {"provisioner": "trigger-pod"}}))
    state = tmp_path / "state"
    state.mkdir()
    options: Any = automation.LocalWorkspaceOptions(
        work_dir=str(tmp_path), env_vars={**environ, "PULUMI_BACKEND_URL": f"file://{state}"}
    )
    stack = automation.create_stack("capacity", "policies", _claim, opts=options)
    with pytest.raises(automation.CommandError, match=CLAIM):
        stack.up(policy_packs=[str(POLICIES)], policy_pack_configs=[str(config)])
    kept = stack.export_stack().deployment or {}
    assert not any("NodeClaim" in each["type"] for each in kept.get("resources") or ())
