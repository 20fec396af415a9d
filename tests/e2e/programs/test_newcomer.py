"""A newcomer's first hour: nothing but the wheel and a Python, with an empty home.

Previews of what `init` writes are in test_projects.py.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages import CHECKOUT

pytest.importorskip("ensurepip", reason="Python makes no virtual environments: install python3-venv")
pytestmark = pytest.mark.e2e
_SECONDS = 400
EXAMPLES = CHECKOUT / "examples"


class Newcomer:
    """Runs commands where nothing of this checkout is, with caches of packages."""

    def __init__(self, folder: Path, tools: Path) -> None:
        self.folder, self._tools = folder, tools

    def run(self, *command: str | Path, codes: tuple[int, ...] = (0,), **environ: str) -> str:
        """Standard output; with standard error in the message where the exit code is another."""
        cache = os.environ.get("XDG_CACHE_HOME") or str(Path("~/.cache").expanduser())
        caches = {"UV_CACHE_DIR": f"{cache}/uv", "PIP_CACHE_DIR": f"{cache}/pip"} | {
            name: value for name, value in os.environ.items() if name.startswith(("PIP_", "UV_", "SSL_"))
        }
        system = {"HOME": str(self.folder), "LANG": "C.UTF-8", "UV_SYSTEM_CERTS": "1", **caches, **environ}
        system["PATH"] = ":".join(filter(None, [str(self._tools), environ.get("PATH"), "/usr/bin:/bin"]))
        done = subprocess.run(
            command, cwd=self.folder, env=system, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=_SECONDS, check=False,
        )  # fmt: skip
        assert done.returncode in codes, f"{command}: {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done.stdout


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """uv and pipx, of PyPI."""
    folder = tmp_path_factory.mktemp("tools")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True, timeout=_SECONDS)
    pip = [str(folder / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", "uv", "pipx"]
    subprocess.run(pip, check=True, timeout=_SECONDS)
    return folder / "bin"


@pytest.fixture(scope="module")
def wheel(tools: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [str(tools / "uv"), "build", "--quiet", "--wheel", "--out-dir", str(folder)]
    environ = {**os.environ, "UV_SYSTEM_CERTS": "1"}
    subprocess.run(build, cwd=CHECKOUT, env=environ, check=True, timeout=_SECONDS)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture
def newcomer(tools: Path, tmp_path: Path) -> Newcomer:
    return Newcomer(tmp_path, tools)


@pytest.mark.parametrize("tool", ["uvx", "pipx"])
def test_a_command_runs_without_an_installation(newcomer: Newcomer, wheel: Path, tool: str) -> None:
    command = {
        "uvx": ("uvx", "--quiet", "--python", sys.executable, "--from", str(wheel), "plimsoll"),
        "pipx": ("pipx", "run", "--quiet", "--python", sys.executable, "--spec", str(wheel), "plimsoll"),
    }[tool]
    planned = newcomer.run(*command, "demand", "-f", EXAMPLES / "demand", codes=(2,))
    assert "+ 1 x p4d.24xlarge" in planned


def test_from_the_wheel_to_a_project_and_answers(newcomer: Newcomer, wheel: Path) -> None:
    """The commands of the project's README up to the first that needs a cluster, then audit, why and diff of files."""
    newcomer.run("uv", "venv", "--quiet", "--python", sys.executable, "first")
    newcomer.run("uv", "pip", "install", "--quiet", "--python", "first/bin/python", wheel)
    first = newcomer.folder / "first" / "bin" / "plimsoll"
    printed = newcomer.run(first, "init", "capacity", "--on", "aws", "--wheel", wheel)
    assert "chosen: --on aws --language yaml --demand" in printed

    project = newcomer.folder / "capacity"
    assert f"./{wheel.name}[" in (project / "requirements.txt").read_text()
    newcomer.run("uv", "venv", "--quiet", "--python", sys.executable, project / ".venv")
    # As Pulumi installs both, in the folder of each.
    for folder in (project, project / "policies"):
        install = f"uv pip install --quiet --python {project}/.venv/bin/python --requirement requirements.txt"
        newcomer.run("bash", "-c", f"cd {folder} && {install}")
    plimsoll = project / ".venv" / "bin" / "plimsoll"
    assert newcomer.run(plimsoll, "--version") == newcomer.run(first, "--version")
    newcomer.run(
        project / ".venv" / "bin" / "python", "-c", "import plimsoll.stacks, plimsoll.policy_pack, boto3, psutil"
    )

    audited = json.loads(newcomer.run(plimsoll, "audit", EXAMPLES / "demand", "--output", "json"))
    assert audited["sections"]["Pods without capacity"]["count"] == 1
    assert "gpu-fraction" in newcomer.run(plimsoll, "why", "pod", "typo", "-f", EXAMPLES / "demand", codes=(0, 2))
    compared = newcomer.run(
        plimsoll, "diff", EXAMPLES / "demand", "--against", EXAMPLES / "cluster", "-o", "json", codes=(0, 2)
    )
    assert json.loads(compared)
