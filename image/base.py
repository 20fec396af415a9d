"""A base image of Debian packages alone, for machines that reach no registry of images."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

SUITE: Final = "bookworm"
PYTHON: Final = "3.11"
"""The suite's."""
PACKAGES: Final = ("python3-minimal", "libpython3-stdlib", "ca-certificates", "libstdc++6", "netbase", "tzdata")
LEFT_OUT: Final = ("/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*", "/usr/share/doc/*")
_CERTIFICATES: Final = "etc/ssl/certs/ca-certificates.crt"
_KEYRING: Final = "/usr/share/keyrings/debian-archive-keyring.gpg"
SOURCES: Final = tuple(
    f"deb [signed-by={_KEYRING}] http://deb.debian.org/{archive} {suite} main"
    for archive, suite in (
        ("debian", SUITE),
        ("debian", f"{SUITE}-updates"),
        ("debian-security", f"{SUITE}-security"),
    )
)
"""For apt: the suite alone has the security updates of its last point release only."""


def make_base(folder: Path) -> Path:
    """A tar archive of a root file system with Python and what it needs: neither shell tools nor a package manager.

    Packages are unpacked, and none of their scripts is run. They are those of the day: a kept base lacks later security
    updates. Raises CalledProcessError where a command fails.
    """
    archive = folder / f"base-{SUITE}.tar"
    # Of the hooks of mmdebstrap, only these are run for the variant `extract`: then, all packages are unpacked.
    hooks = (
        # What the scripts of ca-certificates would do.
        f'cat "$1"/usr/share/ca-certificates/mozilla/*.crt > "$1"/{_CERTIFICATES}',
        'mkdir -p "$1"/var/lib/plimsoll "$1"/etc "$1"/proc "$1"/sys "$1"/dev',
        'printf "root:x:0:0::/:/none\\nplimsoll:x:65532:65532::/var/lib/plimsoll:/none\\n" > "$1"/etc/passwd',
        'printf "root:x:0:\\nplimsoll:x:65532:\\n" > "$1"/etc/group',
        'chown 65532:65532 "$1"/var/lib/plimsoll',
        'rm -rf "$1"/usr/*bin/dpkg* "$1"/usr/bin/apt* "$1"/usr/bin/perl* "$1"/etc/resolv.conf "$1"/etc/hostname',
    )
    run(
        [
            "mmdebstrap", "--quiet", "--variant=extract", f"--include={','.join(PACKAGES)}",
            *(f"--dpkgopt=path-exclude={path}" for path in LEFT_OUT),
            "--dpkgopt=path-include=/usr/share/doc/*/copyright",
            "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr",
            *(f"--extract-hook={hook}" for hook in hooks),
            SUITE, str(archive), *SOURCES,
        ]
    )  # fmt: skip
    return archive


def run(command: Sequence[str]) -> str:
    """Standard output. What it says on standard error goes to ours."""
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True).stdout
