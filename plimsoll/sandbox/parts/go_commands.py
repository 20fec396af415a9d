"""Runs the go commands of an installation, keeps their output, and can stop all of them at once."""

import os
import shlex
import signal
import subprocess
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final, TextIO

import psutil

from plimsoll import home
from plimsoll.errors import PlimsollError

_LOG_LINES: Final = 12
_STOP_SECONDS: Final = 5
"""Seconds that go may take to end after an interrupt."""
_NO_SPACE: Final = "Free some space, or move the caches with XDG_CACHE_HOME, GOCACHE and GOMODCACHE"
_NO_NETWORK: Final = "Go's modules could not be downloaded: check the network, or name a reachable proxy in GOPROXY"
_CAUSES: Final = {
    "no space left on device": _NO_SPACE,
    "disk quota exceeded": _NO_SPACE,
    "signal: killed": "A compiler was killed, probably because memory ran out: close other programs",
    "dial tcp": _NO_NETWORK,
    "no such host": _NO_NETWORK,
    "connection refused": _NO_NETWORK,
    "i/o timeout": _NO_NETWORK,
    "tls handshake": _NO_NETWORK,
}
"""Causes by a part of the output, in lower case, and what to do about them."""


def go_environment() -> dict[str, str]:
    """The environment of go commands: the caller's, without settings that would build something else. A part is its
    own module, also in a checkout below a workspace (go.work)."""
    return os.environ | {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly", "GO111MODULE": "on", "GOWORK": "off"}


class Stopped(Exception):  # noqa: N818 - nothing is wrong
    """The command was stopped by `GoCommands.stop`."""


class GoCommands:
    """Runs go commands, from any thread, until `stop` ends running ones and rejects further ones."""

    def __init__(self) -> None:
        self.stopped: Final = threading.Event()
        self._running: dict[subprocess.Popen[str], str] = {}
        self._used: defaultdict[str, float] = defaultdict(float)
        self._lock = threading.Lock()

    def run(
        self, name: str, arguments: Sequence[str], folder: Path, scratch: Path, on_line: Callable[[str], None]
    ) -> str:
        """Runs `go ARGUMENTS` in `folder` and returns its standard output. `on_line` is called with each line of
        standard error.

        Temporary files are in `scratch`; an interrupted go leaves them there for the caller to remove. Both outputs are
        added to the log of the part `name`. Raises PlimsollError, with the command, its last lines and that log, if it
        fails, and Stopped if it is stopped.
        """
        with _log(name) as log:
            log.write(f"\n$ cd {folder} && {shlex.join(['go', *arguments])}\n")
            process = self._start(name, arguments, folder, scratch)
            last: deque[str] = deque(maxlen=_LOG_LINES)
            assert process.stdout is not None
            assert process.stderr is not None
            try:
                for line in process.stderr:
                    log.write(line)
                    on_line(line.strip())
                    if not _is_progress(line):
                        last.append(line.rstrip())
                printed = process.stdout.read()
                code = self._ended(process)
            finally:
                with self._lock:
                    self._running.pop(process, None)
                process.stdout.close()
                process.stderr.close()
            log.write(f"{printed}[exit code {code}]\n")
        if self.stopped.is_set():
            raise Stopped
        if code != 0:
            raise failure(name, f"`{shlex.join(['go', *arguments])}`, run in {folder}, ended with {code}", last)
        return printed.strip()

    def cpu_seconds(self, name: str) -> float:
        """CPU seconds of the commands of the part `name` so far, including those of compilers that have ended."""
        with self._lock:
            return self._used[name] + sum(_cpu_seconds(p) for p, whose in self._running.items() if whose == name)

    def stop(self) -> None:
        """Interrupts the running commands with their compilers and linkers, and kills them if they do not end soon."""
        with self._lock:
            self.stopped.set()
            running = list(self._running)
        for process in running:
            _signal(process, signal.SIGINT)
        for process in running:
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                _signal(process, signal.SIGKILL)

    def _start(self, name: str, arguments: Sequence[str], folder: Path, scratch: Path) -> subprocess.Popen[str]:
        with self._lock:
            if self.stopped.is_set():
                raise Stopped
            process = subprocess.Popen(
                ["go", *arguments],
                cwd=folder,
                env=go_environment() | {"GOTMPDIR": str(scratch)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                # A process group of its own, so that a signal reaches the compilers, and go only once.
                process_group=0,
            )
            self._running[process] = name
            return process

    def _ended(self, process: subprocess.Popen[str]) -> int:
        # Its CPU time can be read only before it is waited for.
        with self._lock:
            self._used[self._running.pop(process)] += _cpu_seconds(process)
        return process.wait()


def failure(name: str, what: str, last: Iterable[str]) -> PlimsollError:
    """The error for a failed build of the part `name`: `what` happened, the `last` lines of output, and what to do."""
    message = "\n".join([what, *last])
    cause = next((advice for words, advice in _CAUSES.items() if words in message.lower()), None)
    again = "Run the same command again: it continues where this one stopped."
    return PlimsollError(
        f"The part {name} could not be built: {message}\nThe whole log: {log_of(name)}",
        f"{cause}. {again}" if cause else again,
    )


def log_of(name: str) -> Path:
    """Path of the build log of the part `name`."""
    return home.cache() / "logs" / f"{name}.log"


def _log(name: str) -> TextIO:
    log_of(name).parent.mkdir(parents=True, exist_ok=True)
    return log_of(name).open("a")


def _is_progress(line: str) -> bool:
    """Whether the line reports progress rather than an error: a compiled package, or a downloaded module."""
    return line.startswith("go: downloading ") or " " not in line.strip()


def _cpu_seconds(process: subprocess.Popen[str]) -> float:
    try:
        times = psutil.Process(process.pid).cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system + times.children_user + times.children_system)


def _signal(process: subprocess.Popen[str], number: int) -> None:
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return
