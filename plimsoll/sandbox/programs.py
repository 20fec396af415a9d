"""The folders of programs that a sandbox puts on PATH.

Pulumi looks for its language host and policy analyzers beside itself first. The host that can be built here cannot
start policy packs, and where it is found nothing else is tried; so it and the analyzer live in folders apart, each
with a `pulumi` of its own, and a caller chooses by PATH.
"""

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from plimsoll.sandbox.folder import Folder
from plimsoll.sandbox.installing import Found


def link(folder: Folder, found: Iterable[Found]) -> None:
    """Makes `bin`, `bin-python` and `bin-policy` anew, from what an installation found."""
    for name in ("bin", "bin-python", "bin-policy"):
        shutil.rmtree(folder.bin(name), ignore_errors=True)
        folder.bin(name).mkdir()
    present = [(one, one.path) for one in found if one.path is not None]
    pulumi = next(path for one, path in present if one.name == "pulumi").resolve()
    for one, path in present:
        if one.folder is None:
            continue
        # An installed Pulumi brings its own, which fit it better.
        beside = pulumi.parent / path.name
        own = one.folder != "bin" and beside.exists()
        (folder.bin(one.folder) / path.name).symlink_to(beside if own else path)
    for name in ("bin-python", "bin-policy"):
        _copy(pulumi, folder.bin(name) / "pulumi")


def _copy(source: Path, target: Path) -> None:
    """A second name for a program that finds itself by its path: a symbolic link would lead it back."""
    try:
        os.link(source, target)
    except OSError:
        # Another filesystem. It then works too, with a warning per run that the host comes from PATH.
        target.symlink_to(source)
