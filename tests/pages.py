"""The commands of the README and of the docs, run as printed.

Blocks marked `sh` are run: all of a page in order, in one shell, as by a reader who has run `make demo` and installed
nothing else. Blocks marked `console` are not run: they show a dialogue, or need a cluster of the reader's own. A
command with the comment `# exit code 2` must end with it, every other one with 0.
"""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]

_BLOCK = re.compile(r"^( *)```sh\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
_EXPECTED = re.compile(r"^(.*?)\s+# exit code (\d+)\b.*$", re.MULTILINE)
_SYSTEM = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_KEPT = (
    *("HOME", "LANG", "TMPDIR", "PLIMSOLL_HOME", "XDG_CACHE_HOME", "GOPATH", "GOCACHE", "GOMODCACHE"),
    *("GOGC", "PIP_CERT", "PIP_INDEX_URL", "SSL_CERT_FILE", "HTTPS_PROXY", "https_proxy"),
)
"""Variables of the test run that a reader has too: folders and addresses, but not PATH."""


@dataclass(frozen=True)
class Page:
    path: Path

    def __str__(self) -> str:
        return str(self.path.relative_to(CHECKOUT))

    @property
    def text(self) -> str:
        return self.path.read_text()

    @property
    def commands(self) -> str:
        """All commands of the page as one script."""
        return "\n".join(
            re.sub(f"^{indent}", "", block, flags=re.MULTILINE) for indent, block in _BLOCK.findall(self.text)
        )

    @property
    def needs_sandbox(self) -> bool:
        return "plimsoll sandbox up" in self.commands

    def run(self, checkout: Path, timeout: float) -> "subprocess.CompletedProcess[str]":
        """Runs the commands in `checkout`, see `copy_of_checkout`. AssertionError if one ends otherwise than
        expected."""
        script = _EXPECTED.sub(r"code=0; \1 || code=$?; test $code -eq \2", self.commands)
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", f"trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n{script}"],
            cwd=checkout,
            # Most of what a page installs is never imported.
            env={**kept, "PATH": f"{_tools(checkout)}:{_SYSTEM}", "COLUMNS": "200", "PIP_COMPILE": "0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done


def pages() -> list[Page]:
    """All pages that have commands."""
    folders = ("docs", "examples", "plimsoll", "templates")
    patterns = ("*.md", *(f"{folder}/**/*.md" for folder in folders))
    found = (path for pattern in patterns for path in CHECKOUT.glob(pattern))
    return [page for page in map(Page, sorted(found)) if page.commands]


def page(name: str) -> Page:
    return Page(CHECKOUT / name)


def copy_of_checkout(folder: Path) -> Path:
    """A writable copy of the checkout's files with its virtual environment, as a reader's working directory, but
    without the tests, which no page needs."""
    shutil.copytree(CHECKOUT, folder, ignore=shutil.ignore_patterns(".*", "build", "dist", "tests"))
    (folder / ".venv").symlink_to(sys.prefix)
    return folder


def make(checkout: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Runs `make` in a copy of the checkout, with the virtual environment as it is."""
    return subprocess.run(
        ["make", "--old-file=.venv/.installed", *words],
        cwd=checkout,
        env={name: value for name, value in os.environ.items() if name != "MAKEFLAGS"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def _tools(checkout: Path) -> Path:
    """A folder with python3, which a reader must have, and the go of the machine or of the virtual environment."""
    folder = checkout.with_name(f"{checkout.name}-tools")
    folder.mkdir(exist_ok=True)
    for name, found in (("python3", sys.executable), ("go", shutil.which("go"))):
        if found is not None and not (folder / name).is_symlink():
            (folder / name).symlink_to(Path(found).resolve())
    return folder
