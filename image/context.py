"""The folder that the image is built from: Python packages by their locked hashes, the Pulumi CLI, an SBOM."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from image.base import run
from image.sbom import write_sbom
from plimsoll.apply import plugin_version
from plimsoll.errors import PlimsollError
from plimsoll.sandbox.parts import Installation, find_programs, missing_programs, part

CHECKOUT: Final = Path(__file__).resolve().parents[1]
PLATFORM: Final = "x86_64-manylinux_2_28"
PULUMI: Final = ("pulumi", "pulumi-language-python")
PLUGIN: Final = "pulumi-kubernetes"
RELEASE: Final = "release"
MODULE: Final = "module"
"""Where the Kubernetes plugin comes from."""
EXTRAS: Final = tuple(f"--extra={extra}" for extra in ("aws", "controller", "ui"))
SERVICES: Final = ("ec2", "kms", "pricing", "s3", "ssm", "sso", "sso-oidc", "sts")
"""Of AWS, whose descriptions are kept: a hundred megabytes describe the others."""
UNUSED: Final = ("numpy/*/tests", "numpy/tests", "pip", "pip-*.dist-info", "setuptools*", "bin")


def make_context(folder: Path, python: str, plugin: str, uv: str) -> None:
    """Fills an empty folder. `python` is the version of the base's, `plugin` RELEASE or MODULE.

    Raises CalledProcessError where a command fails, and PlimsollError where a part cannot be had.
    """
    site = folder / "site"
    install_packages(folder, site, python, uv)
    copy_programs(folder / "bin", site)
    install_plugin(folder / "pulumi-home", folder / "bin" / "pulumi", plugin)
    _prune(site)
    write_sbom(folder / "sbom.cdx.json", site, [folder / "bin" / name for name in PULUMI], folder / "pulumi-home")


def install_packages(folder: Path, site: Path, python: str, uv: str) -> None:
    """Makes `site` of the locked packages of the image and of this checkout. What is in between stays in `folder`.

    The same input makes the same files: without installer metadata, which has the address and the time of the wheel.
    """
    requirements = folder / "requirements.txt"
    export = [
        uv,
        "export",
        "--quiet",
        "--locked",
        "--no-default-groups",
        *EXTRAS,
        "--group",
        "image",
        "--no-emit-project",
    ]
    run([*export, "--directory", str(CHECKOUT), "--output-file", str(requirements)])
    install = [uv, "pip", "install", "--quiet", "--target", str(site), "--python-version", python]
    install += ["--python-platform", PLATFORM, "--only-binary", ":all:", "--no-installer-metadata"]
    run([*install, "--require-hashes", "--requirements", str(requirements)])
    run([uv, "build", "--quiet", "--wheel", "--out-dir", str(folder / "wheel"), str(CHECKOUT)])
    run([*install, "--no-deps", *map(str, (folder / "wheel").glob("*.whl"))])


def copy_programs(into: Path, site: Path) -> None:
    """Makes the folder of programs: Pulumi's, which are built, whatever is on PATH, and dumb-init out of `site`.

    Raises PlimsollError where they cannot be built.
    """
    Installation(missing_programs(find_programs(PULUMI, on_path=False))).run()
    into.mkdir()
    for name in PULUMI:
        for program in part(name).cached.glob(f"{name}*"):
            shutil.copy2(program, into / program.name)
    shutil.move(site / "bin" / "dumb-init", into / "dumb-init")


def install_plugin(home: Path, pulumi: Path, plugin: str) -> None:
    """Makes the folder with Pulumi's Kubernetes plugin, under the version of the SDK, which the engine looks for.

    Raises PlimsollError where it cannot be downloaded or built.
    """
    version = plugin_version()
    if plugin == MODULE:
        Installation(missing_programs(find_programs([PLUGIN]))).run()
        folder = home / "plugins" / f"resource-kubernetes-v{version}"
        folder.mkdir(parents=True)
        for file in find_programs([PLUGIN]):
            assert file.path is not None
            shutil.copy2(file.path, folder / file.name)
        return
    home.mkdir()
    command = [str(pulumi), "plugin", "install", "resource", "kubernetes", f"v{version}"]
    done = subprocess.run(
        command, env={**os.environ, "PULUMI_HOME": str(home)}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise PlimsollError(
            f"the kubernetes plugin v{version} cannot be downloaded: {done.stderr.strip()[-300:]}",
            "build the one of its Go module instead, which is older: make image PLUGIN=module",
        )


def _prune(site: Path) -> None:
    """Takes away what the controller never reads."""
    for pattern in UNUSED:
        for path in site.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    for path in (site / "botocore" / "data").iterdir():
        if path.is_dir() and path.name not in SERVICES:
            shutil.rmtree(path)
