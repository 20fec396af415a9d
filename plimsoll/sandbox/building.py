"""Builds a part into the cache; a build that is interrupted goes on from where Go's own cache stands."""

import fcntl
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from plimsoll.errors import PlimsollError
from plimsoll.sandbox import toolchain
from plimsoll.sandbox.parts import Part, Program


@contextmanager
def _workplace(part: Part, on_wait: Callable[[str], None]) -> Iterator[Path]:
    """A new folder beside the part's files, and its lock, so that two installs at once build a part once."""
    part.cached.mkdir(parents=True, exist_ok=True)
    with (part.cached / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait("another install is building it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        for left in part.cached.glob(".build-*"):
            shutil.rmtree(left, ignore_errors=True)
        with tempfile.TemporaryDirectory(dir=part.cached, prefix=".build-") as new:
            yield Path(new)


def build(
    part: Part,
    programs: Sequence[Program],
    cores: int,
    on_step: Callable[[str], None],
    on_start: Callable[[subprocess.Popen[str]], None],
) -> None:
    """Makes `programs` and the module files of `part` present in its cache folder.

    `on_step` gets a word on what is being done, `on_start` the running go command, for whoever must stop it.
    Raises PlimsollError with the compiler's last lines when the build fails.
    """
    with _workplace(part, on_step) as new:
        for program in programs:
            if not (part.cached / program.name).exists():
                _go_build(part, program, new, cores=cores, on_step=on_step, on_start=on_start)
        _take_files(part, new, on_step)


def _go_build(
    part: Part,
    program: Program,
    into: Path,
    *,
    cores: int,
    on_step: Callable[[str], None],
    on_start: Callable[[subprocess.Popen[str]], None],
) -> None:
    target = into / program.name
    command = ["go", "build", "-v", "-trimpath", "-buildvcs=false", "-p", str(cores), "-tags", ",".join(part.tags)]
    command += ["-ldflags", part.linker_flags, "-o", str(target), program.package]
    on_step(program.name)
    last: list[str] = []
    with subprocess.Popen(
        command,
        cwd=part.source,
        env=os.environ | {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as go:
        on_start(go)
        assert go.stderr is not None
        for line in go.stderr:
            last = [*last[-30:], line.rstrip()]
            on_step(f"{program.name}: {line.strip()[:60]}")
    if go.returncode != 0:
        raise PlimsollError(
            f"Building {program.name} {part.version} failed (go build ended with {go.returncode}):\n" + "\n".join(last),
            "If this is a network error, run the same command again: it goes on from where it stopped.",
        )
    target.replace(part.cached / program.name)


def _take_files(part: Part, into: Path, on_step: Callable[[str], None]) -> None:
    missing = [f for f in part.files if not (part.cached / f.name).exists()]
    if not missing:
        return
    on_step("files of its module")
    toolchain.go_output(["mod", "download", part.module], part.source)
    module = Path(toolchain.go_output(["list", "-m", "-f", "{{.Dir}}", part.module], part.source))
    for file in missing:
        source, new, target = module / file.source, into / "file", part.cached / file.name
        if source.is_dir():
            # Plain copies: the module cache is read-only, and so would be what is made of it.
            shutil.copytree(source, new, copy_function=shutil.copyfile)
            new.chmod(0o755)
        else:
            shutil.copyfile(source, new)
            new.chmod(stat.S_IRWXU | (0o055 if file.executable else 0o044))
        target.parent.mkdir(parents=True, exist_ok=True)
        new.replace(target)
