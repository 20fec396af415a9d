"""The policy pack refuses an invalid program, with the pulumi command and with the Automation API."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pulumi import automation
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.apps.v1 import Deployment
from pulumi_kubernetes.core.v1 import ConfigMap

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


def a_stack(
    program: Callable[[], None], sandbox: Sandbox, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> automation.Stack:
    environ = sandbox.environ()
    monkeypatch.setenv("PATH", environ["PATH"])  # where the Automation API looks for pulumi
    state = folder / "state"
    state.mkdir()
    options: Any = automation.LocalWorkspaceOptions(
        work_dir=str(folder), env_vars={**environ, "PULUMI_BACKEND_URL": f"file://{state}"}
    )
    return automation.create_stack("capacity", "policies", program, opts=options)


def _claim() -> None:
    CustomResource("claim", api_version="karpenter.sh/v1", kind="NodeClaim", metadata={"name": "claim"}, spec={})


def test_the_automation_api_runs_the_pack_and_creates_no_refused_object(
    byo_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = a_stack(_claim, byo_sandbox, tmp_path, monkeypatch)
    config = tmp_path / "policies.json"
    config.write_text(json.dumps({"node-claim-provisioner": {"provisioner": "trigger-pod"}}))
    with pytest.raises(automation.CommandError, match=CLAIM):
        stack.up(policy_packs=[str(POLICIES)], policy_pack_configs=[str(config)])
    kept = stack.export_stack().deployment or {}
    assert not any("NodeClaim" in each["type"] for each in kept.get("resources") or ())


def _many() -> None:
    first = ConfigMap("first", metadata={"name": "first", "namespace": "default"})
    ConfigMap("later", metadata={"namespace": "default"}, data={"uid": first.metadata.uid})
    CustomResource(
        "environment",
        api_version="plimsoll.dev/v1alpha1",
        kind="Environment",
        metadata={"name": "e"},
        spec={"policies": {"rules": {"queue-unknown": {"severity": "warning"}}}},
    )
    container = {"name": "main", "image": "own:1", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    labels = {"kai.scheduler/queue": "nobody"}
    Deployment(
        "many",
        metadata={"name": "many", "namespace": "default"},
        spec={
            "replicas": 8,
            "selector": {"match_labels": {"app": "many"}},
            "template": {"metadata": {"labels": {"app": "many"} | labels}, "spec": {"containers": [container]}},
        },
    )


def test_a_preview_counts_replicas_beside_values_that_it_does_not_know(
    byo_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = a_stack(_many, byo_sandbox, tmp_path, monkeypatch)
    config = tmp_path / "policies.json"
    config.write_text(json.dumps({"gpu-budget": {"environment": 4}}))
    with pytest.raises(automation.CommandError) as raised:
        stack.preview(policy_packs=[str(POLICIES)], policy_pack_configs=[str(config)])
    assert "its objects request 8 GPUs, and the budget is 4" in str(raised.value)
    assert "warning: queue-unknown: Deployment default/many names Queue nobody" in str(raised.value)
    assert "can't run policy" not in str(raised.value)
