"""How a process of a sandbox is started."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Process:
    """How one process is started, and how it is seen to be ready: a URL that answers 200, or a file that appears."""

    name: str
    command: tuple[str, ...]
    port: int | None = None
    ready_url: str | None = None
    ready_file: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict)


def environment(extra: Mapping[str, str]) -> dict[str, str]:
    """A process's whole environment: of the caller's only what a program cannot do without."""
    kept = {key: os.environ[key] for key in ("PATH", "HOME", "LANG", "TMPDIR", "PYTHONPATH") if key in os.environ}
    return kept | dict(extra)
