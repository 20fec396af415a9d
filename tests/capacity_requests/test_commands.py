"""Demand in the commands: `plan` from files, `run --once`, and `status`."""

from pathlib import Path

import orjson
from typer.testing import CliRunner

from plimsoll.apply import Outcome
from plimsoll.cli import app
from plimsoll.cli.tables.status import as_json
from plimsoll.cli.writing import Settling
from plimsoll.loop import RoundResult
from tests.capacity_requests.cluster import TYPE, Cluster, at, node, pool, share_pod

MANIFESTS = f"""
apiVersion: plimsoll.dev/v1alpha1
kind: Environment
metadata: {{name: prod}}
spec: {{demand: {{provisioner: trigger-pod}}}}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {{name: gpu}}
spec:
  template:
    spec: {{requirements: [{{key: node.kubernetes.io/instance-type, operator: In, values: [{TYPE}]}}]}}
---
apiVersion: v1
kind: Pod
metadata: {{name: a, annotations: {{gpu-fraction: "0.5"}}}}
spec: {{schedulerName: kai-scheduler, containers: [{{name: main, image: example/app:1}}]}}
status: {{conditions: [{{type: PodScheduled, status: "False", reason: Unschedulable}}]}}
"""


def test_a_plan_shows_the_requests(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(MANIFESTS)
    text = CliRunner().invoke(app, ["plan", "--file", str(file)])
    assert text.exit_code == 0, text.output
    assert f"instanceTypes: {TYPE}" in text.stdout
    shown = orjson.loads(CliRunner().invoke(app, ["plan", "--file", str(file), "--output", "json"]).stdout)
    (created,) = shown["create"]
    assert created["kind"] == "Pod"
    assert [signal["reason"] for signal in shown["signals"]] == ["Unschedulable"]


def test_run_once_waits_for_requested_capacity() -> None:
    cluster = Cluster(pool(), share_pod("a"))
    settling = Settling(60)

    def go_on(seconds: float) -> bool:
        snapshot = cluster.snapshot()
        return settling.on_round(RoundResult(snapshot, cluster.run_round(at(seconds)), Outcome()))

    assert go_on(0), "it was applied"
    assert go_on(1)
    assert "nodes for demand: smart-gpu-scheduler" in settling.unsettled
    cluster.objects.append(node("n1", at(30)))
    go_on(31)
    assert not go_on(32), "the node is there: to bind the pods is the scheduler's"


def test_a_status_shows_demand() -> None:
    cluster = Cluster(pool(), share_pod("a"))
    cluster.run_round(at(0))
    (shown,) = as_json(cluster.snapshot())["demands"]
    assert (shown["phase"], shown["pods"], shown["gpus"], shown["objects"]) == ("Scheduled", 1, 8, 1)
