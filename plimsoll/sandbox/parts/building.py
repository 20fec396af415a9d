"""Builds a part into the cache. An interrupted build continues with what is in Go's own cache."""

import fcntl
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from plimsoll.sandbox.parts.go_commands import GoCommands, Stopped, failure
from plimsoll.sandbox.parts.pinned import Part, Program

_POLL_SECONDS: Final = 0.2


def build_part(
    part: Part, programs: Sequence[Program], cores: int, on_step: Callable[[str], None], go: GoCommands
) -> None:
    """Builds `programs` and copies the module files of `part` into its cache folder.

    `on_step` is called with a description of the current step. Raises PlimsollError, which names the part, the command
    and its log, if the build fails, and Stopped if `go` is stopped.
    """
    try:
        with _build_folder(part, on_step, go) as new:
            for program in programs:
                if not (part.cached / program.name).exists():
                    _go_build(part, program, new, cores=cores, on_step=on_step, go=go)
            _take_files(part, new, on_step, go)
    except OSError as error:
        raise failure(part.name, str(error), []) from error


@contextmanager
def _build_folder(part: Part, on_wait: Callable[[str], None], go: GoCommands) -> Iterator[Path]:
    """Context manager: a new folder next to the part's files, with a lock, so that a part is built once by concurrent
    installs."""
    part.cached.mkdir(parents=True, exist_ok=True)
    with (part.cached / ".lock").open("w") as lock:
        while not _locked(lock.fileno()):
            on_wait("another installation is building it")
            # A blocking wait for the lock could not be stopped.
            if go.stopped.wait(_POLL_SECONDS):
                raise Stopped
        for left in part.cached.glob(".build-*"):
            shutil.rmtree(left, ignore_errors=True)
        with tempfile.TemporaryDirectory(dir=part.cached, prefix=".build-", ignore_cleanup_errors=True) as new:
            yield Path(new)


def _locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _go_build(
    part: Part, program: Program, into: Path, *, cores: int, on_step: Callable[[str], None], go: GoCommands
) -> None:
    target = into / program.name
    arguments = ["build", "-v", "-trimpath", "-buildvcs=false", "-p", str(cores), "-tags", ",".join(part.tags)]
    arguments += ["-ldflags", part.linker_flags, "-o", str(target), program.package]
    on_step(program.name)
    go.run(part.name, arguments, part.source, into, lambda line: on_step(f"{program.name}: {line[:60]}"))
    target.replace(part.cached / program.name)


def _take_files(part: Part, into: Path, on_step: Callable[[str], None], go: GoCommands) -> None:
    missing = [f for f in part.files if not (part.cached / f.name).exists()]
    if not missing:
        return
    on_step("files of its module")
    go.run(part.name, ["mod", "download", part.module], part.source, into, on_step)
    module = Path(go.run(part.name, ["list", "-m", "-f", "{{.Dir}}", part.module], part.source, into, on_step))
    for file in missing:
        source, new, target = module / file.source, into / "file", part.cached / file.name
        if source.is_dir():
            # Plain copies, because files in the module cache are read-only.
            shutil.copytree(source, new, copy_function=shutil.copyfile)
            new.chmod(0o755)
        else:
            shutil.copyfile(source, new)
            new.chmod(stat.S_IRWXU | (0o055 if file.executable else 0o044))
        target.parent.mkdir(parents=True, exist_ok=True)
        new.replace(target)
