"""The commands of the guides that need a cluster run as they stand there, and do what the guides say."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from plimsoll.sandbox import Sandbox
from plimsoll.stacks import make
from tests.guides import CHECKOUT, DOCS, GUIDES, REFERENCE, run_commands

pytestmark = pytest.mark.e2e


@pytest.fixture
def project(sandbox_home: Path, tmp_path: Path) -> Iterator[Path]:
    """Where a reader stands: a checkout whose stack files may be written. The sandboxes of the guides go with it."""
    folder = make(tmp_path / "project")
    (folder / "examples").symlink_to(CHECKOUT / "examples")
    yield folder
    for name in ("default", "sharing"):
        Sandbox.named(name).down()


def test_the_tutorial(project: Path) -> None:
    done = run_commands((DOCS / "tutorial.md").read_text(), project, timeout=500)
    assert "limits.nodes of the Environment is 4, 2 in use, 6 more wanted" in done.stdout
    assert "gpu-fraction is 'half'" in done.stdout
    assert done.stdout.count("NVIDIA-A10G") >= 2, "two nodes for shares"
    assert "No resources found in plimsoll-triggers namespace." in done.stderr
    assert "No resources found\n" in done.stderr, "no NodeClaim is left"


def test_the_guide_to_demand(project: Path) -> None:
    """With the commands of the reference in the same cluster, before the guide takes it down."""
    guide, end = (GUIDES / "demand.md").read_text(), "plimsoll sandbox down\n```"
    assert guide.count(end) == 1
    reference = (REFERENCE / "demand.md").read_text()
    done = run_commands(guide.replace(end, f"```\n{reference}\n```sh\n{end}"), project, timeout=400)
    assert "2 nodes with 3 GPUs to ask for" in done.stdout
    assert done.stdout.count("smart-gpu-scheduler-") >= 4, "two triggers, planned and listed"
    assert "NodeReady" in done.stdout
    assert "No resources found in plimsoll-triggers namespace." in done.stderr
    assert (project / "gpus.html").exists()


def test_the_guide_to_sharing(project: Path) -> None:
    done = run_commands((GUIDES / "sharing.md").read_text(), project, timeout=400)
    assert "deployment.apps/models condition met" in done.stdout
    assert "a100-0" in done.stdout
    assert "1 without 0.5 of a GPU free" in done.stdout


def test_the_guide_to_the_sandbox(project: Path) -> None:
    done = run_commands((GUIDES / "sandbox.md").read_text(), project, timeout=400)
    assert "a-0" in done.stdout
    assert "node/a-0 annotated" in done.stdout
