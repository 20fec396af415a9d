"""The commands of the pages that start a sandbox run as printed, with the documented results."""

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from plimsoll.sandbox import Sandbox
from tests.pages import copy_of_checkout, pages

pytestmark = pytest.mark.e2e

Done = subprocess.CompletedProcess[str]


def of_the_tutorial(done: Done) -> None:
    assert "limits.nodes of the Environment is 4, 2 are in use, and 6 more" in done.stdout
    assert "gpu-fraction is 'half'" in done.stdout
    assert done.stdout.count("NVIDIA-A10G") >= 2, "two nodes for shares"
    assert "No resources found in plimsoll-triggers namespace." in done.stderr
    assert "No resources found\n" in done.stderr, "no NodeClaim is left"


def of_demand(done: Done) -> None:
    assert "2 nodes with 3 GPUs to request" in done.stdout
    assert done.stdout.count("smart-gpu-scheduler-") >= 4, "two triggers, planned and listed"
    assert "NodeReady" in done.stdout
    assert "No resources found in plimsoll-triggers namespace." in done.stderr


def of_claims(done: Done) -> None:
    assert re.search(r"claim default/train-gpus\S+ +3 +0 +default/train", done.stdout)
    assert re.search(r" 1 device free +0 +1", done.stdout)


def of_sharing(done: Done) -> None:
    assert "deployment.apps/models condition met" in done.stdout
    assert "a100-0" in done.stdout
    assert "1 without 0.5 of a GPU free" in done.stdout


def of_the_sandbox(done: Done) -> None:
    assert "a-0" in done.stdout
    assert "node/a-0 annotated" in done.stdout


def assert_whole_alone(python: Path) -> None:
    """The wheel works together with a user's own packages, and has every command."""
    done = subprocess.run([python, "-c", _ALONE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


_ALONE = """
from importlib.metadata import files
from typer.testing import CliRunner
from plimsoll.cli import COMMANDS, app
installed = files("plimsoll-gpu")
names = {path.parts[0] for path in installed if path.parts[0] != ".."}
assert {name for name in names if not name.endswith(".dist-info")} == {"plimsoll"}, names
assert any(str(path) == "plimsoll/py.typed" for path in installed)
for command in COMMANDS:
    done = CliRunner().invoke(app, [command, "--help"])
    assert done.exit_code == 0, (command, done.output)
import sys
assert not {"moto", "pytest", "hypothesis"} & set(sys.modules)
"""


def of_pulumi(done: Done) -> None:
    assert done.stdout.startswith("plimsoll 0."), "the package alone is installed"
    assert "wrote stacks/Pulumi.objects.yaml" in done.stdout
    assert re.search(r"= \d+ imported", done.stdout)
    assert "quota 8" in done.stdout, "what somebody lowered is taken back"
    assert "[secret]" in done.stdout
    assert "tuned-parameters" not in done.stdout
    assert "plimsoll:index:Queue training create" in " ".join(done.stdout.split())


SAY: dict[str, Callable[[Done], None]] = {
    "docs/tutorial.md": of_the_tutorial,
    "docs/guides/demand.md": of_demand,
    "docs/guides/dra.md": of_claims,
    "docs/guides/pulumi.md": of_pulumi,
    "docs/guides/sandbox.md": of_the_sandbox,
    "docs/guides/sharing.md": of_sharing,
}
PAGES = {str(page): page for page in pages() if page.needs_sandbox and str(page) != "docs/guides/trainer.md"}
"""All pages except the one that test_trainer.py runs."""


@pytest.fixture
def checkout(sandbox_home: Path, tmp_path: Path) -> Iterator[Path]:
    """A reader's working directory. The sandboxes of the pages are removed with it."""
    yield copy_of_checkout(tmp_path / "plimsoll")
    for name in ("default", "sharing"):
        Sandbox.named(name).down()


@pytest.mark.parametrize("name", PAGES)
def test_the_commands_of_a_page_run(name: str, checkout: Path) -> None:
    SAY[name](PAGES[name].run(checkout, timeout=500))
    if name == "docs/guides/pulumi.md":
        assert_whole_alone(checkout.with_name("gpu-capacity") / ".venv" / "bin" / "python")


def test_every_page_has_expected_results() -> None:
    assert PAGES.keys() == SAY.keys()
