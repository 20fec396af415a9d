"""The command as a user runs it."""

import subprocess
import sys
from collections.abc import Callable

import pytest


@pytest.fixture
def run() -> Callable[..., "subprocess.CompletedProcess[str]"]:
    """`run("import", "kaito", file)`"""

    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "plimsoll", *arguments], capture_output=True, text=True, timeout=60, check=False
        )

    return run
