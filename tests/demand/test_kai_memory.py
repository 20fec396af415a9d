"""KAI shares a GPU in whole hundreds of the MiB of the node's label. Fractions are exact."""

import pytest

from plimsoll.model.cluster import Pod
from tests.builders import a_gpu_node, a_node_pool, a_waiting_pod
from tests.demand.plans import on_nodes, planned, refused

NODE = a_gpu_node("node", "NVIDIA-A100-SXM4-80GB", gpus=1, memory=81920)


def of_mib(name: str, mib: int) -> Pod:
    return a_waiting_pod(name, gpu_memory=str(mib))


def share(name: str, fraction: str) -> Pod:
    return a_waiting_pod(name, gpu_fraction=fraction)


@pytest.mark.parametrize(
    ("pods", "placed"),
    [
        pytest.param([of_mib("a", 40960), of_mib("b", 40960)], 1, id="two of 40960 MiB do not fit one GPU"),
        pytest.param([of_mib("a", 40950), of_mib("b", 40950)], 2, id="two halves of 81900 do"),
        pytest.param([of_mib("a", 40960), share("b", "0.5")], 1, id="nor does a half beside 40960"),
        pytest.param([of_mib("a", 40950), share("b", "0.5")], 2, id="a half beside 40950 does"),
        pytest.param([of_mib("a", 81900)], 1, id="all of it"),
        pytest.param([of_mib(name, 27300) for name in "abc"], 3, id="thirds"),
        pytest.param([share(f"{n:02}", "0.0625") for n in range(16)], 16, id="sixteenths"),
        pytest.param([share(name, "0.3333") for name in "abc"], 3, id="0.3333"),
    ],
)
@pytest.mark.parametrize("new", [False, True])
def test_what_fits_a_gpu_of_81920_mib(pods: list[Pod], placed: int, new: bool) -> None:
    """On existing nodes, and on new nodes whose memory is known from a live one."""
    if not new:
        plan = planned(*pods, NODE)
        assert len(on_nodes(plan)) == placed
        return
    live = a_gpu_node("live", NODE.labels["nvidia.com/gpu.product"], gpus=1, memory=81920,
                      instance_type="Standard_NC24ads_A100_v4", taints=["full"])  # fmt: skip
    plan = planned(*pods, live, a_node_pool("pool", ("Standard_NC24ads_A100_v4",)))
    assert not refused(plan)
    assert max(len(node.pods) for node in plan.nodes) == placed


@pytest.mark.parametrize("label", [81920, 81920 * 2**20])
def test_more_than_the_whole_hundreds_is_refused_with_the_reason(label: int) -> None:
    """A label of 2^20 and more is in bytes."""
    node = a_gpu_node("node", "NVIDIA-A100-SXM4-80GB", gpus=1, memory=label, instance_type="Standard_NC24ads_A100_v4")
    plan = planned(of_mib("a", 81920), node, a_node_pool("pool", ("Standard_NC24ads_A100_v4",)))
    assert not plan.nodes
    why = refused(plan)["uid-a"]
    assert "81900 MiB" in why
    assert "whole hundreds of MiB" in why


def test_running_shares_count_in_whole_hundreds_of_mib() -> None:
    """A share of 40960 MiB leaves 40940 of 81900 MiB, and 49.98 % of the GPU."""
    group = {"runai-gpu-group": "g"}
    running = a_waiting_pod("running", gpu_memory="40960", node="node", phase="Running", more_labels=group)
    reservation = a_waiting_pod("r", namespace="kai-resource-reservation", gpus=1, node="node", more_labels=group)
    for pod, fits in ((of_mib("a", 40940), True), (of_mib("a", 40941), False), (share("a", "0.4998"), True),
                      (share("a", "0.4999"), False)):  # fmt: skip
        plan = planned(pod, running, reservation, NODE)
        assert bool(on_nodes(plan)) is fits, pod.annotations
