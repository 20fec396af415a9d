"""`plimsoll explain` on a real apiserver: nodes, status and events as the cluster has them."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import pytest

from plimsoll.components.specs import definitions
from plimsoll.kube import RequestError
from plimsoll.model.api import WorkspaceRef
from plimsoll.report import Event
from plimsoll.sandbox import Sandbox
from tests.builders import gpu_labels
from tests.e2e.awaiting import await_condition
from tests.e2e.conftest import up_sandbox
from tests.e2e.kube import Kube

pytestmark = pytest.mark.e2e

API = "plimsoll.dev/v1alpha1"


@pytest.fixture(scope="module")
def sandbox(sandbox_home: Any) -> Iterator[Sandbox]:
    """The kinds, one node and one Workspace with a condition and an event."""
    for sandbox in up_sandbox("explain", karpenter=False):
        with closing(Kube(sandbox.kubeconfig)) as cluster:
            for definition in definitions():
                cluster.apply(definition)
            await_condition(lambda: served(cluster), message="the kinds are served")
            fill(cluster)
        yield sandbox


def served(cluster: Kube) -> bool:
    try:
        return cluster.list(API, "Workspace") == cluster.list(API, "Environment") == []
    except RequestError:
        return False


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


def test_the_story_is_read_from_the_cluster(sandbox: Sandbox) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "plimsoll", "explain", "workspace", "phi", "-n", "default", "--output", "json",
         "--kubeconfig", str(sandbox.kubeconfig)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode in (0, 2), done.stderr
    told = json.loads(done.stdout)
    assert [(each["name"], each["product"]) for each in told["nodes"]] == [("gpu-0", "NVIDIA-A100-SXM4-80GB")]
    assert told["conditions"][0]["reason"] == "NodesNotReady"
    (event,) = told["events"]
    assert (event["reason"], event["note"]) == ("NodesNotReady", "0 of 1 node ready")
