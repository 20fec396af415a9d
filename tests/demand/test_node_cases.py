"""Reports of others on what nodes have (../shared/cases/nodes): what is planned for each."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.command import plimsoll
from tests.shared import shared

Answer = Mapping[str, Any]


def answer(command: str, name: str, *changes: tuple[str, str]) -> Answer:
    """What a command says of a case, each change made once where its first text is."""
    path = shared(f"cases/nodes/{name}.yaml")
    text = path.read_text()
    for before, after in changes:
        assert before in text, f"{name} has no {before!r}"
        text = text.replace(before, after, 1)
    done = plimsoll(command, "-f", "-" if changes else str(path), "-o", "json", given=text)
    assert done.stdout, done.stderr
    found: Answer = json.loads(done.stdout)
    return found


def pools(plan: Answer) -> list[str]:
    """The NodePools of the nodes that are requested."""
    return sorted(node["nodePool"] for node in plan["requests"])


def reasons(plan: Answer) -> str:
    return "\n".join(reason for demand in plan["demands"] for reason in demand["reasons"])


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("n02-family-idle-g5-g6-node", ["nvidia.com/gpu.family=hopper", "ampere", "ada-lovelace"]),
        ("c20-mig-pool-mixed-with-node", ["NodePool slices", "sharedDevices"]),
        ("c20c-mig-pool-no-node", ["nvidia.com/mig.config=all-1g.10gb", "sharedDevices"]),
        ("c20d-ts-pool-with-node", ["NodePool ts", "sharedDevices"]),
        ("a04-kai706-node-without-memory-label", ["nvidia.com/gpu.memory"]),
        ("c31d-a100-2", ["did you mean NVIDIA-A100-SXM4-40GB?"]),
        ("c31-product-0", ["did you mean NVIDIA-L4?"]),
    ],
)
def test_refused_by_name(name: str, named: list[str]) -> None:
    plan = answer("demand", name)
    assert plan["requests"] == []
    assert plan["summary"]["refused"] == plan["summary"]["pods"]
    for part in named:
        assert part in reasons(plan)


@pytest.mark.parametrize(
    ("name", "change", "bought"),
    [
        ("n02-family-idle-g5-g6-node", ("hopper", "ampere"), []),
        ("c31d-a100-2", ("NVIDIA-A100-PCIE-40GB", "NVIDIA-A100-SXM4-40GB"), ["a100"]),
        ("c31-product-0", ("gpu.product: L4", "gpu.product: NVIDIA-L4"), ["l4"]),
    ],
)
def test_neighbours_that_exist(name: str, change: tuple[str, str], bought: list[str]) -> None:
    plan = answer("demand", name, change)
    assert pools(plan) == bought
    assert plan["summary"]["refused"] == 0


def test_no_share_beside_slices() -> None:
    plan = answer("demand", "d02-mig-partly-mixed")
    assert pools(plan) == ["l4", "l4"]
    assert plan["summary"]["waitingForRequested"] == plan["summary"]["refused"] == 0


def test_one_kind_of_device_of_a_pod() -> None:
    plan = answer("demand", "e13-fraction-and-mig-resource")
    assert pools(plan) == ["l4"]
    for other in ("nvidia.com/mig-1g.10gb", "nvidia.com/gpu.shared", "amd.com/gpu"):
        assert f"besides {other}" in reasons(plan)


def test_gpus_of_other_vendors() -> None:
    plan = answer("demand", "e15-tf")
    assert pools(plan) == ["l4"]
    assert "tensor-fusion.ai/vendor 'AMD'" in reasons(plan)


def test_memory_that_the_type_of_a_pod_must_exceed() -> None:
    plan = answer("demand", "f01-req-gpu-memory-gt")
    assert [node["instanceType"] for node in plan["requests"]] == ["p4d.24xlarge"]


def test_a_member_that_fits_nothing_is_left_out() -> None:
    plan = answer("demand", "gang-hopeless-surplus")
    assert pools(plan) == ["pool-a100"]
    (demand,) = plan["demands"]
    assert sorted(demand["onNew"]) == ["a.p0", "a.p2"]
    assert list(demand["refused"]) == ["a.p1"]


def test_fewest_gpus_then_least_memory() -> None:
    (node,) = answer("demand", "alt-8")["requests"]
    assert node["instanceType"] == "p4d.24xlarge"


def test_the_smaller_figure_counts() -> None:
    plan = answer("demand", "demand-replicas-label-stale")
    assert plan["requests"] == []
    assert plan["summary"]["refused"] == 9
    assert "50 nvidia.com/gpu are allocatable, but labels say 1" in reasons(plan)


def verdict_of(name: str) -> Answer:
    (verdict,) = answer("plan", name)["verdicts"]
    return dict(verdict)


def test_nodes_that_contradict_themselves_are_told() -> None:
    verdict = verdict_of("gfd-heterogeneous-node")
    assert verdict["nodes"] == ["mix-1"]
    assert verdict["warnings"] == ["mix-1: 4 nvidia.com/gpu are allocatable, but labels say 2: 2 are counted"]


def test_a_node_without_labels_yet_does_not_stop_the_others() -> None:
    verdict = verdict_of("gfd-join-freezes-scale-up")
    assert verdict["nodes"] == ["gpu-1", "gpu-2", "gpu-3"]
    assert "gpu-4" in verdict["warnings"][0]


def test_unhealthy_hardware() -> None:
    verdict = verdict_of("node-accelerated-hardware-unhealthy")
    assert verdict["reason"] == "NoUsableNodes"
    assert "AcceleratedHardwareReady is False, DCGMHealthCode101" in verdict["message"]


def test_replicas_of_slices_share_their_memory() -> None:
    verdict = verdict_of("mig-mixed-time-sliced")
    assert verdict["reason"] == "InsufficientGPUMemory"
    assert "4864 MiB" in verdict["message"]


def test_a_type_of_the_family_that_a_pool_allows() -> None:
    plan = answer("plan", "nodepool-family-workspace")
    (claim,) = plan["create"]
    (family,) = (each for each in claim["spec"]["requirements"] if each["key"].endswith("instance-family"))
    assert "g6e" in family["values"]
    (taint,) = (each for each in claim["spec"]["taints"] if each["key"] == "team-only")
    assert taint["value"] == "ml"


@pytest.mark.parametrize(("name", "used"), [("k01-savings-mig-partial-pod", "n-m"), ("k06-savings-dra-pod", "n-b")])
def test_nodes_in_use_are_not_removed(name: str, used: str) -> None:
    found = answer("savings", name)
    assert used not in [node for group in found["groups"] for node in group["removable"]]
    assert used in found["leftOut"] | found["stays"]


def test_every_case_is_read_here() -> None:
    here = Path(__file__).read_text()
    names = [each.stem for each in shared("cases/nodes").glob("*.yaml")]
    assert not [name for name in names if f'"{name}"' not in here]
