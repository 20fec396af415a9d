"""The folders of programs that a sandbox adds to PATH.

Pulumi looks for its language host and policy analyzers in its own folder first. The host that can be built here cannot
start policy packs by itself, so `bin-python` contains the proxy of `plimsoll.language_host`. Pulumi does not use the
analyzer if it finds a host, so the analyzer is in `bin-policy`, for programs without a host. Each folder has a
`pulumi`, and a caller selects one by PATH.
"""

import importlib.metadata
import os
import shlex
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from plimsoll.sandbox.folder import Folder
from plimsoll.sandbox.parts import Found

_HOST: Final = "pulumi-language-python"
_PLUGIN: Final = "pulumi-resource-kubernetes"


def link(folder: Folder, found: Iterable[Found]) -> None:
    """Creates `bin`, `bin-python`, `bin-policy`, and the folder of Pulumi's Kubernetes plugin, from the result of an
    installation."""
    for name in ("bin", "bin-python", "bin-policy"):
        shutil.rmtree(folder.bin(name), ignore_errors=True)
        folder.bin(name).mkdir()
    present = [(one, one.path) for one in found if one.path is not None]
    pulumi = next(path for one, path in present if one.name == "pulumi").resolve()
    for one, path in present:
        if one.name == _PLUGIN:
            _link_plugin(folder, path)
        if one.folder is None:
            continue
        # An installed Pulumi has its own host and analyzer, which match its version.
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


def _link_plugin(folder: Folder, program: Path) -> None:
    """Under the version of the SDK, which the engine looks for."""
    plugins = folder.pulumi / "plugins"
    shutil.rmtree(plugins, ignore_errors=True)
    version = importlib.metadata.version("pulumi-kubernetes")
    target = plugins / f"resource-kubernetes-v{version}" / program.name
    target.parent.mkdir(parents=True)
    target.symlink_to(program)


def _host_script(host: Path) -> str:
    """A program for sh and for Python: the first line of a script cannot name an interpreter in a path with spaces, or
    in a long one. sh runs the second line, which is a text to Python."""
    python = shlex.quote(sys.executable)
    start = f"#!/bin/sh\n'''exec' {python} \"$0\" \"$@\"\n' '''\n"
    return f"{start}from plimsoll.language_host import main\n\nmain({str(host)!r})\n"


def _copy(source: Path, target: Path) -> None:
    """A hard link for a program that finds itself by its path: a symbolic link would lead to the original."""
    try:
        os.link(source, target)
    except OSError:
        # Another file system. It works too, with a warning per run that the host comes from PATH.
        target.symlink_to(source)
