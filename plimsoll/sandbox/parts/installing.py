"""Finds each program of the sandbox: on PATH if its version fits, else in the cache, else by building it."""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final, Literal, Self

from plimsoll import home
from plimsoll.errors import PlimsollError
from plimsoll.sandbox.folder import is_of_sandbox
from plimsoll.sandbox.parts.building import build_part
from plimsoll.sandbox.parts.go_commands import GoCommands
from plimsoll.sandbox.parts.pinned import PARTS, BinFolder, Part, Program, part_names
from plimsoll.sandbox.parts.toolchain import builds_at_once, check_toolchain

_WEIGHED_CORES: Final = 2
"""Number of cores on which `Part.build_seconds` was measured."""
_PACE_SECONDS: Final = 60
_WAIT_SECONDS: Final = 0.5


@dataclass(frozen=True)
class Found:
    """Where a program or a file comes from. `path` is None while it has to be built."""

    part: Part
    name: str
    source: Literal["path", "cache", "build"]
    path: Path | None
    folder: BinFolder | None
    program: Program | None = None


@dataclass
class Progress:
    """Progress of one part's build."""

    part: Part
    go: GoCommands
    step: str = "waiting"
    started: float | None = None
    ended: float | None = None

    @property
    def share(self) -> float:
        """Progress from 0 to 1, by CPU time relative to the part's weight; below 1 until the build has ended."""
        if self.ended is not None:
            return 1.0
        used = self.go.cpu_seconds(self.part.name) / (self.part.build_seconds * _WEIGHED_CORES)
        return used / (used + 0.15) if used > 0.85 else used


@dataclass
class Installation:
    """Builds the parts in `missing`, in this order. As a context manager, builds run during the block and are stopped
    after it."""

    missing: Sequence[Found]
    progress: list[Progress] = field(default_factory=list)
    _go: GoCommands = field(default_factory=GoCommands)
    _pool: ThreadPoolExecutor | None = None
    _builds: dict[str, Future[None]] = field(default_factory=dict)
    _began: float | None = None

    def __post_init__(self) -> None:
        self.progress = [Progress(p, self._go) for p in {f.part.name: f.part for f in self.missing}.values()]

    @property
    def at_once(self) -> int:
        return min(builds_at_once(os.cpu_count() or 1), max(1, len(self.progress)))

    def left(self) -> list[Progress]:
        """Progress of the builds that have not ended."""
        return [p for p in self.progress if p.ended is None]

    def estimate_seconds(self) -> float:
        """Estimate of the remaining seconds at the current pace. It changes with other work on the machine and slow
        downloads."""
        left = sum(p.part.build_seconds * (1 - p.share) for p in self.progress) * _WEIGHED_CORES
        cores = os.cpu_count() or 1
        passed = 0.0 if self._began is None else time.monotonic() - self._began
        used = sum(self._go.cpu_seconds(p.part.name) for p in self.progress)
        # Starts with the assumption that all cores were used for a minute.
        return left * (passed + _PACE_SECONDS) / (used + _PACE_SECONDS * cores)

    def __enter__(self) -> Self:
        self._began = time.monotonic()
        at_once = self.at_once
        cores = max(1, (os.cpu_count() or 1) // at_once)
        self._pool = ThreadPoolExecutor(at_once)
        try:
            for progress in self.progress:
                self._builds[progress.part.name] = self._pool.submit(self._build, progress, cores)
        except BaseException:  # An interrupt while the first builds run already: the block is never entered.
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        assert self._pool is not None
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._go.stop()
        self._pool.shutdown()

    def wait(self, names: Iterable[str] | None = None) -> None:
        """Waits until the parts with these names, by default all, are built.

        Raises the PlimsollError of the first failed build, without waiting for the others.
        """
        builds = [self._builds[n] for n in (self._builds if names is None else names) if n in self._builds]
        left = set(builds)
        while left:
            # A signal that comes just before a wait is handled after it only, so that none is without an end.
            done, left = wait(left, _WAIT_SECONDS, FIRST_EXCEPTION)
            for future in done:
                future.result()

    def run(self) -> None:
        """Builds all missing parts. Stops all builds if one fails or this thread is interrupted."""
        with self:
            self.wait()

    def _build(self, progress: Progress, cores: int) -> None:
        def step(text: str) -> None:
            progress.step = text

        progress.started = time.monotonic()
        programs = [f.program for f in self.missing if f.part is progress.part and f.program is not None]
        build_part(progress.part, programs, cores, step, self._go)
        progress.ended = time.monotonic()
        progress.step = "built"


def find_programs(names: Iterable[str] | None = None, *, on_path: bool = True) -> list[Found]:
    """The programs and files of the parts with these names, and where they come from.

    By default the parts of a sandbox with Karpenter and without Trainer. With `on_path=False`, all are those that are
    pinned: PATH is not searched.

    Raises PlimsollError for an unknown part.
    """
    return [found for part in _chosen(names) for found in _find(part, on_path=on_path)]


def _chosen(names: Iterable[str] | None) -> list[Part]:
    wanted = part_names() if names is None else list(names)
    known = {p.name: p for p in PARTS}
    unknown = [n for n in wanted if n not in known]
    if unknown:
        raise PlimsollError(f"There is no part {unknown[0]}.", f"The parts are {', '.join(known)}.")
    return [known[n] for n in wanted]


def _find(part: Part, *, on_path: bool) -> list[Found]:
    found = []
    for program in part.programs:
        cached = part.cached / program.name
        installed = _on_path(part, program) if on_path else None
        if installed is not None:
            found.append(Found(part, program.name, "path", installed, program.folder, program))
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
    path = shutil.which(program.name, path=_search_path()) if program.version_arguments else None
    if path is None or Path(path).resolve().is_relative_to(home.cache().resolve()):
        return None
    # The modification time is a part of the cache key, so that an upgrade is noticed within one process.
    version = _version_of(path, Path(path).stat().st_mtime_ns, program.version_arguments)
    pinned = re.match(r"v(\d+)\.(\d+)", part.version)
    if version is None or pinned is None:
        return None
    major, minor = int(pinned[1]), int(pinned[2])
    if program.any_minor_from is not None:
        return Path(path) if version[0] == major and version[1] >= program.any_minor_from else None
    return Path(path) if version == (major, minor) else None


def _search_path() -> str:
    """PATH without the folders of sandboxes: what those contain ends with `down`, or is replaced by `up`."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(folder for folder in folders if not is_of_sandbox(Path(folder).parent))


@cache
def _version_of(path: str, _changed: int, arguments: tuple[str, ...]) -> tuple[int, int] | None:
    try:
        done = subprocess.run([path, *arguments], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"(\d+)\.(\d+)\.\d+", done.stdout)
    return (int(found[1]), int(found[2])) if found and done.returncode == 0 else None


def missing_programs(found: Iterable[Found]) -> list[Found]:
    """The programs that have to be built. Raises PlimsollError if this machine cannot build them."""
    lacking = [f for f in found if f.path is None]
    if lacking:
        check_toolchain(list({f.part.name: f.part for f in lacking}.values()))
    return lacking
