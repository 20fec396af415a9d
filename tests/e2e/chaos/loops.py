"""The controllers of a chaos run: they are restarted when they end, as by a kubelet, and all of their processes are
tracked."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import psutil

from tests.e2e.chaos.clock import Clock
from tests.pages import CHECKOUT

_END_SECONDS = 120.0
_AGAIN_SECONDS = 0.5
_LAST = 1000
"""Characters of a log."""


class Loop:
    """One `plimsoll run` with its own work folder. Its log is on a disk that is never full."""

    def __init__(self, command: list[str], environ: Mapping[str, str], folder: Path, log: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.name, self.log = folder.name, log
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                [*command, "--work-folder", str(folder / "work")],
                cwd=CHECKOUT,
                env=dict(environ),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    @property
    def runs(self) -> bool:
        return self.process.poll() is None

    def engines(self) -> list[psutil.Process]:
        with contextlib.suppress(psutil.NoSuchProcess):
            return [each for each in psutil.Process(self.process.pid).children() if each.name() == "pulumi"]
        return []

    def _engines_with_plugins(self) -> list[psutil.Process]:
        with contextlib.suppress(psutil.NoSuchProcess):
            return [each for engine in self.engines() for each in (engine, *engine.children())]
        return []

    def kill(self, *, group: bool = False) -> None:
        """Sends SIGKILL to the process alone, or also to its engines and their plugins, as when a container is
        killed."""
        others = self._engines_with_plugins() if group else []
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL) if group else self.process.kill()
        for each in others:
            _send(each, signal.SIGKILL)
        self.process.wait(_END_SECONDS)

    @contextlib.contextmanager
    def paused(self, *, loop: bool, engines: bool) -> Iterator[int]:
        """Stops the process, its engines with their plugins, or both, as when a host is suspended or out of memory;
        yields how many."""
        processes = [psutil.Process(self.process.pid)] if loop else []
        processes += self._engines_with_plugins() if engines else []
        stopped = [each for each in processes if _send(each, signal.SIGSTOP)]
        try:
            yield len(stopped)
        finally:
            for each in stopped:
                _send(each, signal.SIGCONT)

    def stop(self) -> int:
        """Sends SIGTERM and returns the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(_END_SECONDS)


def _send(process: psutil.Process, number: int) -> bool:
    """Whether the process got the signal; it may have ended."""
    with contextlib.suppress(psutil.NoSuchProcess):
        process.send_signal(number)
        return True
    return False


class Loops:
    """At most two controllers: the first, and a second writer."""

    def __init__(
        self,
        options: list[str],
        environ: Mapping[str, str],
        folder: Path,
        state: Path,
        kubeconfig_of: Callable[[str], Path],
        clock: Clock,
    ) -> None:
        """`state` is the folder of the work folders; `kubeconfig_of` makes the kubeconfig of each controller, whose
        token is bound to a pod of its own. All of them have the same `clock`."""
        self._kubeconfig_of = kubeconfig_of
        self._command = [sys.executable, "-m", "tests.e2e.chaos.clock", str(clock.path), "run", *options]
        self._environ, self._folder, self._state = environ, folder, state
        self._number = 0
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self.ended: list[str] = []
        """Exit code and last log lines of the processes that ended by themselves."""
        self.first = self._start("0")
        self._keeping = threading.Thread(target=self._keep, name="kubelet", daemon=True)
        self._keeping.start()

    def _start(self, name: str) -> Loop:
        command = [*self._command, "--kubeconfig", str(self._kubeconfig_of(name))]
        return Loop(command, self._environ, self._state / f"loop-{name}", self._folder / f"loop-{name}.log")

    def beside(self) -> Loop:
        """A second writer, which the caller manages."""
        self._number += 1
        return self._start(str(self._number))

    def replace(self, by: Loop) -> None:
        """The second writer becomes the first, after that was killed."""
        with self._lock:
            self.first.kill()
            self.first = by

    def succeed(self, by: Loop) -> None:
        """The second writer becomes the first, which is stopped and must end well."""
        with self._lock:
            former, self.first = self.first, by
        if (code := former.stop()) != 0:
            self.ended.append(f"{former.name} ended with {code}")

    def kill(self, *, group: bool) -> None:
        with self._lock:
            self.first.kill(group=group)
            self.first = self._again()

    @contextlib.contextmanager
    def away(self) -> Iterator[None]:
        """The first is killed with its engines, and starts again when the context ends."""
        with self._lock:
            self.first.kill(group=True)
            try:
                yield
            finally:
                self.first = self._again()

    def stop(self) -> int:
        self._stopped.set()
        self._keeping.join()
        return self.first.stop()

    def end(self) -> None:
        """Kills everything that is left."""
        self._stopped.set()
        for process in self.processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()

    def logs(self) -> dict[str, Path]:
        return {path.stem: path for path in sorted(self._folder.glob("loop-*.log"))}

    def processes(self) -> list[psutil.Process]:
        """Controllers and their child processes, by the state that they use."""
        backend, found = self._environ["PULUMI_BACKEND_URL"], []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get("PULUMI_BACKEND_URL") == backend and process.status() != "zombie":
                    found.append(process)
        return found

    def _again(self) -> Loop:
        """Restarts in the same work folder, like a container of the same pod."""
        return self._start(self.first.name.removeprefix("loop-"))

    def _keep(self) -> None:
        while not self._stopped.wait(_AGAIN_SECONDS):
            with self._lock:
                if not self.first.runs:
                    last = self.first.log.read_text(errors="replace")[-_LAST:]
                    self.ended.append(f"{self.first.name} ended with {self.first.process.returncode}: {last}")
                    self.first = self._again()
