"""`plimsoll plan -f`: one JSON object, exit codes, no cluster and no engine."""

import json
from pathlib import Path
from typing import Any

import yaml

from tests.builders import NC24, gpu_labels
from tests.command import plimsoll
from tests.plan_from_files.test_reading import ENVIRONMENT, NODE, WORKSPACE

EXAMPLES = Path(__file__).parents[2] / "examples"
GPU_NODE = {**NODE, "metadata": {"name": "n1", "labels": {"pool": "a", **gpu_labels()}}}


def planned(*documents: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    done = plimsoll("plan", "-f", "-", "--output", "json", given=yaml.safe_dump_all(documents))
    found: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, found


def wanting(replicas: int) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "server"}]}}
    resource = {"instanceType": NC24, "labelSelector": {"matchLabels": {"pool": "a"}}}
    return {**WORKSPACE, "spec": {"resource": resource, "inference": {"template": template, "replicas": replicas}}}


def claim(name: str, ready: bool) -> dict[str, Any]:
    labels = {"plimsoll.dev/workspace": "ws", "plimsoll.dev/workspace-namespace": "default"}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": name, "labels": labels},
        "status": {"conditions": [{"type": "Ready", "status": str(ready)}]},
    }


def test_an_accepted_workspace() -> None:
    code, found = planned(GPU_NODE, WORKSPACE)
    assert code == 0
    [verdict] = found["verdicts"]
    assert (verdict["namespace"], verdict["name"], verdict["accepted"], verdict["reason"]) == (
        "default",
        "ws",
        True,
        "Accepted",
    )
    assert [manifest["kind"] for manifest in found["create"]] == ["Deployment", "Service"]
    assert (found["update"], found["delete"], found["warnings"]) == ([], [], [])


def test_a_refused_workspace_is_exit_code_2_with_its_reason() -> None:
    code, found = planned(NODE, WORKSPACE)
    assert code == 2
    [verdict] = found["verdicts"]
    assert (verdict["accepted"], verdict["reason"]) == (False, "GPULabelsInvalid")
    assert "n1" in verdict["message"]
    assert found["create"] == []


def test_missing_nodes_are_created_as_whole_manifests() -> None:
    code, found = planned(ENVIRONMENT, wanting(3), claim("c", True))
    assert code == 0
    assert [(each["apiVersion"], each["kind"]) for each in found["create"]] == [("karpenter.sh/v1", "NodeClaim")] * 2


def test_the_text_shows_what_all_requirements_on_a_label_allow() -> None:
    """The NodeClaim has the NodePool's and the Workspace's; nodes meet both."""
    requirements: list[dict[str, Any]] = [
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["reserved", "on-demand"]},
        {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["z2", "z3"]},
        {"key": "example.com/generation", "operator": "Gt", "values": ["3"]},
        {"key": "example.com/generation", "operator": "Lt", "values": ["9"]},
        {"key": "example.com/rack", "operator": "NotIn", "values": ["r1"]},
        {"key": "example.com/rack", "operator": "NotIn", "values": ["r2"]},
        {"key": "example.com/row", "operator": "Exists"},
    ]
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "blocks"}
    template = {"spec": {"requirements": requirements, "nodeClassRef": reference}}
    metadata = {"name": "blocks"}
    pool = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": metadata, "spec": {"template": template}}
    resource = {"instanceType": "p5.48xlarge", "capacityType": "reserved", "zones": ["z1", "z2"]}
    workspace = {**WORKSPACE, "spec": {"resource": resource, "inference": {"preset": {"name": "phi-4"}}}}
    done = plimsoll("plan", "-f", "-", given=yaml.safe_dump_all([ENVIRONMENT, pool, workspace]))
    told = dict(line.strip().split(": ", 1) for line in done.stdout.splitlines() if ": " in line)
    assert {key: told[key].strip("'") for key in {each["key"] for each in requirements}} == {
        "karpenter.sh/capacity-type": "reserved",
        "topology.kubernetes.io/zone": "z2",
        "example.com/generation": "> 3 and < 9",
        "example.com/rack": "not r1, r2",
        "example.com/row": "Exists",
    }


def test_reserved_capacity_has_the_on_demand_price_and_is_told() -> None:
    for way, told in (("reserved", True), ("on-demand", False)):
        resource = {"instanceType": "p5.48xlarge", "capacityType": way}
        workspace = {**WORKSPACE, "spec": {"resource": resource, "inference": {"preset": {"name": "phi-4"}}}}
        done = plimsoll("plan", "-f", "-", given=yaml.safe_dump_all([ENVIRONMENT, workspace]))
        assert "an hour" in done.stdout
        assert ("1 node of reserved capacity" in done.stdout) is told, done.stdout


def test_surplus_nodes_are_deleted_not_ready_first() -> None:
    code, found = planned(ENVIRONMENT, wanting(1), claim("a", True), claim("b", False), claim("c", False))
    assert code == 0
    assert [(each["kind"], each["namespace"], each["name"]) for each in found["delete"]] == [
        ("NodeClaim", "", "b"),
        ("NodeClaim", "", "c"),
    ]


def test_a_bad_file_is_exit_code_1_with_its_place_and_no_output(tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(yaml.safe_dump({**WORKSPACE, "spec": {"resource": {"instancetype": "x"}}}))
    done = plimsoll("plan", "-f", str(file), "--output", "json")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"{file}, document 1, line 1: Workspace default/ws: spec.resource.instancetype: unknown field" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_same_plan_each_time() -> None:
    assert planned(ENVIRONMENT, wanting(2), GPU_NODE) == planned(GPU_NODE, wanting(2), ENVIRONMENT)


def test_examples() -> None:
    done = plimsoll("plan", "-f", str(EXAMPLES / "byo"))
    assert done.returncode == 2, done.stderr
    assert "refused   research/mixed  NonUniformNodes" in done.stdout
    assert "+ Deployment research/llama" in done.stdout


def test_pods_with_whole_gpus_are_said_to_be_served_by_an_autoscaler() -> None:
    asking = {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": 8}}}]}
    manifest = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "big"}}
    manifest |= {"spec": {"replicas": 2, "template": {"spec": asking}}}
    code, found = planned(manifest)
    assert (code, found["wholeGpus"]["pods"], found["wholeGpus"]["gpus"]) == (0, 2, 16)
    printed = plimsoll("plan", "-f", "-", given=yaml.safe_dump(manifest)).stdout
    assert found["wholeGpus"]["note"] in printed
    assert "autoscaler" in printed
    assert "nothing to do" not in printed


def test_without_pods_with_whole_gpus_nothing_is_said_of_them() -> None:
    assert planned(GPU_NODE, WORKSPACE)[1]["wholeGpus"] is None
