"""The folders of programs that a sandbox puts on PATH.

Pulumi looks for its language host and policy analyzers beside itself first. The host that can be built here cannot
start policy packs by itself, so `language_host` stands before it in `bin-python`. Where a host is found the analyzer
is never tried, so the analyzer lives apart in `bin-policy`, for programs that need no host. Each folder has a `pulumi`
of its own, and a caller chooses by PATH.
"""

import os
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from plimsoll.sandbox.folder import Folder
from plimsoll.sandbox.parts import Found

_HOST: Final = "pulumi-language-python"


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
        target = folder.bin(one.folder) / path.name
        if path.name == _HOST and not own:
            target.write_text(_host_script(path))
            target.chmod(0o755)
        else:
            target.symlink_to(beside if own else path)
    for name in ("bin-python", "bin-policy"):
        _copy(pulumi, folder.bin(name) / "pulumi")


def _host_script(host: Path) -> str:
    return f"#!{sys.executable}\nfrom plimsoll.sandbox.language_host import main\n\nmain({str(host)!r})\n"


def _copy(source: Path, target: Path) -> None:
    """A second name for a program that finds itself by its path: a symbolic link would lead it back."""
    try:
        os.link(source, target)
    except OSError:
        # Another filesystem. It then works too, with a warning per run that the host comes from PATH.
        target.symlink_to(source)
