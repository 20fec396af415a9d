"""The folder of one sandbox, which contains everything that it writes."""

import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from plimsoll import home
from plimsoll.errors import PlimsollError

_NAME: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,38}[a-z0-9])?")
_SUPERVISOR_LOCK: Final = "supervisor.lock"
FREE_BYTES: Final = 512 * 1024**2
"""Required free disk space, in bytes: etcd, logs and Pulumi's state of a test cluster may grow to this."""


class Folder:
    """The paths in the folder of the sandbox with that name."""

    def __init__(self, name: str) -> None:
        if not _NAME.fullmatch(name):
            raise PlimsollError(
                f"{name!r} is not a valid name for a sandbox.",
                "Use at most 40 lower-case letters, digits and dashes, with a letter or digit at both ends.",
            )
        self.name: Final = name
        self.path: Final = home.sandboxes() / name

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def audit_log(self) -> Path:
        """The apiserver's audit log, one JSON object per line; only if the sandbox was started with one."""
        return self.logs / "audit.log"

    @property
    def certificates(self) -> Path:
        return self.path / "certificates"

    @property
    def tokens(self) -> Path:
        """kube-apiserver's static token file."""
        return self.path / "tokens.csv"

    @property
    def settings(self) -> Path:
        """Written last when the folder is prepared: without this file, preparation was not finished."""
        return self.path / "settings.json"

    @property
    def state(self) -> Path:
        """The processes that the supervisor runs; see `state.State`."""
        return self.path / "state.json"

    @property
    def supervisor_lock(self) -> Path:
        """A file that is locked while the supervisor runs, which inherits the lock from `up`."""
        return self.path / _SUPERVISOR_LOCK

    @property
    def pulumi(self) -> Path:
        """PULUMI_HOME."""
        return self.path / "pulumi" / "home"

    @property
    def stacks(self) -> Path:
        """The folder of Pulumi's file backend."""
        return self.path / "pulumi" / "state"

    @property
    def passphrase(self) -> Path:
        return self.path / "pulumi" / "passphrase"

    def kubeconfig(self, user: str) -> Path:
        """The kubeconfig of one of the users in `identities`."""
        return self.path / ("kubeconfig" if user == "admin" else f"kubeconfig-{user}")

    def bin(self, folder: str = "bin") -> Path:
        """`bin`, `bin-python` (Pulumi's language host) or `bin-policy` (its policy analyzer); host and analyzer must
        not be in one folder."""
        return self.path / folder

    def create(self) -> None:
        """Creates the folder. Raises PlimsollError if that is not possible, or the disk is too full."""
        with self.explained():
            self.logs.mkdir(parents=True, exist_ok=True)
            self.path.chmod(0o700)
            free = shutil.disk_usage(self.path).free
        if free < FREE_BYTES:
            if not self.settings.exists():
                self.remove()
            raise PlimsollError(
                f"{self.path.parent} has {free // 1024**2} MiB of free disk; a sandbox needs {FREE_BYTES // 1024**2}.",
                "Free disk space, or set PLIMSOLL_HOME to another folder.",
            )

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Converts an OSError of the folder (disk full, read-only, no permission) into a PlimsollError."""
        try:
            yield
        except OSError as error:
            raise PlimsollError(
                f"Cannot write the sandbox's folder {self.path}: {error.strerror or error}.",
                "Set PLIMSOLL_HOME to a folder that you can write, with enough disk space.",
            ) from error

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock for one `up` or `down` of this sandbox at a time. The folder must exist; the lock ends with the
        process."""
        while True:
            handle = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX)
                # The holder of the lock may have removed the folder, or created it again.
                if self.path.exists() and os.path.samestat(os.fstat(handle), self.path.stat()):
                    yield
                    return
            finally:
                os.close(handle)
            if not self.path.exists():
                raise FileNotFoundError(self.path)

    def supervised(self) -> bool:
        """Whether a supervisor runs."""
        try:
            with self.supervisor_lock.open("r") as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    def remove(self) -> None:
        """Removes the folder with its contents, and the folder of sandboxes if it is then empty."""
        with self.explained():
            shutil.rmtree(self.path, ignore_errors=False)
        with suppress(OSError):
            self.path.parent.rmdir()


def folders() -> list[Folder]:
    """The folders of all sandboxes, by name. A folder whose name no sandbox can have is left out."""
    found = home.sandboxes().glob("*/")
    return [Folder(path.name) for path in sorted(found) if _NAME.fullmatch(path.name)]


def is_of_sandbox(path: Path) -> bool:
    """Whether it is the folder of a sandbox, whichever PLIMSOLL_HOME that has."""
    return os.path.exists(path / _SUPERVISOR_LOCK)  # noqa: PTH110 - Path.exists raises where it may not look
