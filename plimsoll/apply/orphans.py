"""Plugins that a killed writer's engines left on this host."""

import contextlib
import os
from pathlib import Path

import psutil

from plimsoll.apply.engine import HOLDER, end_processes, is_running
from plimsoll.apply.locks import lives


def end_orphans(engine_home: Path) -> None:
    """Ends each process whose writer is dead, and whose engine is too, of those that had this home for their engines.

    Who started a process is in its environment, which plugins have from their engine. An engine that still lives ends
    its plugins itself.
    """
    orphans = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if not is_running(os.getsid(process.pid)):
                variables = process.environ()
                writer = variables.get(HOLDER)
                if writer and variables.get("PULUMI_HOME") == str(engine_home) and not lives(writer):
                    orphans.append(process)
    end_processes(orphans)
