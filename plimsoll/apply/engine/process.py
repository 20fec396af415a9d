"""The pulumi CLI as processes that can be interrupted."""

import contextlib
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from pulumi.automation import CommandResult, PulumiCommand
from pulumi.automation.errors import create_command_error
from semver import VersionInfo

from plimsoll.apply.errors import EngineMissingError

MINIMUM_VERSION: Final = VersionInfo(3, 200, 0)
"""The first with an event log over gRPC for inline programs."""
HOLDER: Final = "PLIMSOLL_HOLDER"
"""Environment variable of the engine's processes: the Lease identity of the writer that started them."""
_UNSET: Final = "PULUMI_CONFIG_PASSPHRASE"
"""Would override the passphrase file."""

_INSTALL_HINT: Final = "install it (`plimsoll sandbox install`, or Pulumi's own installer), or name it with --pulumi"


def find_pulumi(path: Path | None) -> tuple[Path, VersionInfo]:
    """The CLI and its version. Raises EngineMissingError."""
    found = shutil.which(str(path) if path is not None else "pulumi")
    if found is None:
        raise EngineMissingError(f"{path or 'pulumi'}: no such program", _INSTALL_HINT)
    try:
        answer = subprocess.run(
            [found, "version"],
            env={**os.environ, "PULUMI_SKIP_UPDATE_CHECK": "true"},
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        version = VersionInfo.parse(answer.stdout.strip().removeprefix("v"))
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise EngineMissingError(f"{found} does not say its version: {error}", _INSTALL_HINT) from None
    if version < MINIMUM_VERSION:
        raise EngineMissingError(f"{found} is version {version}; {MINIMUM_VERSION} is needed", _INSTALL_HINT)
    return Path(found), version


class Engine(PulumiCommand):
    """The CLI for one stack: at most one process at a time, in a session of its own.

    The library's runs the process in the foreground of the caller and keeps its id to itself, so that a signal to
    the caller strands it.
    """

    def __init__(self, path: Path, version: VersionInfo) -> None:
        # The library's constructor would start the CLI once more, to ask for the version that is known already.
        self.command = str(path)
        self.version = version
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None

    @property
    def pid(self) -> int | None:
        """The running process."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    def run(
        self,
        args: list[str],
        cwd: str,
        additional_env: Mapping[str, str],
        on_output: Callable[[str], Any] | None = None,
        on_error: Callable[[str], Any] | None = None,
    ) -> CommandResult:
        """Runs the CLI to its end. Raises CommandError where it fails."""
        env = {key: value for key, value in os.environ.items() if key != _UNSET}
        process = subprocess.Popen(
            [self.command, "--non-interactive", *args],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            # The flags of inline programs are debug commands.
            env={**env, **additional_env, "PULUMI_AUTOMATION_API": "true", "PULUMI_DEBUG_COMMANDS": "true"},
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
        with self._lock:
            self._process = process
        try:
            stdout, stderr = process.communicate()
        finally:
            with self._lock:
                self._process = None
        result = CommandResult(stdout, stderr, process.returncode)
        if process.returncode != 0:
            raise create_command_error(result)
        return result

    def interrupt(self) -> None:
        """SIGINT: the engine ends what it has begun and starts nothing more. A second one ends it at once."""
        self._signal(signal.SIGINT)

    def kill(self) -> None:
        """SIGKILL to the engine and its plugins."""
        pid = self.pid
        if pid is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)

    def _signal(self, number: int) -> None:
        # No lock is taken: this may run in a signal handler.
        process = self._process
        if process is not None and process.poll() is None:
            process.send_signal(number)
