"""The supervisor process of a sandbox: `python -m plimsoll.sandbox NAME CHANNEL detached|with-caller fresh|recovered`.

It inherits from `Sandbox.up` the lock `Folder.supervisor_lock`, and a socket with the number CHANNEL, see `supervisor`.
"""

import asyncio
import io
import socket
import sys
from contextlib import suppress

import structlog

from plimsoll.sandbox import state
from plimsoll.sandbox.folder import Folder
from plimsoll.sandbox.processes import Supervisor


class _Log(io.TextIOWrapper):
    """Loses what a full disk has no room for: the processes are stopped without it, too."""

    def write(self, text: str) -> int:
        with suppress(OSError):
            super().write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            super().flush()


def main() -> None:
    """Runs until the sandbox is stopped, and then removes its folder if it is of no further use."""
    name, channel = sys.argv[1], int(sys.argv[2])
    stop_with_caller, fresh = sys.argv[3] == "with-caller", sys.argv[4] == "fresh"
    log = _Log(sys.stderr.buffer, encoding="utf-8", errors="backslashreplace")
    structlog.configure(logger_factory=structlog.WriteLoggerFactory(log))
    folder = Folder(name)
    settings = state.read(folder.settings, state.Settings)
    assert settings is not None, "the caller writes them first"

    async def run() -> bool:
        with socket.socket(fileno=channel) as caller:
            return await Supervisor(folder, settings, caller, stop_with_caller=stop_with_caller).run()

    keep = asyncio.run(run())
    if not keep and (fresh or stop_with_caller):
        folder.remove()


if __name__ == "__main__":
    main()
