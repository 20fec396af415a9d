"""KAI's test cases for unschedulable shares, with the correct answers where KAI's differ."""

from typing import Any

import pytest

from plimsoll.model.cluster import Pod
from plimsoll.plan.demand import DemandPlan
from tests.builders import a_node_pool, a_waiting_pod
from tests.demand.plans import only, planned, types

A100 = "p4d.24xlarge"
"""8 x A100 of 40 GiB."""
L4 = "g6.xlarge"
"""1 x L4."""
A10G = "g5.xlarge"
"""1 x A10G."""
L4_4 = "g6.12xlarge"
"""4 x L4."""


def shares(*fractions: str, devices: str = "") -> list[Pod]:
    more: dict[str, Any] = {"gpu_fraction_num_devices": devices} if devices else {}
    return [a_waiting_pod(f"pod-{n:03}-{devices}", gpu_fraction=each, **more) for n, each in enumerate(fractions)]


def plan_of(*pods: Pod, offered: tuple[str, ...] = (L4, L4_4)) -> DemandPlan:
    return planned(*pods, a_node_pool("pool", offered))


def used_gpus(plan: DemandPlan) -> int:
    return sum(len(node.held) for node in plan.nodes)


@pytest.mark.parametrize(
    ("pods", "gpus"),
    [
        ([], 0),
        (shares("0.2", devices="2"), 2),
        (shares("0.5", "0.5"), 1),
        (shares("0.6", "0.6"), 2),
        (shares("0.6", "0.6", "0.6"), 3),
        (shares("0.1", devices="2") + shares("0.5"), 2),
        (shares("0.2", devices="2") + shares("0.1", devices="3"), 3),
        ([a_waiting_pod(f"pod-{n}", gpu_memory="2000") for n in range(11)], 1),
        ([a_waiting_pod(f"pod-{n}", gpu_memory="10000") for n in range(11)], 6),
        ([a_waiting_pod()], 0),
        ([a_waiting_pod(gpu_fraction="0.5", phase="Succeeded")], 0),
        ([a_waiting_pod(gpu_fraction="0.5", phase="Failed")], 0),
        ([a_waiting_pod(gpu_fraction="0.5", scheduler="somebody-else")], 0),
        ([a_waiting_pod(gpu_fraction="0.5", node="there")], 0),
        ([a_waiting_pod(gpu_fraction="0.5", reason=None)], 0),
        ([a_waiting_pod(gpu_fraction="0.5", reason="SchedulingGated")], 0),
        ([a_waiting_pod(gpu_fraction="0.5", deleting=True)], 0),
        ([a_waiting_pod("bad", gpu_fraction="much"), a_waiting_pod("good", gpu_fraction="0.5")], 1),
    ],
)
def test_gpus_for_unschedulable_shares(pods: list[Pod], gpus: int) -> None:
    assert used_gpus(plan_of(*pods)) == gpus


def test_shares_of_different_products_never_share_a_gpu() -> None:
    pods = [
        a_waiting_pod("on-l4", gpu_fraction="0.5", selector={"nvidia.com/gpu.product": "NVIDIA-L4"}),
        a_waiting_pod("on-a10g", gpu_fraction="0.5", selector={"nvidia.com/gpu.product": "NVIDIA-A10G"}),
    ]
    found = plan_of(*pods, offered=(L4, A10G))
    assert types(found) == [A10G, L4]
    assert [len(node.demands) for node in found.nodes] == [1, 1]


def test_an_invalid_annotation_is_reported_with_pod_and_value() -> None:
    plan = plan_of(a_waiting_pod("bad", gpu_fraction="much"), a_waiting_pod("good", gpu_fraction="0.5"))
    demand = only(plan)
    assert "team/bad" in str(demand.refused["uid-bad"])
    assert "'much'" in str(demand.refused["uid-bad"])
    assert demand.reasons[0].startswith("Pod with UID uid-bad: gpu-fraction 'much'")
    assert "team/bad" not in str(demand.reasons)
    assert [node.pods for node in plan.nodes] == [("uid-good",)]


def test_an_invalid_pod_of_a_file_is_reported_by_name() -> None:
    demand = only(plan_of(a_waiting_pod("bad", uid="", gpu_fraction="much")))
    assert demand.reasons[0].startswith("Pod team/bad: gpu-fraction 'much'")


def test_pods_with_whole_gpus_are_listed_separately() -> None:
    plan = plan_of(a_waiting_pod("whole", gpus=2, scheduler="default-scheduler"))
    demand = only(plan)
    assert list(demand.whole_gpu_pods) == ["uid-whole"]
    assert not plan.nodes
    assert not demand.pods


def test_eight_shares_fill_one_node_of_eight_gpus() -> None:
    found = plan_of(*shares(*["0.9"] * 8), offered=(A100,))
    assert [(node.gpus, len(node.held)) for node in found.nodes] == [(8, 8)]
