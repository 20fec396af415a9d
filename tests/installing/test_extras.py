"""The package without what its extras bring."""

import subprocess
import sys
import tomllib

import pytest
from packaging.requirements import Requirement

from plimsoll.distribution import NAME, missing_extra
from tests.pages import CHECKOUT

EXTRAS = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
MODULES = sorted({Requirement(each).name for extra in ("aws", "controller", "sandbox", "ui") for each in EXTRAS[extra]})
WITHOUT = f"import sys; sys.modules.update(dict.fromkeys({MODULES})); from plimsoll.cli import main; main()"


def plimsoll(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Runs the command where the modules of all extras are missing."""
    command = [sys.executable, "-c", WITHOUT, *arguments]
    return subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", "-f", "examples/byo"),
        ("demand", "-f", "examples/cluster"),
        ("gpus", "-f", "examples/cluster"),
        ("savings", "-f", "examples/cluster"),
        ("queues", "-f", "examples/cluster"),
        ("policy", "check", "examples/trainer"),
        ("estimate", "phi-4", "--instance-type", "p4d.24xlarge"),
        ("catalog", "list"),
        ("run", "--help"),
        ("status", "--help"),
    ],
    ids=" ".join,
)
def test_the_core_needs_no_extra(arguments: tuple[str, ...]) -> None:
    done = plimsoll(*arguments)

    assert done.returncode in (0, 2), done.stderr
    assert "error:" not in done.stderr
    assert done.stdout


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (("prices", "--aws-region", "eu-central-1"), "aws"),
        (("sandbox", "list"), "sandbox"),
        (("ui", "-f", "examples/cluster", "--no-open"), "ui"),
    ],
)
def test_what_needs_an_extra_names_it(arguments: tuple[str, ...], extra: str) -> None:
    done = plimsoll(*arguments)

    assert done.returncode == 1
    assert f"{NAME}[{extra}]" in done.stderr
    assert "Traceback" not in done.stderr


def test_each_package_of_an_extra_is_known_by_it() -> None:
    for extra in ("aws", "controller", "sandbox", "ui"):
        for package in EXTRAS[extra]:
            lacking = missing_extra(ModuleNotFoundError(name=Requirement(package).name))
            assert lacking is not None
            assert f"{NAME}[{extra}]" in str(lacking)
    assert missing_extra(ModuleNotFoundError(name="plimsoll.nothing")) is None
