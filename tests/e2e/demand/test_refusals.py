"""What Karpenter refuses is the demand's phase and reason while it is refused, with every provisioner it serves."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from plimsoll.sandbox import Sandbox
from tests.awaiting import await_condition
from tests.e2e.cluster.controller import controller
from tests.e2e.cluster.kube import Kube
from tests.e2e.demand.environment import (
    EIGHT_GPUS,
    NAMESPACE,
    POOL,
    TRIGGERS,
    add_pool,
    add_shares,
    asked,
    declare_demand,
    demands,
    nodes_of,
    remove_added,
    remove_shares,
)

pytestmark = pytest.mark.e2e


@pytest.fixture
def cluster(kube: Callable[..., Kube], demand_sandbox: Sandbox) -> Iterator[Kube]:
    cluster = kube(demand_sandbox)
    yield cluster
    remove_added(cluster, "GPUDemand")


def require_zone(cluster: Kube, pool: str, zone: str) -> None:
    """Has the NodePool launch its nodes in one zone."""
    requirements = [
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [EIGHT_GPUS]},
        {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]},
    ]
    cluster.patch(*POOL, pool, {"spec": {"template": {"spec": {"requirements": requirements}}}})


def events(cluster: Kube, namespace: str, reason: str, about: str = "") -> list[dict[str, Any]]:
    found = (each for each in cluster.list("v1", "Event", namespace) if each["reason"] == reason)
    return [each for each in found if about in each["involvedObject"]["name"]]


@pytest.mark.parametrize("provisioner", ["trigger-pod", "capacity-buffer"])
def test_karpenter_refuses_a_request_until_its_node_pool_allows_an_offering(
    cluster: Kube, demand_sandbox: Sandbox, tmp_path: Path, provisioner: str
) -> None:
    declare_demand(cluster, provisioner)
    pool = share = f"refused-{provisioner}"
    add_pool(cluster, pool, EIGHT_GPUS, tier=pool)
    require_zone(cluster, pool, "nowhere")
    with controller(demand_sandbox, tmp_path):
        add_shares(cluster, [share], tier=pool)
        (status,) = await_condition(lambda: demands(cluster, "Refused"), 120, "Karpenter refuses it")
        said = {each["message"] for each in events(cluster, TRIGGERS, "FailedScheduling")}
        (reason,) = status["reasons"]
        assert reason.startswith("karpenter refuses 1 request since ")
        assert any(f": FailedScheduling: {message[:300]}" in reason for message in said), (reason, said)
        assert await_condition(lambda: events(cluster, NAMESPACE, "CapacityRefused", share), 120, "its pod is told")
        assert len(asked(cluster, provisioner)) == 1, "it is still requested"
        require_zone(cluster, pool, "zone-a")
        await_condition(lambda: nodes_of(cluster, pool), 120, "Karpenter tries again by itself")
        (status,) = await_condition(lambda: demands(cluster, "NodeReady"), 120, "the GPUs are allocatable")
        assert not status.get("reasons")
        remove_shares(cluster, [share])
        await_condition(lambda: not asked(cluster, provisioner), 120, "nothing is left")
