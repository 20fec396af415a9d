"""The image that is built runs as the controller: isolated, with the account, settings and permissions of its
Deployment."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from demo.stage import Stage
from demo.working_copy import CHECKOUT
from plimsoll.sandbox import Sandbox
from plimsoll.sandbox.processes import hold_port, port_of
from tests.awaiting import await_condition
from tests.e2e.cluster.conditions import condition
from tests.e2e.cluster.kube import Kube
from tests.e2e.cluster.sandboxes import up_sandbox

LACKING: Final = [tool for tool in ("buildah", "mmdebstrap", "bwrap", "go") if shutil.which(tool) is None]
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(os.geteuid() != 0, reason="an image's file system is made and mounted by root"),
    pytest.mark.skipif(bool(LACKING), reason=f"not on PATH: {', '.join(LACKING)}; see docs/guides/production.md"),
]

API = "plimsoll.dev/v1alpha1"
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
HEADER = "sn,cpu_milli,memory_mib,gpu,model\n"


def buildah(*arguments: str) -> str:
    command = ["buildah", "--storage-driver", os.environ.get("STORAGE_DRIVER", "vfs"), *arguments]
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True).stdout


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The image's name in buildah's store."""
    out = CHECKOUT / "build" / "image"
    tag = "localhost/plimsoll-tested:latest"
    command = [sys.executable, "-m", "image", "--plugin", "module", "--tag", tag, "--out", str(out)]
    uv = CHECKOUT / ".uv" / "bin" / "uv"
    done = subprocess.run(
        [*command, *(["--uv", str(uv)] if uv.exists() else [])],
        cwd=CHECKOUT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    print(done.stdout)  # noqa: T201
    yield tag
    buildah("rmi", tag)


@pytest.fixture(scope="module")
def root(image: str) -> Iterator[Path]:
    """The image's root file system."""
    container = buildah("from", image).strip()
    yield Path(buildah("mount", container).strip())
    buildah("rm", container)


@pytest.fixture(scope="module")
def sandbox(sandbox_home: Path) -> Iterator[Sandbox]:
    yield from up_sandbox("image", karpenter=False)


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """Of the controller's probes."""
    with hold_port() as held:
        yield port_of(held)


@pytest.fixture(scope="module")
def stage(sandbox: Sandbox, port: int, tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """The foundation with the controller's Deployment, and one existing node."""
    folder = tmp_path_factory.mktemp("image")
    stage = Stage.on(sandbox, folder)
    settings = {
        "image": "localhost/plimsoll-tested:latest",
        "stateClaim": "state",
        "passphrase": {"name": "plimsoll"},
        "healthProbePort": port,
    }
    file = stage.project / "stacks" / "Pulumi.sandbox-foundation.yaml"
    config = yaml.safe_load(file.read_text())
    config["config"]["plimsoll:controller"] = settings
    file.write_text(yaml.safe_dump(config))
    table = folder / "nodes.csv"
    table.write_text(HEADER + "a100-0,96000,1179648,8,A100-80GB\n")
    stage.run("pulumi", "stack", "init", "sandbox-foundation")
    stage.run("pulumi", "up", "--yes", "--skip-preview", "--stack", "sandbox-foundation")
    stage.run("plimsoll", "sandbox", "nodes", "--name", sandbox.name, "--from", str(table))
    stage.run("kubectl", "label", "node", "a100-0", "pool=image")
    return stage


@pytest.fixture
def cluster(kube: Callable[..., Kube], sandbox: Sandbox, stage: Stage) -> Kube:
    reached = kube(sandbox)
    reached.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "inference"}})
    reached.apply({"apiVersion": API, "kind": "Environment", "metadata": {"name": "prod"}, "spec": {}})
    return reached


class Container:
    """The controller's container, as described by the Deployment, in its own namespaces."""

    def __init__(self, image: str, root: Path, template: dict[str, Any], cluster: Kube, sandbox: Sandbox, folder: Path):
        config = json.loads(buildah("inspect", image))["OCIv1"]["config"]
        described = template["spec"]["containers"][0]
        self.log = folder / "log"
        self._root, self._folder = root, folder
        (probed,) = (each for each in described["ports"] if each["name"] == "probes")
        self._address = f"http://127.0.0.1:{probed['containerPort']}"
        for name in ("proc", "dev", "tmp"):
            (root / name).mkdir(exist_ok=True)
        binds = [*self._volumes(template), *self._account(cluster, sandbox)]
        host, _, port = cluster.server.removeprefix("https://").rpartition(":")
        variables = dict(each.split("=", 1) for each in config["Env"])
        variables |= {each["name"]: each["value"] for each in described["env"]}
        variables |= {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
        user, _, group = config["User"].partition(":")
        command = [
            "bwrap", "--unshare-all", "--share-net", "--hostname", "controller-0", "--die-with-parent", "--as-pid-1",
            "--cap-drop", "ALL", "--clearenv", "--uid", user, "--gid", group,
            "--ro-bind", str(root), "/", "--proc", "/proc", "--dev", "/dev",
            *binds, "--chdir", config["WorkingDir"],
            *(part for name, value in variables.items() for part in ("--setenv", name, value)),
            *config["Entrypoint"], *described["args"],
        ]  # fmt: skip
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def _volumes(self, template: dict[str, Any]) -> Iterator[str]:
        kinds = {each["name"]: each for each in template["spec"]["volumes"]}
        for mount in sorted(template["spec"]["containers"][0]["volumeMounts"], key=lambda each: each["mountPath"]):
            source = self._folder / mount["name"]
            source.mkdir(exist_ok=True)
            if "secret" in kinds[mount["name"]]:
                (source / "passphrase").write_text("open sesame")
            yield from self._bind(source, mount["mountPath"], read_only=bool(mount.get("readOnly")))

    def _account(self, cluster: Kube, sandbox: Sandbox) -> Iterator[str]:
        source = self._folder / "account"
        source.mkdir(exist_ok=True)
        (source / "token").write_text(cluster.token("plimsoll-system", "plimsoll"))
        (source / "namespace").write_text("plimsoll-system")
        known = yaml.safe_load(sandbox.kubeconfig.read_text())["clusters"][0]["cluster"]
        shutil.copyfile(known["certificate-authority"], source / "ca.crt")
        yield from self._bind(source, ACCOUNT, read_only=True)

    def _bind(self, source: Path, target: str, *, read_only: bool) -> Iterator[str]:
        """Creates a mount point in the image's file system, as container runtimes do."""
        place = self._root / target.lstrip("/")
        if (run := self._root / "var/run").is_symlink() and target.startswith("/var/run/"):
            place = self._root / str(run.readlink()).lstrip("/") / target.removeprefix("/var/run/")
            target = "/" + str(place.relative_to(self._root))
        nested = self._folder / "work"
        if target.startswith("/var/lib/plimsoll/"):
            (nested / target.removeprefix("/var/lib/plimsoll/")).mkdir(parents=True, exist_ok=True)
        place.mkdir(parents=True, exist_ok=True)
        yield from ("--ro-bind" if read_only else "--bind", str(source), target)

    def get(self, path: str) -> int:
        try:
            with urllib.request.urlopen(f"{self._address}{path}", timeout=5) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return 0

    def stop(self) -> int:
        """Sends SIGTERM to the container's process 1 and returns the exit code."""
        if self.process.poll() is None:
            children = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
            for child in Path(children).read_text().split():
                os.kill(int(child), 15)
        return self.process.wait(timeout=120)


@pytest.fixture
def container(image: str, root: Path, cluster: Kube, sandbox: Sandbox, tmp_path: Path) -> Iterator[Container]:
    deployment = cluster.get("apps/v1", "Deployment", "plimsoll-controller", "plimsoll-system")
    assert deployment is not None
    running = Container(image, root, deployment["spec"]["template"], cluster, sandbox, tmp_path)
    yield running
    running.stop()
    print(running.log.read_text()[-6000:])  # noqa: T201 - pytest shows it where a test fails


def test_pods_of_the_controller_are_admitted_under_pod_security_restricted(cluster: Kube) -> None:
    namespace = cluster.get("v1", "Namespace", "plimsoll-system") or {}
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    component = "app.kubernetes.io/component=controller"
    await_condition(
        lambda: len(cluster.list("v1", "Pod", "plimsoll-system", component)) == 2, 120, "both pods of the Deployment"
    )
    assert cluster.get("policy/v1", "PodDisruptionBudget", "plimsoll-controller", "plimsoll-system")


def test_it_trusts_certificates_and_has_no_package_manager(root: Path) -> None:
    assert (root / "etc/ssl/certs/ca-certificates.crt").stat().st_size
    assert "plimsoll:x:65532" in (root / "etc/passwd").read_text()
    assert not [*root.glob("usr/*bin/dpkg*"), *root.glob("usr/bin/apt*")]


def test_it_contains_its_sbom_and_labels(root: Path) -> None:
    bill = json.loads((root / "opt/plimsoll/sbom.cdx.json").read_text())
    programs = {"github.com/pulumi/pulumi/pkg/v3", "github.com/pulumi/pulumi-kubernetes/provider/v4"}
    assert {"stdlib", *programs} <= {each["name"] for each in bill["components"]}
    listed = {each["name"] for each in bill["components"] if each["purl"].startswith("pkg:pypi/")}
    packages = [each.name.partition("-")[0] for each in (root / "opt/plimsoll/site").glob("*.dist-info")]
    assert listed == {re.sub(r"[-_.]+", "-", name).lower() for name in packages}
    assert {"plimsoll-gpu", "pulumi", "kubernetes"} <= listed


def test_it_provisions_the_workload_of_a_workspace(container: Container, cluster: Kube) -> None:
    began = time.monotonic()
    await_condition(lambda: container.get("/readyz") == 200, 120, "a controller that is ready")
    print(f"ready after {time.monotonic() - began:.1f} s")  # noqa: T201
    manifest: dict[str, Any] = {
        "apiVersion": API,
        "kind": "Workspace",
        "metadata": {"name": "served", "namespace": "inference"},
        "spec": {
            "resource": {"labelSelector": {"matchLabels": {"pool": "image"}}},
            "inference": {
                "replicas": 1,
                "template": {"spec": {"containers": [{"name": "main", "image": "registry.k8s.io/pause:3.10"}]}},
            },
        },
    }
    cluster.apply(manifest)
    await_condition(
        lambda: cluster.get("apps/v1", "Deployment", "served", "inference"), 120, "the workload of the Workspace"
    )
    await_condition(
        lambda: (
            condition(cluster.get(API, "Workspace", "served", "inference"), "ResourceReady").get("status") == "True"
        ),
        120,
        "a Workspace with its nodes",
    )
    cluster.delete(API, "Workspace", "served", "inference")
    await_condition(
        lambda: cluster.get("apps/v1", "Deployment", "served", "inference") is None, 120, "the workload is gone"
    )
    assert container.stop() == 0
    log = container.log.read_text()
    assert "forbidden" not in log
    assert "Traceback" not in log
