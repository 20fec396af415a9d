"""`python -m image`: prepares the build folder, builds the image, and writes it as an OCI archive."""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from image.base import PYTHON, make_base, run
from image.context import CHECKOUT, MODULE, RELEASE, make_context
from plimsoll.distribution import version
from plimsoll.errors import PlimsollError

DEBIAN: Final = "debian"
"""As the base: one of Debian packages, made here."""
_PACKAGES: Final = {"docker": "docker.io"}
"""Debian packages with other names than their programs."""
_LOCAL: Final = "localhost/plimsoll-base"
_EPOCH: Final = "0"
"""Of the files and the image: the same input makes the same image."""


def main() -> int:
    options = _options()
    out = Path(options.out).absolute()
    out.mkdir(parents=True, exist_ok=True)
    try:
        needed = [*_needs(options.base, options.builder), options.uv]
        lacking = [name for name in needed if shutil.which(name) is None]
        if lacking:
            raise PlimsollError(f"not found: {', '.join(lacking)}", _hint(lacking, options.uv))
        with tempfile.TemporaryDirectory(dir=out, prefix="context-") as folder:
            context = Path(folder)
            make_context(context, options.python, options.plugin, options.uv)
            base = options.base
            if base == DEBIAN:
                with tempfile.TemporaryDirectory(dir=out, prefix="base-") as made:
                    base = _base(Path(made), options.builder)
            _build(context, base, options)
        _write(out, options)
    except PlimsollError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    except subprocess.CalledProcessError as error:
        sys.stderr.write(f"error: {' '.join(map(str, error.cmd[:3]))} ended with {error.returncode}\n")
        return 1
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m image", description=__doc__)
    parser.add_argument(
        "--base", default=DEBIAN, help="base image with Python; debian: one of Debian packages, made here"
    )
    parser.add_argument("--python", default=PYTHON, help="version of the base's Python")
    parser.add_argument(
        "--plugin", default=RELEASE, choices=[RELEASE, MODULE],
        help="Pulumi's Kubernetes plugin: its release, which is downloaded, or built from its Go module",
    )  # fmt: skip
    parser.add_argument("--builder", default="buildah", choices=["buildah", "docker", "podman"])
    parser.add_argument("--tag", default=f"plimsoll:{version()}")
    parser.add_argument("--out", default="build/image")
    parser.add_argument("--uv", default=os.environ.get("UV", "uv"))
    return parser.parse_args()


def _needs(base: str, builder: str) -> list[str]:
    return [builder, "git", "go", *(["mmdebstrap"] if base == DEBIAN else [])]


def _hint(lacking: list[str], uv: str) -> str:
    """How to get these programs; `uv` is the name or the path of uv's."""
    packages = [_PACKAGES.get(name, name) for name in lacking if name not in ("go", uv)]
    hints = [f"on Debian: apt-get install --no-install-recommends {' '.join(packages)}"] if packages else []
    # Debian's is older than Pulumi needs.
    hints += ["Go: go.dev/dl"] if "go" in lacking else []
    return "; ".join([*hints, *(["uv: docs.astral.sh/uv, or --uv with its path"] if uv in lacking else [])])


def _base(folder: Path, builder: str) -> str:
    archive = make_base(folder)
    if builder != "buildah":
        run([builder, "import", str(archive), _LOCAL])
        return _LOCAL
    container = run([*_buildah(), "from", "scratch"]).strip()
    try:
        run([*_buildah(), "add", "--quiet", container, str(archive), "/"])
        run([*_buildah(), "commit", "--quiet", "--timestamp", _EPOCH, container, _LOCAL])
    finally:
        run([*_buildah(), "rm", container])
    return _LOCAL


def _build(context: Path, base: str, options: argparse.Namespace) -> None:
    revision = run(["git", "-C", str(CHECKOUT), "rev-parse", "HEAD"]).strip()
    arguments = {
        "BASE": base,
        "VERSION": version(),
        "REVISION": revision,
    }
    command = [options.builder, "build"]
    if options.builder == "buildah":
        # Without a user namespace and an overlay of its own it builds inside other containers, too.
        command = [*_buildah(), "build", "--isolation", "chroot", "--timestamp", _EPOCH, "--quiet"]
    command += [part for name, value in arguments.items() for part in ("--build-arg", f"{name}={value}")]
    run([*command, "--tag", options.tag, "--file", str(CHECKOUT / "image" / "Containerfile"), str(context)])


def _write(out: Path, options: argparse.Namespace) -> None:
    archive = out / "plimsoll.tar"
    archive.unlink(missing_ok=True)
    if options.builder == "buildah":
        run([*_buildah(), "push", "--quiet", options.tag, f"oci-archive:{archive}:{options.tag}"])
    else:
        # podman's default is docker's older format; what docker saves has no other, and is OCI's, too.
        kind = ["--format", "oci-archive"] if options.builder == "podman" else []
        run([options.builder, "save", *kind, "--output", str(archive), options.tag])
    sys.stdout.write(f"{options.tag}: {archive}, {archive.stat().st_size >> 20} MiB\n")


def _buildah() -> list[str]:
    return ["buildah", "--storage-driver", os.environ.get("STORAGE_DRIVER", "vfs")]


if __name__ == "__main__":
    sys.exit(main())
