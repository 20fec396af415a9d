"""The commands of the README and of guides that need no cluster run as they stand there, and print what is shown."""

import re
from pathlib import Path

import pytest

from tests.guides import CHECKOUT, GUIDES, run_commands


def test_the_readmes_commands_run() -> None:
    text = (CHECKOUT / "README.md").read_text()
    done = run_commands(text, CHECKOUT)
    (shown,) = re.findall(r"```\n(  \+ 3 x g6.*?)```", text, re.DOTALL)
    printed = [" ".join(line.split()) for line in done.stdout.splitlines()]
    for line in shown.splitlines():
        beginning = " ".join(line.split()).removesuffix("...")
        assert any(each.startswith(beginning) for each in printed), line


@pytest.mark.parametrize("guide", ["plan-from-files.md", "policies.md"])
def test_the_guides_commands_run(tmp_path: Path, guide: str) -> None:
    (tmp_path / "examples").symlink_to(CHECKOUT / "examples")
    assert run_commands((GUIDES / guide).read_text(), tmp_path).stdout
