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

BUFFER = ("autoscaling.x-k8s.io/v1beta1", "CapacityBuffer")
LOOKS_AGAIN = 60
"""Seconds: Karpenter looks at every buffer each 30."""


def buffers(cluster: Kube) -> list[Manifest]:
    return cluster.list(*BUFFER, TRIGGERS)


def test_a_buffer_is_shrunk_as_its_nodes_come_and_never_filled_again(
    kube: Callable[..., Kube], demand_sandbox: Sandbox, tmp_path: Path
) -> None:
    cluster = kube(demand_sandbox)
    declare_demand(cluster, "capacity-buffer")
    add_pool(cluster, "buffered", EIGHT_GPUS, delay="3s", tier="buffered")
    shares = [f"buffered-{number:02}" for number in range(17)]
    with controller(demand_sandbox, tmp_path):
        add_shares(cluster, shares, tier="buffered")
        await_condition(lambda: [each["spec"]["replicas"] for each in buffers(cluster)], 60, "a buffer")
        await_condition(lambda: len(nodes_of(cluster, "buffered")) == 2, 120, "17 halves are 2 nodes of 8 GPUs")
        planned = claims_of(cluster, "buffered")
        ever = set(planned)
        await_condition(
            lambda: sum(each["spec"]["replicas"] for each in buffers(cluster)) == 0 and buffers(cluster), 60, "shrunk"
        )
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
        assert ever == planned
        assert len(planned) == 2
    remove_shares(cluster, shares)
    cluster.delete(*POOL, "buffered")
    for each in cluster.list(API, "GPUDemand"):
        cluster.delete(API, "GPUDemand", each["metadata"]["name"])
