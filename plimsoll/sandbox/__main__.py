"""The supervisor process of a sandbox: `python -m plimsoll.sandbox NAME CHANNEL detached|with-caller fresh|recovered`.

CHANNEL is the number of a socket that it inherits from `Sandbox.up`, see `supervisor`.
"""

import asyncio
import fcntl
import socket
import sys

import structlog

from plimsoll.sandbox import state
from plimsoll.sandbox.folder import Folder
from plimsoll.sandbox.processes import Supervisor


def main() -> None:
    """Runs until the sandbox is stopped, and then removes its folder if it is of no further use."""
    name, channel = sys.argv[1], int(sys.argv[2])
    stop_with_caller, fresh = sys.argv[3] == "with-caller", sys.argv[4] == "fresh"
    structlog.configure(logger_factory=structlog.WriteLoggerFactory(sys.stderr))
    folder = Folder(name)
    settings = state.read(folder.settings, state.Settings)
    assert settings is not None, "the caller writes them first"
    with folder.supervisor_lock.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

        async def run() -> bool:
            with socket.socket(fileno=channel) as caller:
                return await Supervisor(folder, settings, caller, stop_with_caller=stop_with_caller).run()

        keep = asyncio.run(run())
        if not keep and (fresh or stop_with_caller):
            folder.remove()


if __name__ == "__main__":
    main()
