"""The commands of the guide for KAITO's users run as they stand there."""

import re
from pathlib import Path

from tests.guides import GUIDES, run_commands


def test_the_guides_commands_run(tmp_path: Path) -> None:
    text = (GUIDES / "kaito.md").read_text()
    done = run_commands(text, tmp_path)
    (warning,) = re.findall(r"```\n(warning: .*?)\n```", text, re.DOTALL)
    assert done.stderr.strip() == warning
    assert "accepted" in done.stdout
    assert "+ NodeClaim workspace-phi-4-mini-" in done.stdout
