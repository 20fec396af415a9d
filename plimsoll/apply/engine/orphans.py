"""Ends plugins that the engines of a killed writer left on this host."""

import contextlib
import os
from pathlib import Path

import psutil

from plimsoll.apply.engine.process import HOLDER, end_processes, is_running


def end_orphans(engine_home: Path) -> None:
    """Ends each process with this engine home whose writer and engine have ended.

    A plugin inherits the identity of its writer from the engine's environment. A running engine ends its plugins by
    itself.
    """
    orphans = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if not is_running(os.getsid(process.pid)):
                variables = process.environ()
                writer = variables.get(HOLDER)
                if writer and variables.get("PULUMI_HOME") == str(engine_home) and not is_writer_running(writer):
                    orphans.append(process)
    end_processes(orphans)


def is_writer_running(writer: str) -> bool:
    """Whether the process of an identity `hostname_pid_random` of this host is still running."""
    parts = writer.rsplit("_", 2)
    return len(parts) == 3 and parts[1].isdecimal() and psutil.pid_exists(int(parts[1]))
