"""Workspaces on existing nodes, as users try them: manifests are the input, a verdict is the output."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from typer.testing import CliRunner

from plimsoll.cli import app

A100 = "NVIDIA-A100-SXM4-80GB"
GPU = "nvidia.com/gpu"


class Verdict(NamedTuple):
    reason: str
    message: str
    nodes: list[str]
    warnings: list[str]
    allocated: list[str]


def node(
    name: str = "n1", spec: dict[str, Any] | None = None, status: dict[str, Any] | None = None, **labels: Any
) -> Any:
    """`gpu_count="8"` stands for the label nvidia.com/gpu.count; None leaves a default out."""
    own = {"pool": "a", "gpu_product": A100, "gpu_count": "1", "gpu_memory": "81920", **labels}
    named = {_label(key): str(value) for key, value in own.items() if value is not None}
    manifest = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": named}}
    return {**manifest, "spec": spec or {}, "status": status or {}}


def _label(key: str) -> str:
    return f"nvidia.com/{key.replace('_', '.')}" if key.startswith(("gpu_", "mig_")) else key


def workspace(name: str = "ws", selector: Any = None, resource: Any = None, **inference: Any) -> Any:
    asked = inference or {"preset": {"name": "phi-4-mini-instruct"}}
    return {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "Workspace",
        "metadata": {"name": name, "namespace": "team"},
        "spec": {
            "resource": {"labelSelector": selector or {"matchLabels": {"pool": "a"}}, **(resource or {})},
            "inference": asked,
        },
    }


def template(gib: float | None = None, tolerations: Any = (), **more: Any) -> dict[str, Any]:
    pod = {"containers": [{"name": "c", "image": "i"}], "tolerations": list(tolerations)}
    return {"template": {"spec": pod}, **({"gpuMemoryGiB": gib} if gib else {}), **more}


def planned(tmp_path: Path, *documents: Any) -> tuple[int, dict[str, Any]]:
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump_all(documents), "utf-8")
    done = CliRunner().invoke(app, ["plan", "-f", str(file), "--output", "json"])
    assert done.exit_code in (0, 2), done.output
    return done.exit_code, json.loads(done.stdout)


def verdict_of(tmp_path: Path, *documents: Any) -> Verdict:
    code, plan = planned(tmp_path, *documents)
    found = plan["verdicts"][0]
    assert (code == 0) is all(each["accepted"] for each in plan["verdicts"])
    return Verdict(found["reason"], found["message"], found["nodes"], found["warnings"], found["allocatedNodes"])


def ready(status: str) -> dict[str, Any]:
    return {"conditions": [{"type": "Ready", "status": status}]}


def allocatable(amount: Any, resource: str = GPU) -> dict[str, Any]:
    return {**ready("True"), "allocatable": {resource: str(amount)}}


TAINT: dict[str, Any] = {"taints": [{"key": "team", "value": "red", "effect": "NoSchedule"}]}
SOFT: dict[str, Any] = {"taints": [{"key": "team", "effect": "PreferNoSchedule"}]}
MIXED: dict[str, Any] = {
    "gpu_product": A100,
    "mig_strategy": "mixed",
    "mig_config": "mine",
    "mig_config_state": "success",
}
SLICES: dict[str, Any] = {**MIXED, "nvidia.com/mig-2g.24gb.count": 2, "nvidia.com/mig-2g.24gb.memory": 24448}
SINGLE: dict[str, Any] = {
    "gpu_product": "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb",
    "gpu_count": 7,
    "gpu_memory": 9856,
    "mig_strategy": "single",
}
SHARED: dict[str, Any] = {"gpu_product": f"{A100}-SHARED", "gpu_replicas": 4, "gpu_sharing-strategy": "time-slicing"}
NO_NODES = "No nodes found matching the specified label selector"
LABELS = "Failed to get GPU config from nvidia labels on node n1: label nvidia.com/gpu."
MIX = "Non-uniform GPU product/count/memory: "
SMALL = "Insufficient total GPU memory: "


def expression(operator: str, *values: str, key: str = "pool") -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, **({"values": list(values)} if values else {})}]}


ACCEPTED: dict[str, list[Any]] = {
    # facts, section F
    "1 x 80 GiB": [node(), workspace(**template(16))],
    "two uniform nodes of 2 x 94 GiB": [
        *(node(f"n{n}", gpu_count=2, gpu_memory=96256) for n in (1, 2)), workspace(**template(16))
    ],
    "32 GiB that may span on 2 x 16": [
        *(node(f"n{n}", gpu_memory=16384) for n in (1, 2)), workspace(**template(32, perReplicaNodeCount=2))
    ],
    "V100, 32768 MiB, count 2, is 64 GiB": [
        node(gpu_product="Tesla-V100-SXM2-32GB", gpu_count=2, gpu_memory=32768), workspace(**template(64))
    ],
    "81920, 1 is 80 GiB": [node(), workspace(**template(80))],
    "a slice of 24 GB for 8 GiB": [
        node(**SLICES), workspace(resource={"partition": {"mode": "mig", "profile": "2g.24gb"}}, **template(8))
    ],
    # units
    "memory with a unit": [node(gpu_memory="80Gi"), workspace(**template(80))],
    "memory in bytes": [node(gpu_memory=80 * 2**30), workspace(**template(80))],
    "like nodes, one of which says bytes": [node(), node("n2", gpu_memory=80 * 2**30), workspace()],
    # selectors
    "In": [node(), workspace(selector=expression("In", "b", "a"))],
    "NotIn is true of nodes without the label": [node(), workspace(selector=expression("NotIn", "x", key="zone"))],
    "Exists": [node(), workspace(selector=expression("Exists"))],
    "DoesNotExist": [node(), workspace(selector=expression("DoesNotExist", key="zone"))],
    "both forms are joined": [
        node(), node("n2", zone="z", gpu_count=2),
        workspace(selector={"matchLabels": {"pool": "a"}, **expression("DoesNotExist", key="zone")}),
    ],
    # nodes
    "a taint that is tolerated": [
        node(spec=TAINT), workspace(**template(tolerations=[{"key": "team", "operator": "Exists"}]))
    ],
    "a taint that only prefers": [node(spec=SOFT), workspace()],
    "more allocatable than counted": [node(status=allocatable(2)), workspace()],
    "allocatable as a number of thousands": [node(gpu_count=8, status=allocatable("8000m")), workspace()],
    "time-slicing": [node(**SHARED), workspace()],
    "replicas 0: not shared": [node(gpu_replicas=0), workspace()],
    "slices of one profile without a partition": [node(**SINGLE), workspace(**template(1))],
    "MIG that is all disabled": [
        node(mig_config="all-disabled", mig_config_state="success", mig_strategy="mixed"), workspace()
    ],
    "no status at all": [node(), workspace()],
}  # fmt: skip

REFUSED: dict[str, tuple[list[Any], str, list[str]]] = {
    # facts, section F
    "no match": ([node(pool="b"), workspace()], "NoMatchingNodes", [NO_NODES, "pool=a"]),
    "no nodes at all": ([workspace()], "NoMatchingNodes", [NO_NODES]),
    "no product": ([node(gpu_product=None), workspace()], "GPULabelsInvalid", [LABELS + "product is missing"]),
    "no count": ([node(gpu_count=None), workspace()], "GPULabelsInvalid", [LABELS + "count is missing"]),
    "no memory": ([node(gpu_memory=None), workspace()], "GPULabelsInvalid", [LABELS + "memory is missing"]),
    "V100 and A100": (
        [node(), node("n2", gpu_product="Tesla-V100-SXM2-32GB", gpu_memory=32768), workspace()],
        "NonUniformNodes", [MIX, A100, "Tesla-V100-SXM2-32GB", "n1", "n2"],
    ),
    "one GPU of 8 GiB for 16": (
        [node(gpu_memory=8192), workspace(**template(16))],
        "InsufficientGPUMemory", [SMALL, "has a total of 8192 MiB", "requires at least 16384 MiB"],
    ),
    "reserved keys alone": (
        [node(), workspace(selector={"matchLabels": {"kaito.sh/workspace": "x"}})], "SelectorReserved", ["kaito.sh/"]
    ),
    "reserved keys of KAITO's Karpenter": (
        [node(), workspace(selector={"matchLabels": {"karpenter.kaito.sh/workspace-name": "x"}})],
        "SelectorReserved", ["karpenter.kaito.sh/workspace-name"],
    ),
    "a slice of 10 GB for 8 GiB and what it runs with": (
        [
            node(**{**MIXED, "nvidia.com/mig-1g.10gb.count": 7}),
            workspace(
                resource={"partition": {"mode": "mig", "profile": "1g.10gb"}}, preset={"name": "phi-4-mini-instruct"}
            ),
        ],
        "InsufficientGPUMemory", [SMALL, "1g.10gb"],
    ),
    "none ready": ([node(status=ready("False")), workspace()], "NoUsableNodes", ["n1 (not Ready)"]),
    "an instance type": (
        [node(), workspace(resource={"instanceType": "Standard_NC24ads_A100_v4"})],
        "InstanceTypeForbidden",
        ["instanceType must be empty when node auto-provisioning is disabled (BYO scenario)"],
    ),
    # labels
    "count 0": ([node(gpu_count=0), workspace()], "GPULabelsInvalid", [LABELS + "count is '0'"]),
    "count -1": ([node(gpu_count=-1), workspace()], "GPULabelsInvalid", [LABELS + "count is '-1'"]),
    "count 1.5": ([node(gpu_count=1.5), workspace()], "GPULabelsInvalid", [LABELS + "count is '1.5'"]),
    "count without end": ([node(gpu_count="9" * 40), workspace()], "GPULabelsInvalid", [LABELS + "count is '999"]),
    "memory 0": ([node(gpu_memory=0), workspace()], "GPULabelsInvalid", [LABELS + "memory is '0'"]),
    "memory in words": ([node(gpu_memory="much"), workspace()], "GPULabelsInvalid", [LABELS + "memory is 'much'"]),
    "replicas in words": ([node(gpu_replicas="x"), workspace()], "GPULabelsInvalid", [LABELS + "replicas is 'x'"]),
    "products that differ in case": (
        [node(), node("n2", gpu_product=A100.lower()), workspace()], "NonUniformNodes", ["differ in product"]
    ),
    "counts that differ": ([node(), node("n2", gpu_count=2), workspace()], "NonUniformNodes", ["differ in count"]),
    "a cordoned node that differs": (
        [node(), node("n2", spec={"unschedulable": True}, gpu_count=2), workspace()], "NonUniformNodes", ["n2"]
    ),
    "shared and whole GPUs": ([node(), node("n2", **SHARED), workspace()], "NonUniformNodes", ["-SHARED"]),
    # selectors
    "NotIn": ([node(), workspace(selector=expression("NotIn", "a"))], "NoMatchingNodes", ["pool notin (a)"]),
    "Exists of another label": ([node(), workspace(selector=expression("Exists", key="zone"))], "NoMatchingNodes", []),
    "DoesNotExist": ([node(), workspace(selector=expression("DoesNotExist"))], "NoMatchingNodes", ["!pool"]),
    "labels are told apart by case": (
        [node(), workspace(selector={"matchLabels": {"pool": "A"}})], "NoMatchingNodes", ["pool=A"]
    ),
    # nodes
    "readiness that is not known": ([node(status=ready("Unknown")), workspace()], "NoUsableNodes", ["not Ready"]),
    "cordoned": ([node(spec={"unschedulable": True}), workspace()], "NoUsableNodes", ["n1 (cordoned)"]),
    "tainted": ([node(spec=TAINT), workspace()], "NoUsableNodes", ["n1 (tainted team=red:NoSchedule)"]),
    "no allocatable GPUs": ([node(status=allocatable(0)), workspace()], "NoUsableNodes", ["0 nvidia.com/gpu"]),
    "fewer allocatable than counted": (
        [node(gpu_count=8, status=allocatable(7)), workspace()], "NoUsableNodes", ["7 nvidia.com/gpu allocatable, 8"]
    ),
    "allocatable that is no number": ([node(status=allocatable("many")), workspace()], "NoUsableNodes", ["n1"]),
    "a node of slices": ([node(**SLICES), workspace()], "NoUsableNodes", ["2g.24gb", "resource.partition"]),
    "another profile": (
        [node(**SLICES), workspace(resource={"partition": {"mode": "mig", "profile": "1g.10gb"}})],
        "NoUsableNodes", ["2g.24gb"],
    ),
    "a configuration that is not in place": (
        [node(**{**SLICES, "mig_config_state": "pending"}), workspace()], "NoUsableNodes", ["'pending'"]
    ),
    # memory, in MiB
    "some MiB short": ([node(gpu_memory=81559), workspace(**template(79.65))], "InsufficientGPUMemory", ["81562"]),
    "time-slicing multiplies no memory": (
        [node(**{**SHARED, "gpu_memory": 16384}), workspace(**template(32))], "InsufficientGPUMemory", ["16384"]
    ),
    "memory of a MIG slice is not summed": (
        [node(**SINGLE), workspace(**template(20))], "InsufficientGPUMemory", ["one slice of node n1", "9856 MiB"]
    ),
}  # fmt: skip


@pytest.mark.parametrize("documents", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_accepted(documents: list[Any], tmp_path: Path) -> None:
    verdict = verdict_of(tmp_path, *documents)
    assert verdict.reason == "Accepted", verdict.message
    assert verdict.nodes[0] == "n1"


@pytest.mark.parametrize(("documents", "reason", "reported"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(documents: list[Any], reason: str, reported: list[str], tmp_path: Path) -> None:
    code, plan = planned(tmp_path, *documents)
    verdict = verdict_of(tmp_path, *documents)
    assert verdict.reason == reason, verdict.message
    assert all(each in verdict.message for each in reported), verdict.message
    assert (code, plan["create"], plan["update"], plan["delete"]) == (2, [], [], [])


@pytest.mark.parametrize("operator", ["Gt", "Lt", "in", "NotExists"])
def test_an_unknown_selector_operator_is_an_error_with_the_known_ones(operator: str, tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump_all([node(), workspace(selector=expression(operator, "1"))]), "utf-8")
    error = CliRunner().invoke(app, ["plan", "-f", str(file)]).exception
    assert "matchExpressions[0].operator" in str(error)
    assert "'In', 'NotIn', 'Exists' or 'DoesNotExist'" in str(error)


def test_a_node_with_used_gpus_is_not_free(tmp_path: Path) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "train", "namespace": "others"},
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "resources": {"limits": {GPU: "1"}}}]},
        "status": {"phase": "Running"},
    }
    used = verdict_of(tmp_path, node(gpu_count=8), pod, workspace())
    assert used.reason == "NoFreeNodes"
    assert "n1 by pod others/train (1 of 8 nvidia.com/gpu)" in used.message
    finished = {**pod, "status": {"phase": "Succeeded"}}
    assert verdict_of(tmp_path, node(gpu_count=8), finished, workspace()).reason == "Accepted"


def test_nodes_of_overlapping_selectors_go_to_the_recorded_workspace_then_to_the_oldest(tmp_path: Path) -> None:
    nodes = [node("n1", zone="x"), node("n2", zone="x")]
    older, younger = workspace("older"), workspace("younger", selector={"matchLabels": {"zone": "x"}})
    for number, each in enumerate((older, younger)):
        each["metadata"]["creationTimestamp"] = f"2026-01-0{number + 1}T00:00:00Z"
        each["spec"]["inference"]["replicas"] = 2
    _, plan = planned(tmp_path, *nodes, younger, older)
    first, second = plan["verdicts"]
    assert (first["allocatedNodes"], second["reason"]) == (["n1", "n2"], "NoFreeNodes")
    assert "n1 by Workspace team/older" in second["message"]
    younger["status"] = {"workerNodes": ["n2"]}
    _, plan = planned(tmp_path, older, *reversed(nodes), younger)
    first, second = plan["verdicts"]
    assert (first["allocatedNodes"], second["allocatedNodes"]) == (["n1"], ["n2"])
    assert any("in use: n2 by Workspace team/younger" in warning for warning in first["warnings"])
    assert any("in use: n1 by Workspace team/older" in warning for warning in second["warnings"])
