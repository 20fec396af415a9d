"""The commands of the guide to packing run as they stand there, and say what it says."""

import re
from pathlib import Path

from tests.guides import CHECKOUT, GUIDES, run_commands


def test_the_guides_commands_run(tmp_path: Path) -> None:
    (tmp_path / "bench").symlink_to(CHECKOUT / "bench")
    done = run_commands((GUIDES / "packing.md").read_text(), tmp_path)
    (line,) = re.findall(r"^ *pods +(.*)$", done.stdout, re.MULTILINE)
    shares, kai, holds, _, ours, bound, *_ = line.split()
    assert (shares, kai, holds, ours, float(bound)) == ("4", "2", "3", "3", 3.0)
    assert '"600": 1.0' in done.stdout
