"""The commands of a guide, run as they stand there.

Blocks marked `sh` are run, all of a text in one shell; those marked `console` are only to be read. A command that says
`# exit code 2` must end with it.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
DOCS = CHECKOUT / "docs"
GUIDES = DOCS / "guides"
REFERENCE = DOCS / "reference"

_BLOCK = re.compile(r"^( *)```sh\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
_EXPECTED = re.compile(r"^(.*?)\s+# exit code (\d+)\b.*$", re.MULTILINE)


def commands_of(text: str) -> str:
    """All of them as one script."""
    blocks = [re.sub(f"^{indent}", "", block, flags=re.MULTILINE) for indent, block in _BLOCK.findall(text)]
    return _EXPECTED.sub(r"code=0; \1 || code=$?; test $code -eq \2", "\n".join(blocks))


def run_commands(text: str, folder: Path, timeout: float = 120) -> "subprocess.CompletedProcess[str]":
    """Runs every shell block of a guide's text, one after the other, in a folder. Each command must succeed."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    # `uv run` in any folder is that of the checkout, as it is installed.
    environ = {**os.environ, "PATH": path, "COLUMNS": "200", "UV_PROJECT": str(CHECKOUT), "UV_NO_SYNC": "1"}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", f"trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n{commands_of(text)}"],
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done
