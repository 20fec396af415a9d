"""The commands of the guide for KAITO's users run as they stand there."""

import os
import re
import subprocess
import sys
from pathlib import Path

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "kaito.md"


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
    (warning,) = re.findall(r"```\n(warning: .*?)\n```", text, re.DOTALL)
    assert done.stderr.strip() == warning
    assert "accepted" in done.stdout
    assert "+ NodeClaim workspace-phi-4-mini-" in done.stdout
