"""`why` of each kind of object, and `diff`, about a cluster that is listed."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from plimsoll.cli import app
from plimsoll.kube import Connection
from plimsoll.observe.cluster import Stores
from tests.observing.apiserver import FakeApiserver

PATHS = {store.kind.name: store.kind.path for store in Stores()}
TEAM = "asking"
TYPE = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["g6.xlarge"]}
NODE_CLASS = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
WAITS = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}


def a_queue(limit: int) -> dict[str, Any]:
    unlimited = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    gpu = {"quota": 0, "limit": limit, "overQuotaWeight": 1}
    return {"parentQueue": "root", "resources": {"gpu": gpu, "cpu": unlimited, "memory": unlimited}}


@pytest.fixture
def kubeconfig(cluster: FakeApiserver, connection: Connection, tmp_path: Path) -> str:
    """Of a cluster with a pod that its queue keeps out, and a NodePool that could serve it."""
    cluster.serve(*PATHS.values())
    note = {"metadata": {"name": "train.1"}, "reason": "KeptOutByQueue", "note": "not admitted", "type": "Warning"}
    for namespace, events in ((TEAM, [note]), ("default", [])):
        path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
        cluster.raw[path] = json.dumps({"items": events}).encode()
    cluster.put(PATHS["Environment"], "prod", spec={"demand": {"provisioner": "trigger-pod"}})
    unlimited = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    cluster.put(PATHS["Queue"], "root", spec={"resources": dict.fromkeys(("gpu", "cpu", "memory"), unlimited)})
    cluster.put(PATHS["Queue"], "closed", spec=a_queue(0))
    template = {"spec": {"nodeClassRef": NODE_CLASS, "requirements": [TYPE]}}
    cluster.put(PATHS["NodePool"], "l4", spec={"template": template})
    cluster.put(
        PATHS["Pod"], "train", TEAM,
        metadata={"labels": {"kai.scheduler/queue": "closed"}, "annotations": {"gpu-fraction": "0.5"}},
        spec={"schedulerName": "kai-scheduler", "containers": [{"name": "main", "image": "a"}]},
        status={"phase": "Pending", "conditions": [WAITS]},
    )  # fmt: skip
    labels = {"nvidia.com/gpu.product": "NVIDIA-L4", "nvidia.com/gpu.count": "1", "nvidia.com/gpu.memory": "23034"}
    cluster.put(
        PATHS["Node"], "old", metadata={"labels": labels}, spec={"unschedulable": True},
        status={"allocatable": {"nvidia.com/gpu": "1"}, "conditions": [{"type": "Ready", "status": "True"}]},
    )  # fmt: skip
    selector = {"labelSelector": {"matchLabels": {"pool": "a"}}}
    inference = {"preset": {"name": "phi-4"}}
    cluster.put(PATHS["Workspace"], "chat", TEAM, spec={"resource": selector, "inference": inference})
    config = {
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": connection.server}}],
        "users": [{"name": "u", "user": {}}],
    }  # fmt: skip
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(config))
    return str(file)


def asked(kubeconfig: str, code: int, *words: str) -> Any:
    command = [*words, "-o", "json", "--kubeconfig", kubeconfig]
    done = CliRunner().invoke(app, command, catch_exceptions=False)
    assert done.exit_code == code, done.output
    return json.loads(done.stdout)


def test_why_answers_of_each_kind_of_object(kubeconfig: str) -> None:
    of_pod = asked(kubeconfig, 2, "why", "pod", f"{TEAM}/train")
    assert [each["reason"] for each in of_pod["events"]] == ["KeptOutByQueue"]
    (demand,) = {word for link in of_pod["links"] for word in link["text"].split() if word.startswith("closed-")}
    assert ["Queue closed: spec.resources.gpu.limit: 0 -> 1"] in [each["changes"] for each in of_pod["remedies"]]
    for kind, name in (("demand", demand), ("queue", "closed")):
        found = asked(kubeconfig, 2, "why", kind, name)
        assert found["reason"] == "Queue"
        assert found["remedies"] == of_pod["remedies"]
    assert "Queue" in {each["reason"] for each in asked(kubeconfig, 2, "why", "namespace", TEAM)["links"]}
    assert asked(kubeconfig, 2, "why", "node", "old")["reason"] == "NodeUnusable"
    assert asked(kubeconfig, 2, "why", "workspace", f"{TEAM}/chat")["why"]["reason"] == "NoMatchingNodes"


def test_diff_says_what_changed_manifests_mean_in_the_cluster(kubeconfig: str, tmp_path: Path) -> None:
    opened = tmp_path / "queue.yaml"
    queue = {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": "closed"}, "spec": a_queue(1)}
    opened.write_text(yaml.safe_dump(queue))
    found = asked(kubeconfig, 0, "diff", str(opened), "--against", "cluster")
    before, after = found["before"], found["after"]
    assert (before["withoutCapacity"] - after["withoutCapacity"], after["nodes"] - before["nodes"]) == (1, 1)
    assert after["pricePerHour"] > before["pricePerHour"]
