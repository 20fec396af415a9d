"""The commands of the production guide: from an empty cluster to a running controller, a takeover, an upgrade and a
removal.

The commands are those of docs/guides/production.md, section by section in one shell session. The bucket is moto's, and
tests/e2e/cluster/kubelet.py runs the containers of the pods.
"""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from plimsoll.sandbox import Sandbox
from tests.awaiting import await_condition
from tests.e2e.cluster.aws import bucket_url, serving_bucket
from tests.e2e.cluster.conditions import condition
from tests.e2e.cluster.kube import Kube
from tests.e2e.cluster.kubelet import NAMESPACE, SELECTOR, Kubelet, a_kubelet
from tests.e2e.cluster.sandboxes import up_sandbox
from tests.pages import CHECKOUT

pytestmark = pytest.mark.e2e

API: Final = "plimsoll.dev/v1alpha1"
BUCKET: Final = "s3://states/prod?region=eu-central-1"
PIP: Final = ".venv/bin/pip install --quiet -r requirements.txt\n"
WHEELS: Final = {
    f"python3 -m venv .venv\n{PIP}": f"ln -s {sys.prefix} .venv\n",
    PIP: "grep plimsoll-gpu.*==0.4.0 requirements.txt && grep plimsoll-gpu==0.4.0 policies/requirements.txt\n",
}
"""What is run instead of commands for wheels: the project runs in the environment of this Python."""
NODES: Final = "sn,cpu_milli,memory_mib,gpu,model\n" + "".join(
    f"a100-{n},96000,1179648,8,A100-80GB\n" for n in range(2)
)
CREDENTIALS: Final = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}


def commands(section: str) -> str:
    text = (CHECKOUT / "docs/guides/production.md").read_text()
    body = re.search(rf"^## {section}\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    assert body is not None
    return "\n".join(re.findall(r"^```console\n(.*?)^```", body[1], re.DOTALL | re.MULTILINE))


class Reader:
    """Runs the commands of the guide; variables and the working directory persist between sections."""

    def __init__(self, folder: Path, sandbox: Sandbox, url: str) -> None:
        self._folder, self._url = folder, url
        self._session = folder / "session"
        self._session.write_text(f"cd {folder}\n")
        self._environ = {**os.environ, **sandbox.environ(), **CREDENTIALS}

    def follow(self, section: str) -> str:
        """Runs the commands of a section and returns their output; each must succeed."""
        typed = commands(section).replace(BUCKET, self._url)
        for printed, run in WHEELS.items():
            typed = typed.replace(printed, run)
        kept = f'{{ export -p; echo "cd $PWD"; }} > {self._session}'
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", f"source {self._session}\nset -x\n{typed}\n{kept}"],
            env=self._environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            check=False, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-5000:]
        return done.stdout


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    with serving_bucket("states") as endpoint:
        yield bucket_url(endpoint, "states/prod")


@pytest.fixture(scope="module")
def sandbox(sandbox_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """An empty cluster with existing nodes."""
    table = tmp_path_factory.mktemp("nodes") / "nodes.csv"
    table.write_text(NODES)
    for sandbox in up_sandbox("production", karpenter=False):
        command = [sys.executable, "-m", "plimsoll", "sandbox", "nodes", "--name", sandbox.name, "--from", str(table)]
        subprocess.run(command, check=True, capture_output=True)
        yield sandbox


@pytest.fixture(scope="module")
def reader(sandbox: Sandbox, bucket: str, tmp_path_factory: pytest.TempPathFactory) -> Reader:
    return Reader(tmp_path_factory.mktemp("reader"), sandbox, bucket)


@pytest.fixture(scope="module")
def kubelet(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubelet]:
    with a_kubelet(sandbox, tmp_path_factory.mktemp("pods") / "pods", **CREDENTIALS) as it:
        yield it


@pytest.fixture
def cluster(sandbox: Sandbox) -> Iterator[Kube]:
    reached = Kube(sandbox.kubeconfig)
    yield reached
    reached.close()


def holder(cluster: Kube) -> str:
    lease = cluster.get("coordination.k8s.io/v1", "Lease", "plimsoll", NAMESPACE) or {"spec": {}}
    return str(lease["spec"].get("holderIdentity") or "").partition("_")[0]


def served(cluster: Kube, name: str) -> bool:
    status = condition(cluster.get(API, "Workspace", name, "inference"), "ResourceReady").get("status")
    return status == "True" and cluster.get("apps/v1", "Deployment", name, "inference") is not None


def a_workspace(name: str) -> dict[str, object]:
    selector = {"matchLabels": {"nvidia.com/gpu.present": "true"}}
    template = {"spec": {"containers": [{"name": "main", "image": "registry.k8s.io/pause:3.10"}]}}
    inference = {"replicas": 1, "template": template}
    spec = {"resource": {"labelSelector": selector}, "inference": inference, "queue": "inference"}
    return {"apiVersion": API, "kind": "Workspace", "metadata": {"name": name, "namespace": "inference"}, "spec": spec}


def test_from_an_empty_cluster_to_a_running_controller(reader: Reader, kubelet: Kubelet, cluster: Kube) -> None:
    reader.follow("Install")
    await_condition(lambda: len(kubelet.running) == 2, 120, "two pods' containers")
    await_condition(lambda: holder(cluster) in kubelet.running, 120, "a controller that holds the Lease")
    await_condition(lambda: served(cluster, "phi"), 120, "the workload of the environment's Workspace")


def test_a_takeover(reader: Reader, kubelet: Kubelet, cluster: Kube) -> None:
    before = holder(cluster)
    reader.follow("Takeover")
    await_condition(lambda: holder(cluster) not in (before, ""), 120, "another holder of the Lease")
    cluster.apply(a_workspace("after-takeover"))
    await_condition(lambda: served(cluster, "after-takeover"), 120, "the work of the other pod")


def test_an_upgrade(reader: Reader, kubelet: Kubelet, cluster: Kube) -> None:
    reader.follow("Upgrade")
    newer = "registry.example.com/plimsoll:0.4.0"
    await_condition(
        lambda: [kubelet.images[name] for name in list(kubelet.running)] == [newer] * 2,
        120,
        "pods of the newer image alone",
    )
    await_condition(lambda: holder(cluster) in kubelet.running, 120, "a newer pod that holds the Lease")
    assert served(cluster, "phi"), "what ran goes on"
    cluster.delete(API, "Workspace", "after-takeover", "inference")
    await_condition(
        lambda: cluster.get("apps/v1", "Deployment", "after-takeover", "inference") is None, 120, "the newer pod's work"
    )


def test_a_removal(reader: Reader, kubelet: Kubelet, cluster: Kube) -> None:
    message = reader.follow("Removal")
    assert "destroyed: the stack environment" in message
    assert "destroyed: the stack foundation" in message
    await_condition(lambda: not kubelet.running, 120, "the end of the processes of the deleted pods")
    # One that had just begun ends by the signal itself, as it does not handle it yet.
    stopped = {0, -signal.SIGTERM}
    assert set(kubelet.ended.values()) <= stopped, "each stopped when its pod was deleted, not before"
    assert cluster.list("v1", "Pod", NAMESPACE, SELECTOR) == []
    assert cluster.get("v1", "Namespace", NAMESPACE) is None
    assert cluster.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", "workspaces.plimsoll.dev") is None
