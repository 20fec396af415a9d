"""Demand on real parts, by CapacityBuffers: Karpenter holds virtual pods, and makes exactly the planned nodes."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from plimsoll.sandbox import Sandbox
from tests.e2e.awaiting import await_condition
from tests.e2e.controller import controller
from tests.e2e.demand import (
    API,
    BUFFER,
    EIGHT_GPUS,
    POOL,
    TRIGGERS,
    add_pool,
    add_shares,
    bind,
    claims_of,
    declare_demand,
    demands,
    gated,
    nodes_of,
    remove_shares,
)
from tests.e2e.kube import Kube, Manifest

pytestmark = pytest.mark.e2e

LOOKS_AGAIN = 60
"""Seconds: Karpenter looks at every buffer each 30."""


def buffers(cluster: Kube) -> list[Manifest]:
    return cluster.list(*BUFFER, TRIGGERS)


def replicas(cluster: Kube) -> list[int]:
    return [each["spec"]["replicas"] for each in buffers(cluster)]


def test_a_buffer_is_shrunk_as_its_nodes_come_and_never_filled_again(
    kube: Callable[..., Kube], demand_sandbox: Sandbox, tmp_path: Path
) -> None:
    cluster = kube(demand_sandbox)
    declare_demand(cluster, "capacity-buffer")
    add_pool(cluster, "buffered", EIGHT_GPUS, delay="10s", tier="buffered")
    shares = [f"buffered-{number:02}" for number in range(17)]
    with controller(demand_sandbox, tmp_path) as first:
        await_condition(lambda: "at work" in first.text(), 60)
        add_shares(cluster, shares, tier="buffered")
        await_condition(lambda: sum(replicas(cluster)) == 2, 60, "17 halves are 2 nodes of 8 GPUs")
        await_condition(lambda: len(claims_of(cluster, "buffered")) == 2, 60, "Karpenter makes them")
        first.kill()
    planned = claims_of(cluster, "buffered")
    ever = set(planned)
    elsewhere = tmp_path / "another-host"
    elsewhere.mkdir()
    with controller(demand_sandbox, elsewhere, hostname="another-host"):
        await_condition(lambda: len(nodes_of(cluster, "buffered")) == 2, 120, "two nodes")
        await_condition(lambda: set(replicas(cluster)) == {0}, 60, "shrunk")
        await_condition(lambda: not gated(cluster), 30, "the pods are let go")
        for number, name in enumerate(shares):
            bind(cluster, name, nodes_of(cluster, "buffered")[number // 16])
        await_condition(lambda: not buffers(cluster), 60, "the buffer goes")
        assert not cluster.list("v1", "PodTemplate", TRIGGERS)
        await_condition(lambda: demands(cluster, "Completed"), 30)
        until = time.monotonic() + LOOKS_AGAIN
        while time.monotonic() < until:
            ever |= claims_of(cluster, "buffered")
            time.sleep(0.5)
        assert ever == planned == claims_of(cluster, "buffered"), "no other NodeClaim was ever made"
    remove_shares(cluster, shares)
    cluster.delete(*POOL, "buffered")
    for each in cluster.list(API, "GPUDemand"):
        cluster.delete(API, "GPUDemand", each["metadata"]["name"])
