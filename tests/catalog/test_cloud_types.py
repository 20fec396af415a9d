"""Instance types of the Environment's AWS region in a snapshot: requested once, refreshed in the background, with a
warning if they are not known."""

import json
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from botocore.exceptions import EndpointConnectionError
from typer.testing import CliRunner

from plimsoll.cli import app
from plimsoll.model import Snapshot
from plimsoll.model.api import Environment
from plimsoll.observe.cloud_types import AGAIN, CloudTypes
from plimsoll.observe.ec2 import MAX_AGE
from plimsoll.plan import validate
from tests.builders import a_node, a_snapshot, a_workspace, an_environment
from tests.catalog.aws import Requests, a_device, an_item

pytestmark = pytest.mark.usefixtures("aws")

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
REGION = "eu-west-1"
WAITING = """
apiVersion: plimsoll.dev/v1alpha1
kind: Environment
metadata: {name: test}
spec: {demand: {provisioner: trigger-pod}, catalog: {awsRegion: eu-west-1}}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: p9}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [p9.large]}]
---
apiVersion: v1
kind: Pod
metadata: {name: share, namespace: t, annotations: {gpu-fraction: "0.5"}}
spec: {schedulerName: kai-scheduler, containers: [{name: main}]}
status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable}]}
"""
"""A pod that needs a node of a type that only EC2 knows."""
UNREACHABLE = EndpointConnectionError(endpoint_url="ec2")


def in_region(**spec: Any) -> Environment:
    return an_environment(nap=True, catalog={"awsRegion": REGION}, **spec)


class Asked:
    """CloudTypes with a clock that tests set, and a wait for background requests."""

    def __init__(self, folder: Path) -> None:
        self.now = NOW
        self._answered = threading.Event()
        self.types = CloudTypes(folder, self._answered.set, lambda: self.now)

    def refresh(self) -> None:
        self._answered.clear()
        self.types.refresh()
        assert self._answered.wait(120)


def test_without_a_region_there_is_no_request(tmp_path: Path, requests: Requests) -> None:
    snapshot = a_snapshot(nap=True)
    assert CloudTypes(tmp_path).completed(snapshot) is snapshot
    assert requests.regions == []


def test_a_type_that_only_ec2_knows_is_planned_with(tmp_path: Path, requests: Requests) -> None:
    requests.items = [an_item("p9.large", a_device(2, 90_000, "X900"))]
    asked = CloudTypes(tmp_path, clock=lambda: NOW)
    snapshot = a_snapshot(a_workspace(instance_type="P9.Large", selector={}), environment=in_region())
    assert not validate(snapshot)[0].accepted
    completed = asked.completed(snapshot)
    [verdict] = validate(completed)
    assert verdict.accepted
    assert "p9.large (2 x NVIDIA X900 of 90000 MiB)" in verdict.message
    assert (asked.completed(snapshot), requests.regions) == (completed, [REGION])


def test_the_live_label_overrides_ec2_with_a_warning(tmp_path: Path, requests: Requests) -> None:
    requests.items = [an_item("p9.large", a_device(2, 90_000, "X900"))]
    node = a_node(instance_type="p9.large", product="NVIDIA-X900", count=1, memory=90_000)
    workspace = a_workspace(instance_type="p9.large", selector={})
    snapshot = CloudTypes(tmp_path, clock=lambda: NOW).completed(a_snapshot(workspace, node, environment=in_region()))
    [verdict] = validate(snapshot)
    assert "1 x NVIDIA-X900 of 90000 MiB" in verdict.message
    assert verdict.warnings == (
        "p9.large: 1 x NVIDIA-X900 of 90000 MiB by the live nodes, 2 x NVIDIA X900 of 90000 MiB by EC2 in eu-west-1; "
        "the first value is used",
    )


def test_without_an_answer_of_ec2_the_table_is_used_with_a_warning(tmp_path: Path, requests: Requests) -> None:
    requests.failure = UNREACHABLE
    asked = Asked(tmp_path)
    snapshot = a_snapshot(a_workspace(instance_type="g6.xlarge", selector={}), environment=in_region())
    reported = asked.types.completed(snapshot)
    assert validate(reported)[0].accepted
    [warning] = reported.warnings
    assert "did not list its instance types" in warning
    assert "the built-in table is used instead" in warning
    requests.failure = None
    asked.types.refresh()
    assert len(requests.regions) == 1, "not asked again before its time"
    asked.now += AGAIN
    asked.refresh()
    assert asked.types.completed(snapshot).warnings == ()
    assert asked.types.completed(snapshot).instance_types != ()


def test_old_answers_are_used_while_they_are_refreshed_in_the_background(tmp_path: Path, requests: Requests) -> None:
    asked = Asked(tmp_path)
    snapshot: Snapshot = a_snapshot(environment=in_region())
    first = asked.types.completed(snapshot)
    version = asked.types.version
    asked.now += MAX_AGE + timedelta(seconds=1)
    requests.failure = UNREACHABLE
    asked.refresh()
    late = asked.types.completed(snapshot)
    assert late.instance_types == first.instance_types
    assert "types as of 2026-05-01 12:00 UTC" in late.warnings[0]
    assert asked.types.version == version + 1


@pytest.mark.parametrize("command", [["plan"], ["why", "workspace", "ws"]], ids=["plan", "why"])
def test_commands_use_the_region_of_the_environment(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, requests: Requests
) -> None:
    requests.items = [an_item("p9.large", a_device(2, 90_000, "X900"))]
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    spec = {"nodeAutoProvisioning": "enabled", "catalog": {"awsRegion": REGION}}
    version = "plimsoll.dev/v1alpha1"
    manifests = [
        {"apiVersion": version, "kind": "Environment", "spec": spec},
        {
            "apiVersion": version,
            "kind": "Workspace",
            "metadata": {"name": "ws"},
            "spec": {"resource": {"instanceType": "p9.large"}, "inference": {"preset": {"name": "phi-4"}}},
        },
    ]
    file = tmp_path / "manifests.yaml"
    file.write_text(yaml.safe_dump_all(manifests))
    done = CliRunner().invoke(app, [*command, "-f", str(file), "--output", "json"])
    assert done.exit_code == 0, done.output
    reported = json.loads(done.stdout)
    if command[0] == "why":
        assert reported["instanceType"]["source"] == "EC2 in eu-west-1"
    assert requests.regions == [REGION]


def test_without_an_answer_the_output_is_still_one_json_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, requests: Requests
) -> None:
    requests.failure = UNREACHABLE
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    spec = {"nodeAutoProvisioning": "enabled", "catalog": {"awsRegion": REGION}}
    file = tmp_path / "environment.yaml"
    file.write_text(yaml.safe_dump({"apiVersion": "plimsoll.dev/v1alpha1", "kind": "Environment", "spec": spec}))
    done = CliRunner().invoke(app, ["plan", "-f", str(file), "--output", "json"])
    assert any("did not list" in warning for warning in json.loads(done.stdout)["warnings"])


def test_demand_is_planned_with_types_that_only_ec2_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, requests: Requests
) -> None:
    requests.items = [an_item("p9.large", a_device(2, 90_000, "X900"))]
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    file = tmp_path / "manifests.yaml"
    file.write_text(WAITING)
    done = CliRunner().invoke(app, ["demand", "-f", str(file), "--output", "json"])
    assert [each["instanceType"] for each in json.loads(done.stdout)["requests"]] == ["p9.large"]
