"""Invalid settings and environments of the controller: each is a clear error with exit code 1, and nothing is applied
partially."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from demo.stage import Stage
from demo.working_copy import make
from plimsoll.sandbox import Sandbox
from plimsoll.sandbox.processes import LOOPBACK, hold_port, port_of
from tests.e2e.cluster.kube import Kube

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def stage(byo_sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """A cluster in which nothing is declared, and a backend without stacks."""
    folder = tmp_path_factory.mktemp("bad")
    stage = Stage.on(byo_sandbox, folder)
    backend = folder / "state"
    backend.mkdir()
    environs = {user: {**each, "PULUMI_BACKEND_URL": backend.as_uri()} for user, each in stage.environs.items()}
    return replace(stage, environs=environs)


def message(stage: Stage, *command: str, **environ: str) -> str:
    """The error message of a command that exits with 1, without a traceback."""
    users = {user: {**variables, **environ} for user, variables in stage.environs.items()}
    text = replace(stage, environs=users).run(*command, expect=1)
    assert "Traceback" not in text
    return text


def test_a_missing_definition_names_the_foundation(stage: Stage) -> None:
    assert "foundation" in message(stage, "plimsoll", "status")


def test_no_kubeconfig(stage: Stage, tmp_path: Path) -> None:
    for command in ("plan", "status", "run"):
        assert "kubeconfig" in message(stage, "plimsoll", command, KUBECONFIG=str(tmp_path / "none"))


def test_an_unreachable_cluster(stage: Stage, byo_sandbox: Sandbox, tmp_path: Path) -> None:
    kubeconfig = yaml.safe_load(byo_sandbox.kubeconfig.read_text())
    elsewhere = tmp_path / "kubeconfig"
    with hold_port() as nobody:
        kubeconfig["clusters"][0]["cluster"]["server"] = f"https://{LOOPBACK}:{port_of(nobody)}"
        elsewhere.write_text(yaml.safe_dump(kubeconfig))
        for command in ("plan", "status", "run --once"):
            assert "cannot be reached" in message(stage, "plimsoll", *command.split(), KUBECONFIG=str(elsewhere))


def test_a_wrong_token(stage: Stage, byo_sandbox: Sandbox, tmp_path: Path) -> None:
    kubeconfig = yaml.safe_load(byo_sandbox.kubeconfig.read_text())
    kubeconfig["users"][0]["user"] = {"token": "not-a-token"}
    wrong = tmp_path / "kubeconfig"
    wrong.write_text(yaml.safe_dump(kubeconfig))
    for command in ("plan", "status", "run"):
        text = message(stage, "plimsoll", command, KUBECONFIG=str(wrong))
        assert "token" in text
        assert "not-a-token" not in text


def test_no_passphrase_file(stage: Stage, tmp_path: Path) -> None:
    assert "passphrase" in message(
        stage, "plimsoll", "run", "--once", PULUMI_CONFIG_PASSPHRASE_FILE=str(tmp_path / "none")
    )


def test_a_work_folder_that_cannot_be_written(stage: Stage, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    assert str(file) in message(stage, "plimsoll", "run", "--once", PLIMSOLL_WORK_FOLDER=str(file / "work"))


WRONG = {
    "workspaces.phi.resource.counts": "1",
    "workspaces.phi.inference.replicas": "-1",
    "workspaces.phi.inference.gpuMemoryGiB": "16Gi",
    "queues.inference.resources.gpu.quota": "-5",
}


def test_wrong_settings_of_a_stack_are_named_and_nothing_is_applied(
    stage: Stage, byo_sandbox: Sandbox, kube: Callable[..., Kube], tmp_path: Path
) -> None:
    project = replace(stage, project=make(tmp_path / "project"))
    project.run("pulumi", "stack", "init", "sandbox")
    try:
        values = [part for path, value in WRONG.items() for part in ("--plaintext", f"plimsoll:{path}={value}")]
        project.run("pulumi", "config", "set-all", "--stack", "sandbox", "--path", *values)
        text = project.run("pulumi", "up", "--yes", "--skip-preview", "--stack", "sandbox", expect=None)
        for path in WRONG:
            assert f"{path}: " in text
        assert "Pulumi.sandbox.yaml" in text
        assert "Traceback" not in text
        assert kube(byo_sandbox).get("v1", "Namespace", "inference") is None
    finally:
        project.run("pulumi", "stack", "rm", "--yes", "--force", "sandbox")
