"""The commands of the guide for KAI's users run as they stand there, and print what it shows."""

import re
from pathlib import Path

from tests.guides import GUIDES, run_commands


def test_the_guides_commands_run(tmp_path: Path) -> None:
    text = (GUIDES / "kai.md").read_text()
    done = run_commands(text, tmp_path)
    printed = [line.rstrip() for line in done.stdout.splitlines()]
    assert printed[0] == "nothing found"
    for shown in re.findall(r"```\n(.*?)```", re.sub(r"```sh\n.*?```", "", text, flags=re.DOTALL), re.DOTALL):
        for line in shown.splitlines():
            assert line.rstrip() in printed
