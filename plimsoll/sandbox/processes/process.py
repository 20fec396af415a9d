"""Process: how a process of a sandbox is started."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

# GOGC and GOMEMLIMIT: how a Go program trades memory for time, https://pkg.go.dev/runtime.
_KEPT: Final = ("PATH", "HOME", "LANG", "TMPDIR", "PYTHONPATH", "GOGC", "GOMEMLIMIT")


@dataclass(frozen=True)
class Process:
    """A process: its command, and the URL that returns 200 once it is ready."""

    name: str
    command: tuple[str, ...]
    port: int | None = None
    ready_url: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)


def environment(extra: Mapping[str, str]) -> dict[str, str]:
    """The complete environment of a process: `extra`, and of the caller's environment only what programs need."""
    kept = {key: os.environ[key] for key in _KEPT if key in os.environ}
    return kept | dict(extra)
