"""A further program beside those of a sandbox."""

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def program(command: Sequence[str], environ: Mapping[str, str], log: Path) -> Iterator[None]:
    """The program, which is terminated at the end. It writes to the log."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=environ, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        yield
    finally:
        process.terminate()
        process.wait(timeout=120)
