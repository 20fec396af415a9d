"""Environment variables and home folder of the engine's processes, and their prerequisites."""

import contextlib
import os
from pathlib import Path
from typing import Final

from plimsoll.apply.engine.process import HOLDER
from plimsoll.apply.errors import PassphraseError, StateFolderFullError, unwritable
from plimsoll.apply.settings import ApplySettings

_NOT_LINKED: Final = frozenset({"logs", "workspaces"})
"""Entries of the user's home that the engine home has no link to: only one engine home uses their content."""


def engine_environment(settings: ApplySettings, identity: str) -> dict[str, str]:
    """Environment variables of the engine's processes. They contain the path of the passphrase file, not the
    passphrase."""
    return {
        "PULUMI_HOME": str(make_engine_home(settings)),
        "PULUMI_BACKEND_URL": settings.backend_url,
        **({"PULUMI_CONFIG_PASSPHRASE_FILE": str(settings.passphrase_file)} if settings.passphrase_file else {}),
        # An object that is declared exactly as in the state is unchanged. Otherwise its provider compares it with what
        # the apiserver returned, which leaves out zero values, such as `value: ""` of a toleration.
        "PULUMI_ENABLE_LEGACY_DIFF": "true",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        # Otherwise each start checks for a new version, for seconds if the network does not answer.
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        # The history contains a checkpoint of each update already.
        "PULUMI_DIY_BACKEND_DISABLE_CHECKPOINT_BACKUPS": "true",
        # A checkpoint after each step makes the time of an update quadratic in its size. Objects that a killed engine
        # did not record are found by their label.
        "PULUMI_EXPERIMENTAL": "true",
        "PULUMI_SKIP_CHECKPOINTS": "true",
        "PULUMI_DIY_BACKEND_GZIP": "false",
        "PULUMI_DIY_BACKEND_ZSTD": "false",
        # An engine runs for one Plan only: with a small heap, garbage collection took a quarter of its time.
        "GOGC": "200",
        HOLDER: identity,
    }


def check_passphrase(settings: ApplySettings) -> None:
    """Raises PassphraseError if the file is required and cannot be read. Only the engine reads its content."""
    if settings.passphrase_file is None:
        if settings.secrets_provider != "passphrase":
            return
        raise PassphraseError(
            "no passphrase file: the secrets of the Pulumi state are encrypted with a passphrase",
            "set the file that contains it with --passphrase-file or PULUMI_CONFIG_PASSPHRASE_FILE, or a key with "
            "--secrets-provider",
        )
    try:
        with settings.passphrase_file.open("rb"):
            pass
    except OSError as error:
        raise PassphraseError(
            f"passphrase file {settings.passphrase_file}: {error.strerror}",
            "name a file that holds the passphrase of the stacks with --passphrase-file",
        ) from None


def make_work_folder(settings: ApplySettings) -> None:
    """Creates the work folder. Raises StateFolderFullError if that is not possible."""
    try:
        settings.work_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(error, settings.work_folder) from None


def user_home(settings: ApplySettings) -> Path:
    """The folder in which Pulumi stores plugins and credentials."""
    return (settings.pulumi_home or Path(os.environ.get("PULUMI_HOME") or Path.home() / ".pulumi")).absolute()


def engine_home(settings: ApplySettings) -> Path:
    """The home folder of the engines of one work folder."""
    return settings.work_folder / "engine-home"


def make_engine_home(settings: ApplySettings) -> Path:
    """Creates a folder with links to everything in the user's home except logs and workspaces. Raises
    StateFolderFullError.

    The engine always writes every step, with all properties, to a compressed and encrypted file below `logs`, which
    takes two fifths of its time. It skips this if `logs` is not a folder.
    """
    theirs, ours = user_home(settings), engine_home(settings)
    try:
        ours.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            (ours / "logs").touch(exist_ok=False)
        for entry in theirs.iterdir() if theirs.is_dir() else ():
            if entry.name not in _NOT_LINKED:
                _link(ours / entry.name, entry)
    except OSError as error:
        raise unwritable(error, ours) from None
    return ours


def _link(link: Path, target: Path) -> None:
    """Makes or replaces a symbolic link, atomically: engines that start meanwhile see the old or the new one.

    Raises StateFolderFullError where a folder is in its place, which may hold what an engine has written."""
    if link.is_symlink():
        if link.readlink() == target:
            return
    elif link.is_dir():
        raise StateFolderFullError(
            f"{link} is a folder, but has to be a link to {target}",
            "move what is needed of it to that folder, and delete it",
        )
    fresh = link.with_name(f".{link.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(target)
    fresh.replace(link)
