"""What nodes of a NodePool offer is learned from them, and known when none is left: nothing useless is bought again."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from plimsoll.sandbox import Sandbox
from tests.awaiting import await_condition
from tests.e2e.cluster.controller import controller
from tests.e2e.cluster.kube import Kube
from tests.e2e.demand.environment import (
    API,
    CLAIM,
    add_pool,
    add_shares,
    await_another_look,
    claims_of,
    declare_demand,
    demands,
    nodes_of,
    remove_added,
    remove_shares,
    triggers,
)

pytestmark = pytest.mark.e2e

SMALL = "g5.12xlarge"
"""4 x A10G."""
SLICED = {
    "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB",
    "nvidia.com/gpu.count": "8",
    "nvidia.com/gpu.memory": "81920",
    "nvidia.com/mig.strategy": "mixed",
    "nvidia.com/mig.config": "all-1g.10gb",
    "nvidia.com/mig.config.state": "success",
    "nvidia.com/mig-1g.10gb.count": "56",
    "nvidia.com/mig-1g.10gb.memory": "9728",
}
"""What NVIDIA's MIG manager and discovery write."""
REPLICAS = {
    "nvidia.com/gpu.product": "NVIDIA-A10G-SHARED",
    "nvidia.com/gpu.count": "4",
    "nvidia.com/gpu.memory": "23028",
    "nvidia.com/gpu.replicas": "4",
    "nvidia.com/gpu.sharing-strategy": "time-slicing",
}


@pytest.fixture
def cluster(kube: Callable[..., Kube], demand_sandbox: Sandbox) -> Iterator[Kube]:
    cluster = kube(demand_sandbox)
    yield cluster
    remove_added(cluster, "GPUDemand", "NodeProfile")


def discover(cluster: Kube, node: str, labels: dict[str, str], amounts: dict[str, str]) -> None:
    """What GPU Feature Discovery and the device plugin do."""
    cluster.patch("v1", "Node", node, {"metadata": {"labels": labels}})
    cluster.patch("v1", "Node", node, {"status": {"capacity": amounts, "allocatable": amounts}}, "", "status")


def registered(cluster: Kube, pool: str) -> bool:
    """Whether Karpenter has registered the NodePool's nodes: it leaves others when their NodeClaim is deleted."""
    claims = cluster.list(*CLAIM, selector=f"karpenter.sh/nodepool={pool}")
    conditions = [(each.get("status") or {}).get("conditions", ()) for each in claims]
    return bool(claims) and all(
        any(one["type"] == "Registered" and one["status"] == "True" for one in several) for several in conditions
    )


def refusals(cluster: Kube) -> list[str]:
    """Why pods get no capacity, in the statuses of GPUDemands."""
    found = cluster.list(API, "GPUDemand")
    return [reason for each in found for reason in (each.get("status") or {}).get("reasons", ())]


def learned(cluster: Kube, pool: str, label: str) -> str:
    """What was learned of the label on nodes of the NodePool; empty if nothing was."""
    found = (each for each in cluster.list(API, "NodeProfile") if each["spec"]["nodePool"] == pool)
    statuses: list[dict[str, Any]] = [each.get("status") or {} for each in found]
    return next((str(each.get("learned", {}).get("labels", {}).get(label, "")) for each in statuses), "")


@pytest.mark.parametrize(
    ("pool", "instance_type", "labels", "amounts", "label"),
    [
        ("sliced", "p4de.24xlarge", SLICED, {"nvidia.com/gpu": "0", "nvidia.com/mig-1g.10gb": "56"}, "mig.config"),
        ("timed", SMALL, REPLICAS, {"nvidia.com/gpu": "16"}, "gpu.replicas"),
    ],
)
def test_a_node_that_refuses_shares_is_bought_once_and_remembered(
    cluster: Kube,
    demand_sandbox: Sandbox,
    tmp_path: Path,
    pool: str,
    instance_type: str,
    labels: dict[str, str],
    amounts: dict[str, str],
    label: str,
) -> None:
    """The NodePool does not say how its GPUs are divided, so that the first node shows it. The NodePool then goes to
    zero, and the next pods are refused at once, with the reason."""
    declare_demand(cluster, "trigger-pod")
    add_pool(cluster, pool, instance_type, tier=pool)
    with controller(demand_sandbox, tmp_path):
        add_shares(cluster, [f"{pool}-first"], tier=pool)
        (node,) = await_condition(lambda: nodes_of(cluster, pool), 120, "a node")
        await_condition(lambda: registered(cluster, pool), 120, "Karpenter has registered it")
        discover(cluster, node, labels, amounts)
        await_condition(lambda: learned(cluster, pool, f"nvidia.com/{label}"), 120, "it is learned")
        await_condition(lambda: any("sharedDevices" in each for each in refusals(cluster)), 120, "the share is refused")
        await_condition(lambda: not triggers(cluster), 120, "the trigger goes")
        remove_shares(cluster, [f"{pool}-first"])
        for claim in claims_of(cluster, pool):
            cluster.delete(*CLAIM, claim)
        at_zero = f"karpenter.sh/nodepool={pool}"
        await_condition(lambda: not cluster.list("v1", "Node", selector=at_zero), 120, "the NodePool is at zero")
        await_condition(lambda: not claims_of(cluster, pool), 120, "its NodeClaims are gone")
        await_condition(lambda: not demands(cluster, "Pending"), 120, "the demand is over")
        add_shares(cluster, [f"{pool}-next"], tier=pool)
        await_condition(lambda: any("NodeProfile" in each for each in refusals(cluster)), 120, "it is refused at once")
        await_another_look(cluster)
        assert not claims_of(cluster, pool)
        assert not triggers(cluster)
        remove_shares(cluster, [f"{pool}-next"])


def test_a_selector_on_gpus_that_no_node_has_buys_nothing(
    cluster: Kube, demand_sandbox: Sandbox, tmp_path: Path
) -> None:
    declare_demand(cluster, "trigger-pod")
    add_pool(cluster, "known", SMALL, tier="known")
    with controller(demand_sandbox, tmp_path):
        add_shares(cluster, ["hopper"], tier="known", **{"nvidia.com/gpu.family": "hopper"})
        await_condition(
            lambda: any("nvidia.com/gpu.family=hopper" in each for each in refusals(cluster)), 120, "refused"
        )
        await_another_look(cluster)
        assert not claims_of(cluster, "known")
        assert not triggers(cluster)
        remove_shares(cluster, ["hopper"])
