"""A copy of the checkout in which a module is changed, so that the working tree never is."""

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_MEMORY_BYTES: Final = 6 * 1024**3
_SECONDS_PER_TEST: Final = 120


class Checkout:
    """A folder with the files of another checkout that git does not ignore, and with its virtual environment."""

    def __init__(self, original: Path, folder: Path) -> None:
        self.folder = folder
        self._changes = 0
        listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(listed, cwd=original, check=True, capture_output=True, text=True).stdout
        for name in filter(None, names.split("\0")):
            if (original / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(original / name, folder / name, follow_symlinks=False)
        (folder / ".venv").symlink_to(original / ".venv")
        self._shared = os.environ.get("PLIMSOLL_SHARED") or str(original.parent / "shared")

    @contextmanager
    def changed(self, path: str, source: str) -> Iterator[None]:
        """With another text of one file."""
        file = self.folder / path
        before, written = file.read_text(), file.stat().st_mtime
        self._changes += 1
        file.write_text(source)
        # Bytecode is told apart by whole seconds and the length: two changes within one second would be taken for one.
        os.utime(file, (written + self._changes, written + self._changes))
        try:
            yield
        finally:
            file.write_text(before)
            os.utime(file, (written, written))

    def pytest(self, arguments: Sequence[str], seconds: float, **variables: str) -> subprocess.CompletedProcess[str]:
        """Runs tests of the copy. Raises subprocess.TimeoutExpired after `seconds`; then no process of theirs is
        left. A test that takes longer than two minutes, or 6 GiB of memory, fails."""
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--timeout={_SECONDS_PER_TEST}"]
        environ = {**os.environ, "PYTHONPATH": str(self.folder), "PLIMSOLL_SHARED": self._shared, **variables}
        with subprocess.Popen(
            [*command, *arguments],
            cwd=self.folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process:
            resource.prlimit(process.pid, resource.RLIMIT_DATA, (_MEMORY_BYTES, _MEMORY_BYTES))
            try:
                output, _ = process.communicate(timeout=seconds)
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, 9)
        return subprocess.CompletedProcess(process.args, process.returncode, output)
