"""The projects that `plimsoll init` writes."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from plimsoll.cli import app
from plimsoll.cli.tables.diff import MARKER
from plimsoll.distribution import NAME, version
from plimsoll.errors import PlimsollError
from plimsoll.model.api import DemandProvisioner
from plimsoll.project import ENVIRONMENT, ClusterKind, project_files, template_files, write_project
from plimsoll.stacks import settings_of
from tests.pages import CHECKOUT


def config(files: dict[str, str]) -> dict[str, Any]:
    parsed: dict[str, Any] = yaml.safe_load(files[ENVIRONMENT])["config"]
    return parsed


@pytest.mark.parametrize("kind", ClusterKind)
def test_the_settings_of_every_kind_are_valid(kind: ClusterKind) -> None:
    settings = settings_of(config(project_files(kind, "gpu-capacity")))
    assert settings.environment.auto_provisioning == (kind is not ClusterKind.BYO)
    assert bool(settings.node_pools) == (kind is not ClusterKind.BYO)


@pytest.mark.parametrize("kind", ClusterKind)
@pytest.mark.parametrize("demand", [True, False])
def test_nodes_are_requested_for_demand_where_an_autoscaler_creates_them_unless_refused(
    kind: ClusterKind, demand: bool
) -> None:
    requested = settings_of(config(project_files(kind, "gpu-capacity", demand=demand))).environment.demand.provisioner
    assert (requested is DemandProvisioner.TRIGGER_POD) == (demand and kind is not ClusterKind.BYO)


@pytest.mark.parametrize(("options", "provisioner"), [([], "trigger-pod"), (["--no-demand"], "none")])
def test_the_command_requests_nodes_for_demand_by_default(tmp_path: Path, options: list[str], provisioner: str) -> None:
    done = CliRunner().invoke(app, ["init", str(tmp_path / "p"), "--on", "aws", *options])
    assert done.exit_code == 0, done.output
    written = yaml.safe_load((tmp_path / "p" / ENVIRONMENT).read_text())["config"]["environment"]
    assert written["demand"] == {"provisioner": provisioner}


def test_demand_is_no_question_where_no_node_is_created(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["init", str(tmp_path / "p"), "--on", "byo", "--demand"])
    assert "--demand has no effect with --on byo" in str(done.exception)


PREVIEW = ".github/workflows/preview.yaml"
POST = "pr comment 1 --body-file diff.md"
PATCH = "api --silent --method PATCH repos/o/r/issues/comments/7 --field body=@diff.md"


@pytest.mark.parametrize(("code", "there", "done"), [(0, "", POST), (2, "", POST), (2, "7", PATCH), (1, "7", "")])
def test_a_pull_request_gets_what_its_workloads_mean(tmp_path: Path, code: int, there: str, done: str) -> None:
    """In one comment that each push updates; also where pods have no capacity, which is exit code 2, and not where the
    command fails."""
    workflow = yaml.safe_load(project_files(ClusterKind.AWS, "gpu-capacity")[".github/workflows/preview.yaml"])
    (step,) = (each for each in workflow["jobs"]["pulumi"]["steps"] if "plimsoll diff" in each.get("run", ""))
    assert "matrix.stack == 'environment'" in step["if"]
    assert "${{" not in step["run"], "nothing of the pull request becomes a part of the script"
    assert MARKER in step["run"]
    gh = f'case "$*" in "api --paginate"*) echo "$*" > looked; printf %s "{there}" ;; *) echo "$*" > done ;; esac'
    for path, script in ((".venv/bin/plimsoll", f"exit {code}"), ("gh", gh)):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / path).chmod(0o755)
    environ = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "NUMBER": "1", "GITHUB_REPOSITORY": "o/r"}
    ran = subprocess.run(["bash", "-e", "-c", step["run"]], cwd=tmp_path, env=environ, check=False)
    assert (ran.returncode == 0) == bool(done)
    assert ((tmp_path / "done").read_text().strip() if (tmp_path / "done").exists() else "") == done
    if done:
        assert "api --paginate repos/o/r/issues/1/comments" in (tmp_path / "looked").read_text()


def test_only_a_comment_of_the_job_itself_is_updated() -> None:
    """Anyone may write the line by which it is found."""
    assert 'select(.user.login == "github-actions[bot]"' in project_files(ClusterKind.AWS, "p")[PREVIEW]


@pytest.mark.parametrize("kind", ClusterKind)
def test_there_are_no_placeholders(kind: ClusterKind) -> None:
    for path, text in project_files(kind, "gpu-capacity").items():
        assert not {"PROJECT_NAME", "PROJECT_DESCRIPTION", "PLIMSOLL_VERSION", "KIND_SUMMARY"} & set(text.split()), path


def test_a_project_is_written_and_never_over_another(tmp_path: Path) -> None:
    runner = CliRunner()
    done = runner.invoke(app, ["init", str(tmp_path / "gpu-capacity"), "--on", "aws"])
    assert done.exit_code == 0, done.output
    assert yaml.safe_load((tmp_path / "gpu-capacity" / "Pulumi.yaml").read_text())["name"] == "gpu-capacity"
    again = runner.invoke(app, ["init", str(tmp_path / "gpu-capacity"), "--on", "aws"])
    assert isinstance(again.exception, PlimsollError)
    assert "these files exist already" in str(again.exception)


def test_without_a_terminal_the_kind_is_required(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["init", str(tmp_path / "gpu-capacity")])
    assert "--on is missing" in str(done.exception)


@pytest.mark.parametrize("name", ["GPU", "gpu_capacity", "-gpu", "g" * 64])
def test_a_name_that_pulumi_or_kubernetes_would_refuse_is_refused(name: str) -> None:
    with pytest.raises(PlimsollError, match="is not a valid project name"):
        project_files(ClusterKind.BYO, name)


@pytest.mark.parametrize("name", ["true", "123", "1e3", "null"])
def test_a_name_that_looks_like_another_yaml_type_stays_a_string(name: str) -> None:
    files = project_files(ClusterKind.BYO, name)
    assert yaml.safe_load(files["Pulumi.yaml"])["name"] == name
    assert yaml.safe_load(files["policies/PulumiPolicy.yaml"])["name"] == name
    assert settings_of(config(files)).environment.name == name


def test_a_file_at_the_path_of_the_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "within"):
        with pytest.raises(PlimsollError, match="file: is not a folder"):
            write_project(folder, {"a": "1"})


def test_the_committed_template_is_the_one_that_is_written() -> None:
    """`plimsoll init templates/byo --on byo --template --force` writes it anew."""
    folder = CHECKOUT / "templates" / "byo"
    written = template_files(ClusterKind.BYO)
    assert {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} == set(written)
    assert all((folder / path).read_text() == text for path, text in written.items())


@pytest.mark.parametrize(
    "text",
    [
        project_files(ClusterKind.BYO, "gpu-capacity")[".github/workflows/preview.yaml"],
        (CHECKOUT / "examples" / "gitops" / "ci.yaml").read_text(),
    ],
    ids=["init", "gitops"],
)
def test_secrets_with_any_characters_reach_their_files_in_ci(text: str, tmp_path: Path) -> None:
    """The runner puts the value of each expression into the script, or into the step's environment."""
    secret = 'it\'s a "$HOME" `id` \\ secret\nof two lines'
    jobs = yaml.safe_load(text)["jobs"].values()
    steps = [each for job in jobs for each in job["steps"] if "/dev/stdin" in each.get("run", "")]
    assert steps
    for step in steps:
        script = re.sub(r"\$\{\{.*?\}\}", lambda _: secret, step["run"])
        environment = {name: secret for name, value in step.get("env", {}).items() if "secrets." in value}
        subprocess.run(["bash", "-e", "-c", script], cwd=tmp_path, env={**os.environ, **environment}, check=True)
        for name in re.findall(r"/dev/stdin (\w+)", step["run"]):
            assert (tmp_path / name).read_text() == f"{secret}\n"


def test_updates_of_a_stack_in_ci_wait_for_each_other() -> None:
    workflow = yaml.safe_load(project_files(ClusterKind.AWS, "gpu-capacity")[".github/workflows/preview.yaml"])
    # Of two runs at once the second fails at the lock, and one that is cancelled leaves it.
    assert workflow["concurrency"] == {"group": "pulumi-${{ github.ref }}", "cancel-in-progress": False}


def test_replacing_files_requires_force(tmp_path: Path) -> None:
    write_project(tmp_path, {"a": "1"})
    with pytest.raises(PlimsollError):
        write_project(tmp_path, {"a": "2"})
    write_project(tmp_path, {"a": "2"}, replace=True)
    assert (tmp_path / "a").read_text() == "2"


def test_a_project_requires_the_published_version_and_the_extras_that_it_needs() -> None:
    files = project_files(ClusterKind.AWS, "gpu-capacity")
    assert files["requirements.txt"] == f"{NAME}[aws,controller]=={version()}\n"
    assert f"\n{NAME}=={version()}\n" in files["policies/requirements.txt"]
    files = project_files(ClusterKind.SANDBOX, "gpu-capacity")
    assert files["requirements.txt"] == f"{NAME}[controller,sandbox]=={version()}\n", "it runs the cluster, too"


def test_a_project_of_a_wheel_has_it_and_requires_it(tmp_path: Path) -> None:
    wheel = tmp_path / "plimsoll_gpu-9-py3-none-any.whl"
    wheel.write_text("a wheel")
    folder = tmp_path / "gpu-capacity"

    done = CliRunner().invoke(app, ["init", str(folder), "--on", "byo", "--wheel", str(wheel)])

    assert done.exit_code == 0, done.output
    assert (folder / wheel.name).read_text() == "a wheel"
    assert (folder / "requirements.txt").read_text() == f"./{wheel.name}[controller]\n"
    assert (folder / "policies/requirements.txt").read_text().endswith(f"\n../{wheel.name}\n")


@pytest.mark.parametrize("name", ["plimsoll-0.3.0-py3-none-any.whl", "plimsoll_gpu-9.tar.gz", "missing.whl"])
def test_what_is_no_wheel_of_this_package_is_refused(tmp_path: Path, name: str) -> None:
    if name != "missing.whl":
        (tmp_path / name).touch()

    done = CliRunner().invoke(app, ["init", str(tmp_path / "p"), "--on", "byo", "--wheel", str(tmp_path / name)])

    assert "wheel" in str(done.exception)
    assert not (tmp_path / "p").exists()


@pytest.mark.parametrize("kind", ClusterKind)
def test_the_job_of_a_project_has_no_more_rights_than_it_needs_and_no_key_of_a_cloud(kind: ClusterKind) -> None:
    text = project_files(kind, "gpu-capacity")[PREVIEW]
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {}
    by_oidc = {"id-token": "write"} if kind.node_class else {}
    assert workflow["jobs"]["pulumi"]["permissions"] == {"contents": "read", "pull-requests": "write", **by_oidc}
    steps = workflow["jobs"]["pulumi"]["steps"]
    used = [step["uses"] for step in steps if "uses" in step]
    assert all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", each) for each in used)
    stored = set(re.findall(r"secrets\.(\w+)", text))
    assert stored == {"PULUMI_CONFIG_PASSPHRASE"} | (set() if kind.node_class else {"KUBECONFIG"})


@pytest.mark.parametrize("kind", ClusterKind)
def test_the_node_class_of_the_settings_is_checked_before_an_update(kind: ClusterKind) -> None:
    files = project_files(kind, "gpu-capacity")
    environment = config(files)["environment"]
    named = environment.get("nodeClaims", {}).get("nodeClassRef", {})
    checks = [step["run"] for step in yaml.safe_load(files[PREVIEW])["jobs"]["pulumi"]["steps"] if "run" in step]
    if not kind.node_class:
        assert not any("nodeclass" in each for each in checks)
        assert named.get("kind", "KWOKNodeClass") == "KWOKNodeClass"
        return
    assert kind.node_class == f"{named['kind'].lower()}es.{named['group']}"
    assert f"kubectl get {kind.node_class} {named['name']}" in checks
    assert f"kubectl get {kind.node_class} {named['name']}\n" in files["README.md"]


def answered(folder: Path, answers: str) -> "subprocess.CompletedProcess[bytes]":
    """`plimsoll init` at a terminal."""
    main, terminal = os.openpty()
    try:
        os.write(main, answers.encode())
        command = [sys.executable, "-m", "plimsoll", "init", str(folder)]
        return subprocess.run(command, stdin=terminal, capture_output=True, check=True, cwd=CHECKOUT, timeout=300)
    finally:
        os.close(main)
        os.close(terminal)


@pytest.mark.parametrize(
    ("answers", "chosen"),
    [
        ("aws\ny\npython\n", "--on aws --language python --demand"),
        ("gcp\nn\n\n", "--on gcp --language yaml --no-demand"),
        ("\n\n", "--on byo --language yaml"),
    ],
)
def test_at_a_terminal_each_choice_is_a_question_with_a_default(tmp_path: Path, answers: str, chosen: str) -> None:
    printed = answered(tmp_path / "p", answers).stdout.decode()
    assert f"chosen: {chosen}\n" in printed
    assert "What declares the environment" in printed
    assert ("Request nodes" in printed) == ("byo" not in chosen)


WORKFLOWS = {
    **{path.name: path.read_text() for path in sorted((CHECKOUT / ".github" / "workflows").glob("*.yaml"))},
    "gitops.yaml": (CHECKOUT / "examples" / "gitops" / "ci.yaml").read_text(),
    **{f"init-{kind}.yaml": project_files(kind, "p")[PREVIEW] for kind in ClusterKind},
}
ACTIONLINT = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12"


@pytest.mark.skipif(shutil.which("go") is None, reason="actionlint is a Go module, and no go is on PATH")
def test_actionlint_finds_nothing_in_the_workflows(tmp_path: Path) -> None:
    for name, text in WORKFLOWS.items():
        (tmp_path / name).write_text(text)
    wrong = WORKFLOWS["init-byo.yaml"].replace("runs-on: ubuntu-latest", "runs-on: ubuntu-latets")
    (tmp_path / "wrong.yaml").write_text(wrong)
    found = subprocess.run(
        ["go", "run", ACTIONLINT, "-oneline", *sorted(each.name for each in tmp_path.glob("*.yaml"))],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=580,
    )  # fmt: skip
    assert found.returncode == 1, found.stderr
    (line,) = found.stdout.splitlines()
    assert line.startswith("wrong.yaml:")
    assert "ubuntu-latets" in line
