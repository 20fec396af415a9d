"""Commands that read a real apiserver: `explain`, `status --watch`, `ui`, and the completion of names."""

import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import IO, Any

import pytest
import yaml

from plimsoll.components import NAMESPACE, UI_NAME, Controller, ControllerArgs
from plimsoll.model.api import WorkspaceRef
from plimsoll.report import Event
from plimsoll.sandbox import Sandbox
from tests.awaiting import await_condition
from tests.builders import gpu_labels
from tests.components.declaring import declared, manifest
from tests.e2e.cluster.kinds import define_kinds
from tests.e2e.cluster.kube import Kube
from tests.e2e.cluster.sandboxes import up_sandbox

pytestmark = pytest.mark.e2e

API = "plimsoll.dev/v1alpha1"


@pytest.fixture(scope="module")
def sandbox(sandbox_home: Any) -> Iterator[Sandbox]:
    """The CRDs, one node, and one Workspace with a condition and an event."""
    for sandbox in up_sandbox("explain", karpenter=False):
        with closing(Kube(sandbox.kubeconfig)) as cluster:
            define_kinds(cluster)
            fill(cluster)
        yield sandbox


def fill(cluster: Kube) -> None:
    labels = {**gpu_labels(), "pool": "a"}
    cluster.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gpu-0", "labels": labels}})
    spec = {
        "resource": {"labelSelector": {"matchLabels": {"pool": "a"}}},
        "inference": {"preset": {"name": "phi-4-mini-instruct"}},
    }
    workspace = {"apiVersion": API, "kind": "Workspace", "metadata": {"name": "phi", "namespace": "default"}}
    uid = cluster.apply({**workspace, "spec": spec})["metadata"]["uid"]
    now = datetime.now(UTC)
    condition = {
        "type": "ResourceReady",
        "status": "False",
        "reason": "NodesNotReady",
        "message": "0 of 1 node ready",
        "lastTransitionTime": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    cluster.patch(API, "Workspace", "phi", {"status": {"conditions": [condition]}}, subresource="status")
    ref = WorkspaceRef(namespace="default", name="phi", uid=uid)
    cluster.apply(Event(ref, "Warning", "NodesNotReady", "Judge", "0 of 1 node ready").manifest(now, "test"))


def test_explain_reads_the_cluster(sandbox: Sandbox) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "plimsoll", "why", "workspace", "phi", "-n", "default", "--output", "json",
         "--kubeconfig", str(sandbox.kubeconfig)],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode in (0, 2), done.stderr
    reported = json.loads(done.stdout)
    assert [(each["name"], each["product"]) for each in reported["nodes"]] == [("gpu-0", "NVIDIA-A100-SXM4-80GB")]
    assert reported["conditions"][0]["reason"] == "NodesNotReady"
    (event,) = reported["events"]
    assert (event["reason"], event["note"]) == ("NodesNotReady", "0 of 1 node ready")


def test_names_are_completed_from_the_cluster(sandbox: Sandbox) -> None:
    asked = {"_PLIMSOLL_COMPLETE": "complete_bash", "KUBECONFIG": str(sandbox.kubeconfig)}
    for words, found in (
        ("why workspace p", "phi"),
        ("why workspace default/", "default/phi"),
        ("status -n d", "default"),
    ):
        line = ["plimsoll", *words.split(" ")]
        more = {"COMP_WORDS": " ".join(line), "COMP_CWORD": str(len(line) - 1)}
        done = subprocess.run(
            [Path(sys.executable).with_name("plimsoll")], env={**os.environ, **asked, **more},
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.stdout.split() == [found], done.stderr


def test_the_status_is_printed_again_after_a_change(sandbox: Sandbox) -> None:
    with running("status", "--watch", "--output", "yaml", "--kubeconfig", str(sandbox.kubeconfig)) as watching:
        assert watching.stdout is not None
        until(watching.stdout, "NodesNotReady")
        with closing(Kube(sandbox.kubeconfig)) as cluster:
            condition = {"type": "ResourceReady", "status": "True", "reason": "Watched", "message": ""}
            condition["lastTransitionTime"] = "2026-01-01T00:00:00Z"
            cluster.patch(API, "Workspace", "phi", {"status": {"conditions": [condition]}}, subresource="status")
        until(watching.stdout, "Watched")


def test_the_pages_show_a_change_of_the_cluster_within_a_second(sandbox: Sandbox) -> None:
    command = ("ui", "--no-open", "--port", "0", "--kubeconfig", str(sandbox.kubeconfig))
    with closing(Kube(sandbox.kubeconfig)) as cluster, running(*command) as serving:
        gpus = {"nvidia.com/gpu": "1"}
        cluster.patch("v1", "Node", "gpu-0", {"status": {"capacity": gpus, "allocatable": gpus}}, subresource="status")
        assert serving.stderr is not None
        address = re.search(r"http://\S+", until(serving.stderr, "Plimsoll is at"))
        assert address is not None
        with urllib.request.urlopen(f"{address[0]}events", timeout=30) as events:
            assert events.readline().startswith(b"data: ")
            await_condition(
                lambda: re.search(r"\bReady\b", page_or_none(f"{address[0]}nodes/gpu-0")), message="the node is shown"
            )

            def is_shown(cordoned: bool) -> bool:
                return ("Cordoned" in page(f"{address[0]}nodes/gpu-0")) == cordoned

            for cordoned in (True, False, True):
                cluster.patch("v1", "Node", "gpu-0", {"spec": {"unschedulable": cordoned}})
                await_condition(partial(is_shown, cordoned), message="the change is shown")
            assert [line for line in (events.readline(), events.readline()) if line.startswith(b"data: ")]


def test_the_deployment_of_the_pages_has_the_arguments_and_rights_that_they_need(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    """The command of its container runs with the token of its account."""
    settings: ControllerArgs = {"image": "a:1", "backend": "s3://states", "passphrase": {"name": "plimsoll"}, "ui": {}}
    made = declared(lambda: Controller("controller", settings))
    with closing(Kube(sandbox.kubeconfig)) as cluster:
        cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        for kind in ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Service", "NetworkPolicy", "Deployment"):
            cluster.apply(manifest(made, kind, UI_NAME))
        config = yaml.safe_load(sandbox.kubeconfig.read_text())
        config["users"] = [
            {"name": each["name"], "user": {"token": cluster.token(NAMESPACE, UI_NAME)}} for each in config["users"]
        ]
        deployment = cluster.get("apps/v1", "Deployment", UI_NAME, NAMESPACE) or {}
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(config))
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    words = ["0" if each == str(container["ports"][0]["containerPort"]) else each for each in container["args"]]
    with running(*words, "--kubeconfig", str(kubeconfig)) as serving:
        assert serving.stderr is not None
        address = re.search(r"http://\S+", until(serving.stderr, "Plimsoll is at"))
        assert address is not None
        assert page(f"{address[0]}{container['readinessProbe']['httpGet']['path'][1:]}") == "ok"
        explanation = page(f"{address[0]}workspaces/default/phi")
        assert "0 of 1 node ready" in explanation, "the event is read, too"
        assert "forbidden" not in "".join(page(f"{address[0]}{view}") for view in ("", "queues", "demand", "plan"))


def page(address: str) -> str:
    """The page. An HTTPError if it cannot be shown."""
    with urllib.request.urlopen(address, timeout=30) as answer:
        text: str = answer.read().decode()
        return text


def page_or_none(address: str) -> str:
    """The page; empty while there is none."""
    try:
        return page(address)
    except urllib.error.HTTPError as error:
        assert error.code == 404
        return ""


@contextmanager
def running(*words: str) -> Iterator[subprocess.Popen[str]]:
    """A command that runs until the block ends."""
    process = subprocess.Popen(
        [sys.executable, "-m", "plimsoll", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=120)


def until(lines: IO[str], text: str) -> str:
    """The first line that contains the text."""
    for line in lines:
        if text in line:
            return line
    raise AssertionError(f"ended without {text!r}")
