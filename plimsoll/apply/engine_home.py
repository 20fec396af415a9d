"""The home folder of the loop's engines: the user's Pulumi home, without its log of every step."""

import contextlib
import os
from pathlib import Path
from typing import Final

from plimsoll.apply.errors import StateFolderFullError
from plimsoll.apply.settings import ApplySettings

_OWN: Final = frozenset({"logs", "workspaces"})
"""Not shared with the user's home: what engines write there is of no use to others."""


def user_home(settings: ApplySettings) -> Path:
    """Where Pulumi keeps plugins and credentials."""
    return (settings.pulumi_home or Path(os.environ.get("PULUMI_HOME") or Path.home() / ".pulumi")).absolute()


def engine_home(settings: ApplySettings) -> Path:
    """The home folder of the engines of one work folder."""
    return settings.work_folder.absolute() / "engine-home"


def make_engine_home(settings: ApplySettings) -> Path:
    """A folder that leads to everything in the user's home but logs. Raises StateFolderFullError.

    The engine writes every step, with all properties, into a compressed and encrypted file below `logs`, whatever is
    asked of it: two fifths of its time. It does without where that is no folder.
    """
    theirs, ours = user_home(settings), engine_home(settings)
    try:
        ours.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            (ours / "logs").touch(exist_ok=False)
        for entry in theirs.iterdir() if theirs.is_dir() else ():
            if entry.name not in _OWN:
                _lead(ours / entry.name, entry)
    except OSError as error:
        raise StateFolderFullError(
            f"{ours}: {error.strerror}", "make room in the work folder, or name another one"
        ) from None
    return ours


def _lead(link: Path, target: Path) -> None:
    """Makes a link in one step: engines that start meanwhile see the old or the new one."""
    if link.is_symlink() and link.readlink() == target:
        return
    fresh = link.with_name(f".{link.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(target)
    fresh.replace(link)
