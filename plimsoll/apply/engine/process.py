"""The pulumi CLI as processes that can be interrupted."""

import contextlib
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

import psutil
import structlog
from pulumi.automation import CommandResult, PulumiCommand
from pulumi.automation.errors import create_command_error
from semver import VersionInfo

from plimsoll.apply.errors import EngineMissingError, killed_error

MINIMUM_VERSION: Final = VersionInfo(3, 200, 0)
"""The first version with an event log over gRPC for inline programs."""
HOLDER: Final = "PLIMSOLL_HOLDER"
"""Environment variable of the engine's processes: the Lease identity of the writer that started them."""
PASSPHRASE_VARIABLE: Final = "PULUMI_CONFIG_PASSPHRASE"
"""Variable that is not passed to the engine: it would override the passphrase file."""

_PARTING_SECONDS: Final = 0.5
"""Seconds after the end of an engine in which its plugins may end by themselves; then they get SIGTERM."""
_END_SECONDS: Final = 2.0
"""Seconds after SIGTERM until a plugin is killed, and then for its end."""
_POLL_SECONDS: Final = 0.02
"""Interval at which plugins are checked, because they are not child processes, whose end would be reported."""

_INSTALL_HINT: Final = "install it (`plimsoll sandbox install`, or Pulumi's own installer), and put it on PATH"

log = structlog.get_logger(__name__)


def find_pulumi(path: Path | None) -> tuple[Path, VersionInfo]:
    """The CLI and its version. Raises EngineMissingError, or EngineKilledError if a signal ended it."""
    found = shutil.which(str(path) if path is not None else "pulumi")
    if found is None:
        raise EngineMissingError(f"{path or 'pulumi'}: no such program", _INSTALL_HINT)
    try:
        answer = subprocess.run(
            [found, "version"],
            # Ctrl-C in a terminal is for this process.
            start_new_session=True,
            env={**os.environ, "PULUMI_SKIP_UPDATE_CHECK": "true"},
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        version = VersionInfo.parse(answer.stdout.strip().removeprefix("v"))
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        if isinstance(error, subprocess.CalledProcessError) and error.returncode < 0:
            raise killed_error(found, -error.returncode) from None
        raise EngineMissingError(f"{found} does not report its version: {error}", _INSTALL_HINT) from None
    if version < MINIMUM_VERSION:
        raise EngineMissingError(
            f"{found} is version {version}, but at least {MINIMUM_VERSION} is required", _INSTALL_HINT
        )
    return Path(found), version


class Engine(PulumiCommand):
    """The CLI for one stack: at most one process at a time, in a session of its own.

    The library's own class runs the process in the foreground of the caller and does not return its id, so a signal to
    the caller would leave it running.
    """

    def __init__(self, path: Path, version: VersionInfo) -> None:
        # The library's constructor would run the CLI again to get the version.
        self.command = str(path)
        self.version = version
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._interrupted = False
        self._killed = False

    @property
    def interrupted(self) -> bool:
        """Whether the running process, or else the last one, was interrupted or killed by this object."""
        return self._interrupted

    @property
    def ended_by_signal(self) -> bool:
        """Whether a signal ended the last process, whoever sent it, or one before it after which none succeeded. It may
        have left its lock, at which later ones fail."""
        return self._interrupted or self._killed

    @property
    def pid(self) -> int | None:
        """Id of the running process."""
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
        """Runs the CLI to its end, then ends the plugins that it left. Raises CommandError if it fails.

        Ctrl-C interrupts the CLI, and is raised after its end."""
        before = self.ended_by_signal
        self._interrupted = False
        env = {key: value for key, value in os.environ.items() if key != PASSPHRASE_VARIABLE}
        with _output() as stdout, _output() as stderr:
            process = subprocess.Popen(
                [self.command, "--non-interactive", *args],
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                cwd=cwd,
                # The flags for inline programs require debug commands.
                env={**env, **additional_env, "PULUMI_AUTOMATION_API": "true", "PULUMI_DEBUG_COMMANDS": "true"},
                start_new_session=True,
            )
            with self._lock:
                self._process = process
            try:
                process.wait()
            except KeyboardInterrupt:  # in the main thread
                self.interrupt()
                process.wait()
                raise
            finally:
                with self._lock:
                    self._process = None
                end_session(process.pid)
            result = CommandResult(_read(stdout), _read(stderr), process.returncode)
        self._killed = process.returncode < 0 or (before and process.returncode != 0)
        if process.returncode != 0:
            raise create_command_error(result)
        return result

    def interrupt(self) -> None:
        """Sends SIGINT: the engine finishes its current operations and starts no others. A second one ends it at
        once."""
        self._signal(signal.SIGINT)

    def kill(self) -> None:
        """Sends SIGKILL to the engine; `run` then ends its plugins."""
        pid = self.pid
        if pid is not None:
            self._interrupted = True
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)

    def _signal(self, number: int) -> None:
        # No lock, because this may run in a signal handler.
        process = self._process
        if process is not None and process.poll() is None:
            self._interrupted = True
            process.send_signal(number)


def _output() -> BinaryIO:
    """What the engine writes to, in memory. A pipe would end with this process: SIGPIPE would then kill the engine in
    the middle of its update, and its lock and its plugins would be left."""
    return os.fdopen(os.memfd_create("engine"), "w+b")


def _read(output: BinaryIO) -> str:
    output.seek(0)
    return output.read().decode("utf-8", "replace")


def end_session(engine: int) -> None:
    """Ends the processes that an engine left, after the engine was started by `Engine` and has ended.

    Plugins look for their engine every five minutes at most, and may not notice its end even then. They have process
    groups of their own, but stay in the engine's session, whose id is not reused while one of them runs.
    """
    if not is_running(engine):  # otherwise it is another process, and none was left
        end_processes(_in_session(engine))


def end_processes(processes: Iterable[psutil.Process]) -> None:
    """Ends plugins. Those that do not end by themselves at once get SIGTERM, then SIGKILL."""
    left = _left_of(processes, _PARTING_SECONDS)
    if left:
        log.warning("ending plugins whose engine has ended", pids=[process.pid for process in left])
    for end in (psutil.Process.terminate, psutil.Process.kill):
        for process in left:
            with contextlib.suppress(psutil.Error):
                end(process)
        left = _left_of(left, _END_SECONDS)


def is_running(pid: int) -> bool:
    """Whether the process is running. A zombie does not count."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _in_session(leader: int) -> list[psutil.Process]:
    found = []
    for pid in psutil.pids():
        with contextlib.suppress(psutil.Error, OSError):
            if os.getsid(pid) == leader:
                found.append(psutil.Process(pid))
    return found


def _left_of(processes: Iterable[psutil.Process], seconds: float) -> list[psutil.Process]:
    """The processes that still run after `seconds`; returns earlier if none does."""
    deadline = time.monotonic() + seconds
    while left := [process for process in processes if process.is_running() and is_running(process.pid)]:
        if time.monotonic() >= deadline:
            break
        time.sleep(_POLL_SECONDS)
    return left
