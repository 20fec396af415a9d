"""Child: a process that never outlives its parent."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import psutil

from plimsoll.lifetime import dies_with


class Child:
    """A running process.

    It must be created in the main thread of a process without other threads: the kernel ties the life of a child to the
    thread that forked it, and code between fork and exec is safe only with a single thread.
    """

    def __init__(self, name: str, command: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        self.name: Final = name
        self.log: Final = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=dict(environment),
                cwd=log.parent,
                start_new_session=True,
                # Safe, because this process has a single thread, see above.
                preexec_fn=dies_with(os.getpid()),  # noqa: PLW1509
            )
        self.pid: Final = self._process.pid
        self.created: Final = psutil.Process(self.pid).create_time()
        self._ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._handle = os.pidfd_open(self.pid)
        asyncio.get_running_loop().add_reader(self._handle, self._reap)

    def _reap(self) -> None:
        asyncio.get_running_loop().remove_reader(self._handle)
        os.close(self._handle)
        self._ended.set_result(self._process.wait())

    @property
    def exit_code(self) -> int | None:
        """Exit code; None while it runs, negative for the signal that ended it."""
        return self._ended.result() if self._ended.done() else None

    async def wait(self) -> int:
        """Waits for its end. Returns the exit code."""
        return await asyncio.shield(self._ended)

    async def stop(self, timeout_seconds: float) -> None:
        """Sends SIGTERM, and SIGKILL if it has not ended after `timeout_seconds`."""
        if self.exit_code is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                await asyncio.wait_for(self.wait(), timeout_seconds)
            except TimeoutError:
                self._process.send_signal(signal.SIGKILL)
                await self.wait()

    def log_tail(self, lines: int = 12) -> str:
        """The last lines of its log."""
        with self.log.open("rb") as log:
            log.seek(0, os.SEEK_END)
            log.seek(max(0, log.tell() - 16384))
            return "\n".join(line[:400] for line in log.read().decode(errors="replace").splitlines()[-lines:])
