"""Demand on real components: Karpenter creates exactly the planned nodes, once, with every provisioner."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from plimsoll.sandbox import Sandbox
from tests.awaiting import await_condition
from tests.e2e.cluster.controller import controller
from tests.e2e.cluster.kube import Kube
from tests.e2e.demand.environment import (
    EIGHT_GPUS,
    NAMESPACE,
    UNDER_WAY,
    add_pool,
    add_shares,
    asked,
    await_another_look,
    bind,
    claims_of,
    declare_demand,
    demands,
    gated,
    nodes_of,
    reasons,
    remove_added,
    remove_shares,
    wanted,
)

pytestmark = pytest.mark.e2e


@pytest.fixture
def cluster(kube: Callable[..., Kube], demand_sandbox: Sandbox) -> Iterator[Kube]:
    cluster = kube(demand_sandbox)
    yield cluster
    remove_added(cluster, "GPUDemand")


@pytest.mark.parametrize(
    ("provisioner", "halves", "number"),
    [pytest.param("trigger-pod", 33, 3, id="triggers"), pytest.param("capacity-buffer", 17, 2, id="buffers")],
)
def test_a_burst_becomes_exactly_the_planned_nodes(
    cluster: Kube, demand_sandbox: Sandbox, tmp_path: Path, provisioner: str, halves: int, number: int
) -> None:
    """The controller is killed while the nodes of 8 GPUs boot; another one continues."""
    triggers = number if provisioner == "trigger-pod" else 0
    declare_demand(cluster, provisioner)
    add_pool(cluster, provisioner, EIGHT_GPUS, delay="20s", tier=provisioner)
    shares = [f"{provisioner}-{each:02}" for each in range(halves)]
    with controller(demand_sandbox, tmp_path) as first:
        await_condition(lambda: "the controller is active" in first.text(), 120)
        add_shares(cluster, shares, tier=provisioner)
        await_condition(lambda: sum(wanted(cluster, provisioner)) == number, 120, f"{number} nodes are asked for")
        assert reasons(cluster) == ["Unschedulable"] * triggers
        await_condition(lambda: len(claims_of(cluster, provisioner)) == number, 120, "Karpenter makes them")
        # Trigger pods exist before the update that creates them ends; then it is reported.
        await_condition(lambda: len(demands(cluster, *UNDER_WAY)) == 1, 120, "one demand is under way")
        first.kill()
    planned = claims_of(cluster, provisioner)
    ever = set(planned)
    elsewhere = tmp_path / "another-host"
    elsewhere.mkdir()
    with controller(demand_sandbox, elsewhere, hostname="another-host"):
        await_condition(lambda: len(nodes_of(cluster, provisioner)) == number, 120, "the nodes")
        await_condition(lambda: set(wanted(cluster, provisioner)) == {0}, 120, "every wish is taken back")
        assert reasons(cluster) == ["CapacityReady"] * triggers
        await_condition(lambda: demands(cluster, "NodeReady"), 120, "the pods are still to be bound")
        await_condition(lambda: not gated(cluster), 120, "the pods are let go")
        nodes = nodes_of(cluster, provisioner)
        for place, name in enumerate(shares):
            bind(cluster, name, nodes[place // 16])
        await_condition(lambda: not asked(cluster, provisioner), 120, "what asked goes")
        await_condition(lambda: demands(cluster, "Completed"), 120)
        ever |= claims_of(cluster, provisioner)
        await_another_look(cluster)
        ever |= claims_of(cluster, provisioner)
        assert ever == planned == claims_of(cluster, provisioner), "no other NodeClaim was ever made"
    bound = [pod["spec"].get("nodeName") for pod in cluster.list("v1", "Pod", NAMESPACE)]
    assert set(bound) == set(nodes)
    remove_shares(cluster, shares)
