"""The commands of a guide, run as they stand there."""

import os
import re
import subprocess
import sys
from pathlib import Path

GUIDES = Path(__file__).resolve().parents[1] / "docs" / "guides"


def run_commands(text: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Runs every shell block of a guide's text, one after the other, in a folder. Each command must succeed."""
    script = "\n".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL))
    environ = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "COLUMNS": "200"}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done
