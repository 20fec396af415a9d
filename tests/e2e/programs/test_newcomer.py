"""A newcomer's first hour: nothing but the wheel, a Python and the pulumi command, with an empty home.

Previews of all that `init` writes, with its policies and on a cluster, are in test_projects.py.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from plimsoll.sandbox.parts import Installation, find_programs, missing_programs
from tests.pages import CHECKOUT

pytest.importorskip("ensurepip", reason="Python makes no virtual environments: install python3-venv")
pytestmark = pytest.mark.e2e
_SECONDS = 400
EXAMPLES = CHECKOUT / "examples"
CACHE = os.environ.get("XDG_CACHE_HOME") or str(Path("~/.cache").expanduser())
PARTS = ("pulumi", "pulumi-language-python", "pulumi-kubernetes")


class Newcomer:
    """Runs commands where nothing of this checkout is, with caches of packages."""

    def __init__(self, folder: Path, tools: Path) -> None:
        self.folder, self._tools = folder, tools

    def run(
        self, *command: str | Path, codes: tuple[int, ...] = (0,), environ: Mapping[str, str] = MappingProxyType({})
    ) -> str:
        """Standard output; with standard error in the message where the exit code is another."""
        caches = {"UV_CACHE_DIR": f"{CACHE}/uv", "PIP_CACHE_DIR": f"{CACHE}/pip"} | {
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


@pytest.fixture(scope="module")
def newcomer(tools: Path, tmp_path_factory: pytest.TempPathFactory) -> Newcomer:
    return Newcomer(tmp_path_factory.mktemp("newcomer"), tools)


@pytest.mark.parametrize("tool", ["uvx", "pipx"])
def test_a_command_runs_without_an_installation(newcomer: Newcomer, wheel: Path, tool: str) -> None:
    command = {
        "uvx": ("uvx", "--quiet", "--python", sys.executable, "--from", str(wheel), "plimsoll"),
        "pipx": ("pipx", "run", "--quiet", "--python", sys.executable, "--spec", str(wheel), "plimsoll"),
    }[tool]
    planned = newcomer.run(*command, "demand", "-f", EXAMPLES / "demand", codes=(2,))
    assert "+ 1 x p4d.24xlarge" in planned


@pytest.fixture(scope="module")
def project(newcomer: Newcomer, wheel: Path) -> Path:
    """The commands of the project's README up to the first that needs a cluster."""
    newcomer.run("uv", "venv", "--quiet", "--python", sys.executable, "first")
    newcomer.run("uv", "pip", "install", "--quiet", "--python", "first/bin/python", wheel)
    first = newcomer.folder / "first" / "bin" / "plimsoll"
    printed = newcomer.run(first, "init", "capacity", "--on", "aws", "--wheel", wheel)
    assert "chosen: --on aws --language yaml --demand" in printed

    project = newcomer.folder / "capacity"
    assert f"./{wheel.name}[" in (project / "requirements.txt").read_text()
    # With pip, by which Pulumi asks for the packages.
    newcomer.run("uv", "venv", "--quiet", "--seed", "--python", sys.executable, project / ".venv")
    # As Pulumi installs both, in the folder of each.
    for folder in (project, project / "policies"):
        install = f"uv pip install --quiet --python {project}/.venv/bin/python --requirement requirements.txt"
        newcomer.run("bash", "-c", f"cd {folder} && {install}")
    assert newcomer.run(project / ".venv/bin/plimsoll", "--version") == newcomer.run(first, "--version")
    return project


def test_from_the_wheel_to_a_project_and_answers(newcomer: Newcomer, project: Path) -> None:
    """Audit, why and diff of files."""
    plimsoll = project / ".venv" / "bin" / "plimsoll"
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


@pytest.fixture(scope="module")
def pulumi(newcomer: Newcomer) -> Mapping[str, str]:
    """Variables with which the pulumi command runs: its programs, a kubeconfig of a cluster that is away, a backend."""
    Installation(missing_programs(find_programs(PARTS))).run()
    folder = newcomer.folder / "bin"
    folder.mkdir()
    for path in (each.path for each in find_programs(PARTS) if each.path is not None):
        (folder / path.name).symlink_to(path)
    user = {"name": "away", "user": {"token": "none"}}
    cluster = {"name": "away", "cluster": {"server": "https://127.0.0.1:1"}}
    context = {"name": "away", "context": {"cluster": "away", "user": "away"}}
    config = {"apiVersion": "v1", "kind": "Config", "clusters": [cluster], "users": [user], "contexts": [context]}
    (newcomer.folder / "kubeconfig").write_text(json.dumps({**config, "current-context": "away"}))
    (newcomer.folder / "state").mkdir()
    return {
        "PATH": str(folder),
        "KUBECONFIG": str(newcomer.folder / "kubeconfig"),
        "PULUMI_BACKEND_URL": f"file://{newcomer.folder}/state",
        "PULUMI_CONFIG_PASSPHRASE": "none",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        # The language host that is built of its Go module does not take it from the project.
        "PULUMI_PYTHON_CMD": str(newcomer.folder / "capacity" / ".venv" / "bin" / "python"),
    }


@pytest.mark.parametrize("stack", ["foundation", "environment"])
def test_the_project_is_previewed_with_its_own_packages(
    newcomer: Newcomer, project: Path, pulumi: Mapping[str, str], stack: str
) -> None:
    """A preview needs a kubeconfig, and no cluster."""
    command = ("pulumi", "--cwd", project, "--non-interactive", "--color", "never")
    newcomer.run(*command, "stack", "init", stack, environ=pulumi)
    preview = newcomer.run(*command, "preview", "--stack", stack, environ=pulumi)
    assert f"plimsoll:index:{stack.title()}" in preview
    assert re.search(r"\+ \d+ to create", preview)


PODS = """
apiVersion: v1
kind: Pod
metadata:
  name: half
  namespace: inference
  labels: {kai.scheduler/queue: inference}
  annotations: {gpu-fraction: "0.5"}
spec:
  schedulerName: kai-scheduler
  schedulingGates: [{name: plimsoll.dev/capacity}]
  tolerations: [{key: nvidia.com/gpu, operator: Exists}]
  containers: [{name: main, image: registry.k8s.io/pause:3.9}]
---
apiVersion: v1
kind: Pod
metadata: {name: typo, namespace: inference, annotations: {gpu-fraction: half}}
spec:
  schedulerName: kai-scheduler
  schedulingGates: [{name: plimsoll.dev/capacity}]
  containers: [{name: main, image: registry.k8s.io/pause:3.9}]
"""
NEW = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: more, namespace: inference}
spec:
  replicas: 2
  selector: {matchLabels: {app: more}}
  template:
    metadata:
      labels: {app: more, kai.scheduler/queue: inference}
      annotations: {gpu-fraction: "0.9"}
    spec:
      schedulerName: kai-scheduler
      tolerations: [{key: nvidia.com/gpu, operator: Exists}]
      containers: [{name: main, image: registry.k8s.io/pause:3.9}]
"""


@pytest.fixture
def cluster(newcomer: Newcomer, project: Path, wheel: Path) -> Iterator[Mapping[str, str]]:
    """A sandbox that the wheel starts, and a project for it; variables of its user. The parts of the sandbox are those
    of the cache."""
    python = project / ".venv" / "bin" / "python"
    newcomer.run(project / ".venv/bin/plimsoll", "init", "live", "--on", "sandbox", "--wheel", wheel)
    newcomer.run("bash", "-c", f"cd live && uv pip install --quiet --python {python} --requirement requirements.txt")
    environ = {
        "PATH": str(python.parent),
        "PLIMSOLL_HOME": str(newcomer.folder / "sandboxes"),
        "XDG_CACHE_HOME": CACHE,
        "GOGC": "300",
    }
    newcomer.run("plimsoll", "sandbox", "up", environ=environ)
    yield environ
    newcomer.run("plimsoll", "sandbox", "down", environ=environ)


def test_from_the_wheel_to_a_cluster_and_answers(newcomer: Newcomer, cluster: Mapping[str, str]) -> None:
    """Both stacks, then audit, why and diff on a real apiserver."""

    def run(script: str, *codes: int) -> str:
        selected = 'eval "$(plimsoll sandbox env)"'
        return newcomer.run("bash", "-euc", f"{selected}\n{script}", codes=codes or (0,), environ=cluster)

    for stack in ("foundation", "environment"):
        run(f"cd live; pulumi stack init {stack}; pulumi up --yes --stack {stack}")
    for name, manifests in (("pods", PODS), ("new", NEW)):
        (newcomer.folder / f"{name}.yaml").write_text(manifests)
    run("kubectl apply --filename pods.yaml")
    audited = json.loads(run("plimsoll audit --output json"))
    assert audited["sections"]["Pods without capacity"]["count"] == 1
    assert audited["sections"]["What Plimsoll would do"]["count"], "a node for the other"
    typo = json.loads(run("plimsoll why pod inference/typo --output json", 2))
    assert (typo["state"], typo["reason"]) == ("Blocked", "Unreadable")
    half = json.loads(run("plimsoll why pod inference/half --output json"))
    assert half["state"] == "Waiting", "a node is to be requested"
    compared = json.loads(run("plimsoll diff new.yaml --against cluster --output json"))
    assert compared["after"]["nodes"] > compared["before"]["nodes"]
