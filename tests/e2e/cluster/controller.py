"""`plimsoll run` as a separate process with the account of a controller."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from plimsoll.sandbox import Sandbox
from tests.pages import CHECKOUT


class Controller:
    """A running controller; its log is in `log`."""

    def __init__(
        self, sandbox: Sandbox, folder: Path, *options: str, hostname: str = "", release: Path = CHECKOUT
    ) -> None:
        self.log = folder / f"controller-{os.urandom(3).hex()}.log"
        work = {"PLIMSOLL_WORK_FOLDER": str(folder / "work"), "PYTHONPATH": str(release)}
        environ = {**os.environ, **sandbox.environ("controller"), **work}
        command = [sys.executable, "-m", "plimsoll", "run", *options]
        if hostname:
            command = ["unshare", "--uts", "sh", "-c", f'hostname {hostname} && exec "$@"', "sh", *command]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command,
                cwd=release,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def text(self) -> str:
        return self.log.read_text()

    def kill(self) -> None:
        """Sends SIGKILL, as when a node loses power."""
        self.process.kill()
        self.process.wait(timeout=120)

    def stop(self) -> int:
        """Sends SIGTERM and returns the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=120)


@contextmanager
def controller(
    sandbox: Sandbox, folder: Path, *options: str, hostname: str = "", release: Path = CHECKOUT
) -> Iterator[Controller]:
    """A controller that is stopped when the context ends. Its log is printed if the test fails. `release` is a folder
    that has the package, such as that of `another_release`."""
    running = Controller(sandbox, folder, *options, hostname=hostname, release=release)
    try:
        yield running
    finally:
        running.stop()
        print(running.text()[-6000:])  # noqa: T201 - pytest shows it where a test fails


def another_release(version: str, folder: Path) -> Path:
    """What the wheel of this checkout installs, built with another version."""
    source = folder / "source"
    for name in ("plimsoll", "tools"):
        shutil.copytree(CHECKOUT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("README.md", "LICENSE"):
        shutil.copy2(CHECKOUT / name, source / name)
    project = (CHECKOUT / "pyproject.toml").read_text()
    own = next(line for line in project.splitlines() if line.startswith("version = "))
    (source / "pyproject.toml").write_text(project.replace(own, f'version = "{version}"', 1))
    uv = shutil.which("uv") or str(CHECKOUT / ".uv" / "bin" / "uv")
    subprocess.run([uv, "build", "--quiet", "--wheel", "--out-dir", str(folder / "dist"), str(source)], check=True)
    (wheel,) = (folder / "dist").glob("*.whl")
    shutil.unpack_archive(wheel, folder / "site", "zip")
    return folder / "site"
