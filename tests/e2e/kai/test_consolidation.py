"""Karpenter consolidates beside KAI: empty nodes go, and no node with a share is disrupted, however little it uses."""

import os
import time
from pathlib import Path

import pytest

from plimsoll.sandbox import Sandbox
from tests.awaiting import await_condition
from tests.e2e.cluster.controller import controller
from tests.e2e.cluster.kube import Kube
from tests.e2e.demand.environment import POOL, add_pool, triggers
from tests.e2e.kai.workloads import NAMESPACE, Placed, share

pytestmark = pytest.mark.e2e

NAME, LARGE, SMALL = "consolidated", "g5.12xlarge", "g5.xlarge"
"""4 x A10G, and one."""
SHARES = 8
SECONDS = float(os.environ.get("KAI_SECONDS", "12"))
"""How long Karpenter is watched once it has looked at every node: more than one of its rounds, which are ten seconds
apart. `make chaos` takes five minutes."""


def blocked(cluster: Kube) -> set[str]:
    """Nodes of which Karpenter says that it may not disrupt them."""
    events = cluster.list("v1", "Event", NAMESPACE)
    return {e["involvedObject"]["name"] for e in events if e["reason"] == "DisruptionBlocked"}


def test_empty_nodes_go_and_nodes_with_a_share_stay(cluster: Kube, kai_sandbox: Sandbox, tmp_path: Path) -> None:
    add_pool(cluster, NAME, LARGE)
    for number in range(SHARES):
        cluster.create(share(f"share-{number}", "0.9", gated=True))
    with controller(kai_sandbox, tmp_path):
        await_condition(lambda: len(Placed.of(cluster).bound) == SHARES, 180, "all are bound")
        await_condition(lambda: not triggers(cluster), 120, "no trigger pod is left")
    placed = Placed.of(cluster)
    used, empty = sorted(placed.nodes)
    kept = next(name for name, node in placed.pods.items() if node == used)
    for name in placed.pods.keys() - {kept}:
        cluster.delete("v1", "Pod", name, NAMESPACE)
    # A node of one GPU would do for the share that is left.
    requirement = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [LARGE, SMALL]}
    disruption = {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "0s"}
    spec = {"template": {"spec": {"requirements": [requirement]}}, "disruption": disruption}
    cluster.patch(*POOL, NAME, {"spec": spec})
    await_condition(lambda: empty not in Placed.of(cluster).nodes, 120, "the empty node goes")
    await_condition(lambda: used in blocked(cluster), 120, "Karpenter has looked at the other one")
    deadline = time.monotonic() + SECONDS
    while True:
        placed = Placed.of(cluster)
        assert placed.nodes == {used}
        assert placed.pods == {kept: used}
        if time.monotonic() >= deadline:
            break
        time.sleep(1)
