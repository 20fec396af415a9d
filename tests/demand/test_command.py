"""`plimsoll demand`, on the manifests of examples/demand."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from plimsoll.cli import app
from plimsoll.cli.shared import FAILED, REFUSED, SETTLED
from plimsoll.cli.tables.demand import as_json, print_demands
from plimsoll.cost import Prices, nodes_cost
from plimsoll.errors import PlimsollError
from plimsoll.model.api import DemandPhase, GPUDemandStatus
from plimsoll.model.meta import Placement
from plimsoll.plan.classes import DemandClass, Refusal, RefusalReason
from plimsoll.plan.demand import Demand, DemandPlan, PlannedNode
from tests.builders import a_snapshot, an_environment
from tests.demand.node_pools import L4_POOL

GUIDES = Path(__file__).parents[2] / "docs" / "guides"
EXAMPLES = Path(__file__).parents[2] / "examples" / "demand"

CASE = (
    L4_POOL
    + """apiVersion: plimsoll.dev/v1alpha1
kind: Environment
metadata: {name: test}
spec: {catalog: {prices: {gone.large: 3}}, demand: {provisioner: trigger-pod}}
---
apiVersion: v1
kind: Pod
metadata: {name: chat, namespace: team, annotations: {tensor-fusion.ai/tflops-request: "10"}}
spec: {schedulerName: tensor-fusion-scheduler, containers: [{name: main}]}
status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable}]}
"""
)
"""A price of an unknown instance type, and a pod of TensorFusion."""

IMMENSE_NODE = """
---
apiVersion: v1
kind: Node
metadata:
  name: n1
  labels: {nvidia.com/gpu.product: NVIDIA-L4, nvidia.com/gpu.count: "1", nvidia.com/gpu.memory: "23034"}
status: {allocatable: {nvidia.com/gpu: "1", cpu: "1e99", memory: "1e99", pods: "1e99"}}
"""

SHARED_CASE = """
apiVersion: plimsoll.dev/v1alpha1
kind: Environment
metadata: {name: test}
spec:
  demand:
    provisioner: trigger-pod
    sharedDevices: [{nodePool: halves, resource: nvidia.com/gpu.shared, perGpu: 4}]
---
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {karpenter.sh/nodepool: halves, node.kubernetes.io/instance-type: g5.12xlarge}}
status: {allocatable: {nvidia.com/gpu: "0", nvidia.com/gpu.shared: "16", cpu: "8", memory: 64Gi, pods: "110"}}
---
apiVersion: v1
kind: Pod
metadata: {name: running, namespace: team}
spec: {nodeName: n1, containers: [{name: main, resources: {limits: {nvidia.com/gpu.shared: 10}}}]}
status: {phase: Running}
---
apiVersion: v1
kind: Pod
metadata: {name: waiting, namespace: team}
spec: {containers: [{name: main, resources: {limits: {nvidia.com/gpu.shared: 4}}}]}
status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable}]}
"""


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["demand", *map(str, arguments)])
    if isinstance(result.exception, PlimsollError):
        return FAILED, str(result.exception)
    return result.exit_code, result.output


def test_json_says_what_each_demand_needs() -> None:
    code, output = run("-f", EXAMPLES, "-o", "json")
    found: dict[str, Any] = json.loads(output)
    assert code == REFUSED
    demands = found["demands"]
    assert {"name", "queue", "pods", "refused", "blocked"} <= demands[0].keys()
    assert [(each["gpus"], each["queue"]) for each in demands] == [(3, "default-queue"), (8, "default-queue")]
    assert list(demands[0]["onNodes"]) == ["gpu-1"]
    assert "typo" in demands[0]["refused"]["uid-typo"]
    requests = found["requests"]
    assert [(each["nodePool"], each["instanceType"], each["gpus"]) for each in requests] == [
        ("a100", "p4d.24xlarge", 8),
        *[("l4", "g6.xlarge", 1)] * 3,
    ]
    assert [each["demands"] for each in requests] == [[demands[1]["name"]], *[[demands[0]["name"]]] * 3]
    assert requests[0]["pods"] == ["team-a/train-0", "team-a/train-1"]
    assert sorted(pod for each in requests[1:] for pod in each["pods"]) == [
        "team-a/chat-0", "team-a/chat-1", "team-a/chat-2", "team-a/embed-1"
    ]  # fmt: skip
    expected = {"pods": 7, "nodes": 4, "gpus": 11, "leastGpus": 11, "refused": 1, "waitingForRequested": 0}
    assert found["summary"].items() >= expected.items()


def test_json_has_every_warning_and_what_a_pod_requests(tmp_path: Path) -> None:
    (tmp_path / "case.yaml").write_text(CASE)
    code, output = run("-f", tmp_path, "-o", "json")
    found = json.loads(output)
    assert code == SETTLED
    assert found["warnings"] == found["demands"][0]["warnings"] != []
    (asked,) = found["demands"][0]["pods"]
    assert (asked["tflops"], "memoryMib" in asked, "milli" in asked) == (10, False, False)


@pytest.mark.parametrize("command", ["demand", "gpus"])
@pytest.mark.parametrize(
    "annotation", ["tensor-fusion.ai/vram-request", "nvidia.com/container.main.gpu-memory.request"]
)
@pytest.mark.parametrize("node", ["", "n1"])
def test_an_immense_amount_is_no_traceback(tmp_path: Path, command: str, annotation: str, node: str) -> None:
    case = CASE.replace('tensor-fusion.ai/tflops-request: "10"', f'{annotation}: "1e99"') + IMMENSE_NODE
    case = case.replace("containers: [{name: main}]", f"nodeName: '{node}', containers: [{{name: main}}]")
    (tmp_path / "case.yaml").write_text(case)
    result = CliRunner().invoke(app, [command, "-f", str(tmp_path), "-o", "json"])
    assert result.exit_code in (SETTLED, REFUSED), result.exception
    assert json.loads(result.output)


@pytest.mark.parametrize(
    ("annotation", "drawn"),
    [
        ('tensor-fusion.ai/tflops-request: "60.5"', "0.5"),
        ('tensor-fusion.ai/vram-request: 1Mi, tensor-fusion.ai/tflops-request: "30.25"', "0.25"),
        ('tensor-fusion.ai/tflops-request: "60.5", tensor-fusion.ai/vram-request: 17275.5Mi', "0.75"),
    ],
)
def test_shares_of_tensor_fusion_are_drawn_in_their_size(tmp_path: Path, annotation: str, drawn: str) -> None:
    (tmp_path / "case.yaml").write_text(CASE.replace('tensor-fusion.ai/tflops-request: "10"', annotation))
    code, output = run("-f", tmp_path, "--plot")
    assert code == SETTLED
    assert re.search(rf"new l4/g6.xlarge .* {drawn}\s*$", output, re.MULTILINE)


def test_shared_devices_are_drawn_as_parts_of_gpus(tmp_path: Path) -> None:
    """10 of 16 devices are in use: two GPUs and a half. Six are free for the pod, which requests four of them."""
    (tmp_path / "case.yaml").write_text(SHARED_CASE)
    code, output = run("-f", tmp_path, "--plot-to", tmp_path / "gpus.svg")
    assert code == SETTLED
    svg = ElementTree.parse(tmp_path / "gpus.svg")
    titles = Counter(each.text or "" for each in svg.iter() if each.tag.endswith("title"))
    assert titles["team/waiting: 0.5"] == 2, output
    assert titles["nvidia.com/gpu.shared: 1"] >= 1


def test_text_names_nodes_and_refusals() -> None:
    code, output = run("-f", EXAMPLES, "--plot")
    assert code == REFUSED
    assert "3 x g6.xlarge with 1 x NVIDIA-L4 of NodePool l4" in output
    assert "team-a/typo" in output
    assert "1 GPU in use before, 8 after" in output


@pytest.mark.parametrize("name", ["gpus.svg", "gpus.html"])
def test_a_picture_contains_every_share_before_and_after(tmp_path: Path, name: str) -> None:
    code, _ = run("-f", EXAMPLES, "--plot-to", tmp_path / name)
    text = (tmp_path / name).read_text()
    assert code == REFUSED
    svg = ElementTree.fromstring(text[text.index("<svg") : text.index("</svg>") + 6])
    titles = [each.text or "" for each in svg.iter() if each.tag.endswith("title")]
    assert sum(title.count("team-a/chat-") for title in titles) == 3
    assert sum(title.startswith("team-a/serving") for title in titles) == 2
    assert any(re.fullmatch(r"team-a/chat-\d, team-a/chat-\d: 0\.6", title) for title in titles)


def test_the_picture_of_the_guide_is_up_to_date(tmp_path: Path) -> None:
    run("-f", EXAMPLES, "--plot-to", tmp_path / "gpus.svg")
    again = "draw it again: plimsoll demand -f examples/demand --plot-to docs/guides/demand.svg"
    assert (tmp_path / "gpus.svg").read_text() == (GUIDES / "demand.svg").read_text(), again


def test_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    code, output = run("-f", EXAMPLES, "--plot-to", tmp_path / "gpus.png")
    assert code == FAILED
    assert ".html or .svg" in output


def test_the_summary_names_pods() -> None:
    _, output = run("-f", EXAMPLES)
    (line,) = [line for line in output.splitlines() if "to request" in line]
    assert re.match(r"7 pods \(team-a/\S+, team-a/\S+, team-a/\S+ and 4 more\): 4 nodes with 11 GPUs to request", line)


def test_no_demand(tmp_path: Path) -> None:
    (tmp_path / "node.yaml").write_text("{apiVersion: v1, kind: Node, metadata: {name: n1}}")
    assert run("-f", tmp_path) == (SETTLED, "no demand\n")


def test_a_competing_controller_is_a_warning(tmp_path: Path) -> None:
    pod = "{apiVersion: v1, kind: Pod, metadata: {name: node-scale-adjuster-x, namespace: kai-scheduler}}"
    (tmp_path / "pod.yaml").write_text(pod)
    code, output = run("-f", tmp_path)
    assert code == SETTLED
    assert "KAI's node-scale-adjuster runs" in output


@pytest.mark.parametrize(("milli", "shown"), [(1_500_000, "1,500"), (123_500, "123.5"), (333, "0.333")])
def test_gpus_of_a_demand_are_shown_in_full(milli: int, shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    demand = Demand(DemandClass(Placement(), "", "kai-scheduler"), {}, gpu_milli=milli)
    print_demands(DemandPlan((demand,)), {demand.name: GPUDemandStatus()}, ())
    row = next(line for line in capsys.readouterr().out.splitlines() if demand.name in line)
    assert row.split()[-1] == shown


@pytest.mark.parametrize(("phase", "shown"), [(DemandPhase.REFUSED, True), (DemandPhase.SCHEDULED, False)])
def test_what_an_autoscaler_refuses_is_shown(
    phase: DemandPhase, shown: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    demand = Demand(
        DemandClass(Placement(), "", "kai-scheduler"), {}, refused={"uid": Refusal(RefusalReason.NO_NODE, "of a pod")}
    )
    status = GPUDemandStatus(phase=phase, deadline="2026-01-01T00:15:00Z", reasons=("karpenter refuses", "of a pod"))
    print_demands(DemandPlan((demand,)), {demand.name: status}, ())
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  ! ")]
    assert lines == ["  ! 1 pod: of a pod", *(["  ! karpenter refuses"] if shown else [])]
    (found,) = as_json(DemandPlan((demand,)), {demand.name: status}, ())["demands"]
    assert (found["phase"], found["deadline"], found["reasons"]) == (phase, status.deadline, list(status.reasons))


@pytest.mark.parametrize(
    ("types", "lines", "unpriced"),
    [
        (("g6.xlarge",), ["+1.61 USD an hour for new nodes", "Prices in USD: on-demand list of us-east-1 ("], 0),
        (("own",), ["+4.00 EUR an hour for new nodes", "Prices in EUR: the Environment's own"], 0),
        (("own", "other"), ["+4.00 EUR an hour for new nodes; 2 nodes without a price", "Prices in EUR"], 2),
        (("other",), ["the cost is not known: 2 nodes without a price"], 2),
    ],
)
def test_new_nodes_have_a_cost_with_its_currency_region_and_date(
    types: tuple[str, ...], lines: list[str], unpriced: int, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = tuple(
        PlannedNode(name, "", 1, "NVIDIA-L4", (), cpu_milli=0, memory_mib=0) for name in types for _ in range(2)
    )
    catalog = {"currency": "EUR", "prices": {"own": 2.0}} if "own" in types else {}
    cost = nodes_cost(nodes, Prices.of(a_snapshot(environment=an_environment(catalog=catalog))))
    print_demands(DemandPlan(nodes=nodes), {}, (), cost)
    shown = capsys.readouterr().out.splitlines()[-len(lines) :]
    assert all(line.startswith(start) for line, start in zip(shown, lines, strict=True)), shown
    document = as_json(DemandPlan(), {}, (), cost)["cost"]
    assert document["nodesWithoutPrice"] == unpriced
