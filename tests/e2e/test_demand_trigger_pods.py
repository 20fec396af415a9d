"""Demand on real parts, by trigger pods: Karpenter makes exactly the planned nodes, once."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from plimsoll.sandbox import Sandbox
from tests.e2e.awaiting import await_condition
from tests.e2e.controller import controller
from tests.e2e.demand import (
    API,
    EIGHT_GPUS,
    NAMESPACE,
    POOL,
    add_pool,
    add_shares,
    bind,
    claims_of,
    declare_demand,
    demands,
    gated,
    nodes_of,
    reasons,
    remove_shares,
    triggers,
)
from tests.e2e.kube import Kube

pytestmark = pytest.mark.e2e

LOOKS_AGAIN = 60
"""Seconds: Karpenter looks at every pod that is still to be provisioned for each 10."""


@pytest.fixture
def cluster(kube: Callable[..., Kube], demand_sandbox: Sandbox) -> Iterator[Kube]:
    cluster = kube(demand_sandbox)
    yield cluster
    for pool in cluster.list(*POOL):
        if pool["metadata"]["name"] != "gpu":
            cluster.delete(*POOL, pool["metadata"]["name"])
    for each in cluster.list(API, "GPUDemand"):
        cluster.delete(API, "GPUDemand", each["metadata"]["name"])


def test_a_burst_becomes_exactly_the_planned_nodes(cluster: Kube, demand_sandbox: Sandbox, tmp_path: Path) -> None:
    """The loop is killed while the nodes boot; another one goes on as if nothing had been."""
    declare_demand(cluster, "trigger-pod")
    add_pool(cluster, "burst", EIGHT_GPUS, delay="10s", tier="burst")
    shares = [f"burst-{number:02}" for number in range(33)]
    with controller(demand_sandbox, tmp_path) as first:
        await_condition(lambda: "at work" in first.text(), 60)
        add_shares(cluster, shares, tier="burst")
        await_condition(lambda: reasons(cluster) == ["Unschedulable"] * 3, 60, "33 halves are 3 nodes of 8 GPUs")
        assert len(demands(cluster, "Scheduled")) == 1
        await_condition(lambda: len(claims_of(cluster, "burst")) == 3, 60, "Karpenter makes them")
        first.kill()
    planned = claims_of(cluster, "burst")
    ever = set(planned)
    elsewhere = tmp_path / "another-host"
    elsewhere.mkdir()
    with controller(demand_sandbox, elsewhere, hostname="another-host"):
        await_condition(lambda: len(nodes_of(cluster, "burst")) == 3, 120, "three nodes")
        await_condition(lambda: reasons(cluster) == ["CapacityReady"] * 3, 60, "every trigger is disarmed")
        await_condition(lambda: demands(cluster, "NodeReady"), 30, "the pods are still to be bound")
        await_condition(lambda: not gated(cluster), 30, "the pods are let go")
        nodes = nodes_of(cluster, "burst")
        for number, name in enumerate(shares):
            bind(cluster, name, nodes[number // 16])
        await_condition(lambda: not triggers(cluster), 60, "the triggers go")
        await_condition(lambda: demands(cluster, "Completed"), 30)
        until = time.monotonic() + LOOKS_AGAIN
        while time.monotonic() < until:
            ever |= claims_of(cluster, "burst")
            time.sleep(0.5)
        assert ever == planned == claims_of(cluster, "burst"), "no other NodeClaim was ever made"
    bound = [pod["spec"].get("nodeName") for pod in cluster.list("v1", "Pod", NAMESPACE)]
    assert set(bound) == set(nodes)
    remove_shares(cluster, shares)
