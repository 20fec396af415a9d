"""Finds each program of the sandbox: on PATH if its version fits, else in the cache, else by a build."""

import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal

from plimsoll import home
from plimsoll.errors import PlimsollError
from plimsoll.sandbox import building, parts, toolchain
from plimsoll.sandbox.parts import PARTS, BinFolder, Part, Program


@dataclass(frozen=True)
class Found:
    """Where a program or a file comes from. `path` is None while it still has to be built."""

    part: Part
    name: str
    source: Literal["path", "cache", "build"]
    path: Path | None
    folder: BinFolder | None
    program: Program | None = None


@dataclass
class Progress:
    """How far one part's build is; read by whoever draws it."""

    part: Part
    step: str = "waiting"
    started: float | None = None
    ended: float | None = None

    @property
    def share(self) -> float:
        """From 0 to 1, by the time passed against the part's weight; never 1 before the build has ended."""
        if self.ended is not None:
            return 1.0
        if self.started is None:
            return 0.0
        passed = (time.monotonic() - self.started) / self.part.build_seconds
        return passed / (passed + 0.15) if passed > 0.85 else passed


@dataclass
class Installation:
    """A run of builds. `progress` grows while `run` works in this thread and its workers."""

    missing: Sequence[Found]
    progress: list[Progress] = field(default_factory=list)
    _running: list[subprocess.Popen[str]] = field(default_factory=list)
    _stopped: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        wanted = {f.part.name for f in self.missing}
        self.progress = [Progress(p) for p in PARTS if p.name in wanted]

    @property
    def at_once(self) -> int:
        return min(toolchain.builds_at_once(os.cpu_count() or 1), max(1, len(self.progress)))

    def estimate_seconds(self) -> float:
        """Wall seconds still to go, by weights measured on 2 cores."""
        left = sum(p.part.build_seconds * (1 - p.share) for p in self.progress)
        return left * 2 / max(1, os.cpu_count() or 1)

    def run(self) -> None:
        """Builds all that is missing; stops every build when one fails or this thread is interrupted."""
        at_once = self.at_once
        cores = max(1, (os.cpu_count() or 1) // at_once)
        with ThreadPoolExecutor(at_once) as pool:
            futures = [pool.submit(self._build, p, cores) for p in self.progress]
            try:
                done, _ = wait(futures, return_when=FIRST_EXCEPTION)
                for future in done:
                    future.result()
            finally:
                self._stop()
                pool.shutdown(cancel_futures=True)

    def _build(self, progress: Progress, cores: int) -> None:
        def started(process: subprocess.Popen[str]) -> None:
            self._running.append(process)
            if self._stopped.is_set():
                process.terminate()

        def step(text: str) -> None:
            progress.step = text

        if self._stopped.is_set():
            return
        progress.started = time.monotonic()
        programs = [f.program for f in self.missing if f.part is progress.part and f.program is not None]
        building.build(progress.part, programs, cores, step, started)
        progress.ended = time.monotonic()
        progress.step = "built"

    def _stop(self) -> None:
        self._stopped.set()
        for process in self._running:
            if process.poll() is None:
                process.terminate()


def find(names: Iterable[str] | None = None) -> list[Found]:
    """Each program and file of the parts called `names`, and where it comes from.

    By default the parts of a sandbox with Karpenter and without Trainer.

    Raises PlimsollError for a name that is no part.
    """
    return [found for part in _chosen(names) for found in _find(part)]


def _chosen(names: Iterable[str] | None) -> list[Part]:
    wanted = parts.names() if names is None else list(names)
    known = {p.name: p for p in PARTS}
    unknown = [n for n in wanted if n not in known]
    if unknown:
        raise PlimsollError(f"There is no part called {unknown[0]}.", f"The parts are {', '.join(known)}.")
    return [known[n] for n in wanted]


def _find(part: Part) -> list[Found]:
    found = []
    for program in part.programs:
        cached = part.cached / program.name
        on_path = _on_path(part, program)
        if on_path is not None:
            found.append(Found(part, program.name, "path", on_path, program.folder, program))
        elif cached.exists():
            found.append(Found(part, program.name, "cache", cached, program.folder, program))
        else:
            found.append(Found(part, program.name, "build", None, program.folder, program))
    for file in part.files:
        cached = part.cached / file.name
        present = cached.exists()
        found.append(Found(part, file.name, "cache" if present else "build", cached if present else None, file.folder))
    return found


def _on_path(part: Part, program: Program) -> Path | None:
    path = shutil.which(program.name) if program.version_arguments else None
    if path is None or Path(path).resolve().is_relative_to(home.cache().resolve()):
        return None
    # The modification time is part of the key, so that an upgrade between two calls of one process is seen.
    version = _version_of(path, Path(path).stat().st_mtime_ns, program.version_arguments)
    pinned = re.match(r"v(\d+)\.(\d+)", part.version)
    if version is None or pinned is None:
        return None
    major, minor = int(pinned[1]), int(pinned[2])
    if program.any_minor_from is not None:
        return Path(path) if version[0] == major and version[1] >= program.any_minor_from else None
    return Path(path) if version == (major, minor) else None


@cache
def _version_of(path: str, _changed: int, arguments: tuple[str, ...]) -> tuple[int, int] | None:
    try:
        done = subprocess.run([path, *arguments], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"(\d+)\.(\d+)\.\d+", done.stdout)
    return (int(found[1]), int(found[2])) if found and done.returncode == 0 else None


def missing(found: Iterable[Found]) -> list[Found]:
    """What still has to be built; the machine is checked for it first (PlimsollError)."""
    lacking = [f for f in found if f.path is None]
    if lacking:
        toolchain.check(list({f.part.name: f.part for f in lacking}.values()))
    return lacking
