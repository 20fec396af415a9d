"""The commands of the guide for KAI's users run as they stand there, and print what it shows."""

import os
import re
import subprocess
import sys
from pathlib import Path

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "kai.md"


def test_the_guides_commands_run(tmp_path: Path) -> None:
    text = GUIDE.read_text()
    script = "\n".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL))
    environ = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "COLUMNS": "200"}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    printed = [line.rstrip() for line in done.stdout.splitlines()]
    assert printed[0] == "nothing found"
    for shown in re.findall(r"```\n(.*?)```", re.sub(r"```sh\n.*?```", "", text, flags=re.DOTALL), re.DOTALL):
        for line in shown.splitlines():
            assert line.rstrip() in printed
