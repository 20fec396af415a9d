"""mypy on programs of users."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.pages import CHECKOUT

_MOST_MEMORY = 6 << 20
"""KiB of addresses; mypy takes more than three times that for pulumi_kubernetes."""


def checked_by_mypy(programs: Sequence[Path], settings: Path = Path(os.devnull)) -> str:
    """What mypy prints of these programs, in one run because it takes seconds to start. They are no part of the
    checkout, and the settings are a user's: by default none."""
    options = ["--cache-dir", str(CHECKOUT / ".mypy_cache" / "programs"), "--no-pretty", "--config-file", str(settings)]
    command = [sys.executable, "-m", "mypy", *options, *sorted(map(str, programs))]
    bounded = ["sh", "-c", f'ulimit -v {_MOST_MEMORY} && exec "$@"', "sh", *command]
    done = subprocess.run(bounded, cwd=min(programs).parent, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr + done.stdout
    return done.stdout
