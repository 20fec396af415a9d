"""`plimsoll run` as a separate process with the account of a controller."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from plimsoll.sandbox import Sandbox


class Controller:
    """A running controller; its log is in `log`."""

    def __init__(self, sandbox: Sandbox, folder: Path, *options: str, hostname: str = "") -> None:
        self.log = folder / f"controller-{os.urandom(3).hex()}.log"
        environ = {**os.environ, **sandbox.environ("controller"), "PLIMSOLL_WORK_FOLDER": str(folder / "work")}
        command = [sys.executable, "-m", "plimsoll", "run", *options]
        if hostname:
            command = ["unshare", "--uts", "sh", "-c", f'hostname {hostname} && exec "$@"', "sh", *command]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command, env=environ, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def text(self) -> str:
        return self.log.read_text()

    def kill(self) -> None:
        """Sends SIGKILL, as when a node loses power."""
        self.process.kill()
        self.process.wait(timeout=30)

    def stop(self) -> int:
        """Sends SIGTERM and returns the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60)


@contextmanager
def controller(sandbox: Sandbox, folder: Path, *options: str, hostname: str = "") -> Iterator[Controller]:
    """A controller that is stopped when the context ends. Its log is printed if the test fails."""
    running = Controller(sandbox, folder, *options, hostname=hostname)
    try:
        yield running
    finally:
        running.stop()
        print(running.text()[-6000:])  # noqa: T201 - pytest shows it where a test fails
