"""mypy on programs of users."""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from tests.pages import CHECKOUT


def checked_by_mypy(programs: Iterable[Path]) -> str:
    """What mypy prints of these programs, in one run because it takes seconds to start, as for the running Python, for
    which the packages are installed."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    options = ["--cache-dir", str(CHECKOUT / ".mypy_cache"), "--no-pretty", "--python-version", version]
    command = [sys.executable, "-m", "mypy", *options, *sorted(map(str, programs))]
    return subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False).stdout
