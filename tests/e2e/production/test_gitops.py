"""The manifests of the GitOps guide on a real cluster: each part with its own account and permissions."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from demo.stage import Stage
from demo.working_copy import CHECKOUT
from plimsoll.sandbox import Sandbox
from plimsoll.sandbox.parts import Installation, find_programs, missing_programs, part
from tests.e2e.cluster.kube import Kube
from tests.e2e.cluster.sandboxes import up_sandbox

pytestmark = pytest.mark.e2e

EXAMPLES = CHECKOUT / "examples" / "gitops"
GITOPS = ("argo-cd", "flux-kustomize-controller", "flux-source-controller")
FLUX = "system:serviceaccount:inference:flux"
TRACKING = "argocd.argoproj.io/tracking-id"
SYNC = ("--server-side", "--field-manager=kustomize-controller", f"--as={FLUX}")


@pytest.fixture(scope="module")
def sandbox(sandbox_home: Path) -> Iterator[Sandbox]:
    yield from up_sandbox("gitops", karpenter=True)


@pytest.fixture(scope="module")
def stage(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """The foundation and the CRDs of the GitOps tools; an environment's stack without Workspaces is ready to be
    deployed."""
    folder = tmp_path_factory.mktemp("gitops")
    stage = Stage.on(sandbox, folder)
    file = stage.project / "stacks" / "Pulumi.sandbox-nap.yaml"
    config = yaml.safe_load(file.read_text())
    del config["config"]["plimsoll:workspaces"]
    file.write_text(yaml.safe_dump(config))
    stage.run("pulumi", "stack", "init", "sandbox-nap-foundation")
    stage.run("pulumi", "up", "--yes", "--skip-preview", "--stack", "sandbox-nap-foundation")
    Installation(missing_programs(find_programs(GITOPS))).run()
    for name in GITOPS:
        stage.run("kubectl", "apply", "--server-side", "-f", str(part(name).cached / "crds"))
    stage.run("kubectl", "wait", "--for=condition=Established", "crd", "--all", "--timeout=120s")
    return stage


@pytest.fixture
def cluster(kube: Callable[..., Kube], sandbox: Sandbox, stage: Stage) -> Kube:
    return kube(sandbox)


def manifests(name: str, *, without: tuple[str, ...] = ()) -> str:
    """The documents of an example as one text, without some kinds."""
    found = yaml.safe_load_all((EXAMPLES / name).read_text())
    return yaml.safe_dump_all(each for each in found if each["kind"] not in without)


def applied(stage: Stage, text: str, *options: str) -> None:
    file = stage.project / "applied.yaml"
    file.write_text(text)
    message = stage.run("kubectl", "apply", "--server-side", "--validate=strict", *options, "-f", str(file))
    assert "Warning" not in message


def kubeconfig_of(cluster: Kube, sandbox: Sandbox, namespace: str, account: str, folder: Path) -> Path:
    """A kubeconfig as from the files in a pod of that account: its token, and the cluster's certificate."""
    config = yaml.safe_load(sandbox.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": cluster.token(namespace, account)}
    path = folder / f"{account}.yaml"
    path.write_text(yaml.safe_dump(config))
    return path


def run(command: list[str], folder: Path, **environ: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command, cwd=folder, env={**os.environ, **environ}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


def test_the_operators_account_can_deploy_the_environment_and_nothing_else(
    stage: Stage, cluster: Kube, sandbox: Sandbox, tmp_path: Path
) -> None:
    applied(stage, manifests("pulumi-operator.yaml", without=("Stack",)))
    kubeconfig = kubeconfig_of(cluster, sandbox, "pulumi", "gpu-capacity", tmp_path)
    environ = {**stage.environs["admin"], "KUBECONFIG": str(kubeconfig)}
    for command in (
        ["pulumi", "stack", "init", "sandbox-nap"],
        ["pulumi", "up", "--yes", "--skip-preview", "--stack", "sandbox-nap"],
        ["pulumi", "refresh", "--yes", "--stack", "sandbox-nap", "--expect-no-changes"],
    ):
        done = run(command, stage.project, **environ)
        assert done.returncode == 0, done.stdout + done.stderr
    for refused in ("deployments.apps", "nodeclaims.karpenter.sh", "secrets"):
        stage.run(
            "kubectl", "auth", "can-i", "create", refused, "--as=system:serviceaccount:pulumi:gpu-capacity", expect=1
        )


def test_the_manifests_are_valid_by_their_crds(stage: Stage) -> None:
    stage.run("kubectl", "create", "namespace", "argocd")
    applied(stage, manifests("argo-cd.yaml"), "--dry-run=server")
    applied(stage, manifests("flux.yaml"))
    applied(stage, manifests("drift.yaml"))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A checkout of the repository with the Workspaces."""
    shutil.copytree(EXAMPLES / "workspaces", tmp_path / "workspaces")
    shutil.copy(EXAMPLES / "policies.yaml", tmp_path)
    return tmp_path


def steps() -> dict[str, str]:
    """The named commands of the CI jobs."""
    jobs = yaml.safe_load((EXAMPLES / "ci.yaml").read_text())["jobs"].values()
    return {each["name"]: each["run"] for job in jobs for each in job["steps"] if "name" in each}


def ci(stage: Stage, step: str, repository: Path) -> int:
    done = run(["bash", "-euo", "pipefail", "-c", steps()[step]], repository, **stage.environs["controller"])
    print(done.stdout, done.stderr)  # noqa: T201 - pytest shows it where a test fails
    return done.returncode


def test_the_ci_job_fails_at_a_finding_and_shows_it(stage: Stage, repository: Path) -> None:
    wrong: dict[str, Any] = yaml.safe_load((repository / "workspaces" / "phi.yaml").read_text())
    wrong["metadata"]["name"] = "Phi"
    wrong["spec"]["tuning"] = {"preset": {"name": "phi-4"}}
    (repository / "workspaces" / "wrong.yaml").write_text(yaml.safe_dump(wrong))
    assert ci(stage, "Check the manifests", repository) == 2
    (found,) = json.loads((repository / "policies.sarif").read_text())["runs"]
    assert {each["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for each in found["results"]} == {
        "workspaces/wrong.yaml"
    }


def test_a_synced_workspace_gets_capacity_and_stays_in_sync(stage: Stage, cluster: Kube, repository: Path) -> None:
    file = repository / "workspaces" / "phi.yaml"
    synced = yaml.safe_load(file.read_text())
    synced["metadata"]["annotations"] = {TRACKING: "inference:plimsoll.dev/Workspace:inference/phi"}
    file.write_text(yaml.safe_dump(synced))
    assert ci(stage, "Check the manifests", repository) == 0
    stage.run("kubectl", "apply", *SYNC, "-f", str(repository / "workspaces"))
    assert ci(stage, "Bring the capacity", repository) == 0
    # Neither status nor finalizer nor default is a difference to the tool.
    stage.run("kubectl", "diff", *SYNC, "-f", str(repository / "workspaces"))
    made = [
        *cluster.list("karpenter.sh/v1", "NodeClaim"),
        *cluster.list("apps/v1", "Deployment", "inference"),
        *cluster.list("v1", "Service", "inference"),
    ]
    assert len(made) >= 3
    assert all(TRACKING not in (each["metadata"].get("annotations") or {}) for each in made), "no tool prunes them"


def test_the_drift_job_reports_drift_by_its_exit_code(
    stage: Stage, cluster: Kube, sandbox: Sandbox, tmp_path: Path
) -> None:
    (job,) = (each for each in yaml.safe_load_all((EXAMPLES / "drift.yaml").read_text()) if each["kind"] == "CronJob")
    (container,) = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    kubeconfig = kubeconfig_of(cluster, sandbox, "plimsoll-system", "plimsoll-drift", tmp_path)

    def drift() -> tuple[int, str]:
        # The image's entry point, with the job's arguments; where the state lies is the sandbox's.
        environ = {**stage.environs["controller"], "KUBECONFIG": str(kubeconfig)}
        done = run(["plimsoll", *container["args"]], tmp_path, **environ)
        assert "forbidden" not in done.stderr
        return done.returncode, done.stdout + done.stderr

    code, message = drift()
    assert (code, "no drift" in message) == (0, True), message
    image = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "registry.example/other:2"}]
    stage.run("kubectl", "-n", "inference", "patch", "deployment", "phi", "--type=json", "-p", json.dumps(image))
    code, message = drift()
    assert code == 2, message
    assert "spec.template.spec.containers[0].image" in message


def test_a_pruned_workspace_releases_its_capacity(stage: Stage, cluster: Kube, repository: Path) -> None:
    stage.run("kubectl", "delete", "workspace.plimsoll.dev", "phi", "-n", "inference", "--wait=false", f"--as={FLUX}")
    assert ci(stage, "Bring the capacity", repository) == 0
    assert cluster.get("plimsoll.dev/v1alpha1", "Workspace", "phi", "inference") is None
    assert cluster.list("karpenter.sh/v1", "NodeClaim") == []
