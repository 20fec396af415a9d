"""Projects that `plimsoll init`, `pulumi new` and `plimsoll adopt` write, with the pulumi command on a real cluster."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll.kube import RequestError
from plimsoll.project import ClusterKind, Language, project_files, write_project
from plimsoll.sandbox import Sandbox
from tests.awaiting import await_condition
from tests.e2e.cluster.kube import Kube
from tests.e2e.programs.stacks import PulumiFolder
from tests.pages import CHECKOUT
from tests.shared import shared

pytestmark = pytest.mark.e2e


def written(sandbox: Sandbox, folder: Path, kind: ClusterKind, language: Language = Language.YAML) -> PulumiFolder:
    write_project(folder, project_files(kind, "gpu-capacity", language=language))
    return in_this_environment(sandbox, folder)


def in_this_environment(sandbox: Sandbox, folder: Path) -> PulumiFolder:
    """The user's project, with the virtual environment of these tests."""
    (folder / ".venv").symlink_to(sys.prefix)
    state = folder / "state"
    state.mkdir()
    return PulumiFolder(sandbox, folder, PULUMI_BACKEND_URL=f"file://{state}")


def assert_previewed(project: PulumiFolder, stack: str, declares: str) -> None:
    """The stack passes a preview with the project's policies, and declares a component."""
    project.init(stack)
    output = project.preview(stack, "--policy-pack", "policies")
    assert f"plimsoll:index:{declares}" in output
    assert "gpu-capacity@" in output or "plimsoll@" in output, "the policies were run"


@pytest.mark.parametrize("kind", ClusterKind)
def test_a_new_project_passes_a_preview_with_its_policies(
    kind: ClusterKind, nap_sandbox: Sandbox, tmp_path: Path
) -> None:
    """One of them as a program; both languages declare the same (tests/projects)."""
    language = Language.PYTHON if kind is ClusterKind.SANDBOX else Language.YAML
    project = written(nap_sandbox, tmp_path / "gpu-capacity", kind, language)
    assert_previewed(project, "environment", "Environment")


def test_the_foundation_of_a_new_project_passes_a_preview_with_its_policies(
    nap_sandbox: Sandbox, tmp_path: Path
) -> None:
    """One for all kinds: the files that its preview reads are the same."""
    own = {"README.md", "requirements.txt", "stacks/Pulumi.environment.yaml", ".github/workflows/preview.yaml"}
    of_kinds = [project_files(kind, "gpu-capacity") for kind in ClusterKind]
    read = [{name: text for name, text in files.items() if name not in own} for files in of_kinds]
    assert "stacks/Pulumi.foundation.yaml" in read[0]
    assert all(files == read[0] for files in read)
    project = written(nap_sandbox, tmp_path / "gpu-capacity", ClusterKind.BYO)
    assert_previewed(project, "foundation", "Foundation")


def test_pulumi_new_takes_the_template(nap_sandbox: Sandbox, tmp_path: Path) -> None:
    folder = tmp_path / "from-template"
    folder.mkdir()
    project = PulumiFolder(nap_sandbox, folder)
    template = str(CHECKOUT / "templates" / "byo")
    project.pulumi("new", template, "--yes", "--generate-only", "--name", "own-name", "--description", "Ours")
    assert yaml.safe_load((folder / "Pulumi.yaml").read_text())["name"] == "own-name"
    config = yaml.safe_load((folder / "stacks" / "Pulumi.environment.yaml").read_text())["config"]
    assert config["layer"] == "environment"


@pytest.fixture
def made_by_others(nap_sandbox: Sandbox, kube: Any) -> Any:
    """A NodePool, two Queues, a class and a template of claims and a Workspace of KAITO as kubectl and charts create
    them; removed afterwards."""
    admin: Kube = kube(nap_sandbox)
    definition = yaml.safe_load(shared("crds/kaito.sh_workspaces.yaml").read_text())
    admin.apply(definition)
    objects = list(yaml.safe_load_all((Path(__file__).parent / "made_by_others.yaml").read_text()))

    def served() -> bool:
        try:
            admin.list("kaito.sh/v1beta1", "Workspace")
        except RequestError:
            return False
        return True

    await_condition(served, message="KAITO's Workspaces served")
    for each in objects:
        admin.apply(each)

    def versions() -> list[str]:
        found = []
        for each in objects:
            metadata = each["metadata"]
            live = admin.get(each["apiVersion"], each["kind"], metadata["name"], metadata.get("namespace", ""))
            assert live is not None
            metadata = live["metadata"]
            found.append(str((metadata["uid"], metadata.get("labels"), metadata.get("generation"), live.get("spec"))))
        return found

    yield versions
    for each in objects:
        metadata = each["metadata"]
        admin.delete(each["apiVersion"], each["kind"], metadata["name"], metadata.get("namespace", ""))


def test_objects_of_others_are_adopted_without_a_change(
    nap_sandbox: Sandbox, tmp_path: Path, made_by_others: Any
) -> None:
    project = written(nap_sandbox, tmp_path / "gpu-capacity", ClusterKind.BYO)
    before = made_by_others()
    command = [
        sys.executable,
        "-m",
        "plimsoll",
        "adopt",
        str(project.folder),
        "--kubeconfig",
        str(nap_sandbox.kubeconfig),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    project.init("objects")
    preview, update = project.up("objects").split("Updating (objects)")
    steps = changes(preview)
    # Of a custom resource, the plugin imports the metadata, and applies the rest as it is there.
    imported = steps.pop("to import")
    assert int(imported) >= 6
    assert steps.pop("to update") == imported
    assert set(steps) == {"to create"}, "the stack and its components: nothing of the cluster"
    assert changes(update).keys() == {"imported", "created", "updated"}
    assert made_by_others() == before
    shown = project.preview("objects", "--diff", "--expect-no-changes")
    assert "unchanged" in shown


def changes(output: str) -> dict[str, str]:
    """Numbers of resources by what is done with them, as pulumi prints them at the end."""
    return {done: number for number, done in re.findall(r"^    \S (\d+) (.+)$", output, re.MULTILINE)}
