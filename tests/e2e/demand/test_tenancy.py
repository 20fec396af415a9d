"""A namespace buys no more GPUs with shares than it may have, by a real apiserver and Karpenter."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from plimsoll.sandbox import Sandbox
from tests.awaiting import await_condition
from tests.e2e.cluster.controller import controller
from tests.e2e.cluster.kube import Kube, Manifest
from tests.e2e.demand.environment import (
    API,
    EIGHT_GPUS,
    ENVIRONMENT,
    NAMESPACE,
    add_pool,
    add_shares,
    claims_of,
    declare_demand,
    demands,
    gated,
    nodes_of,
    remove_added,
    remove_shares,
    triggers,
)

pytestmark = pytest.mark.e2e

POOL = "bounded"
SHARES = [f"steal-{number}" for number in range(4)]
QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "gpus", "namespace": NAMESPACE},
    "spec": {"hard": {"requests.nvidia.com/gpu": "0"}},
}


@pytest.fixture
def cluster(kube: Callable[..., Kube], demand_sandbox: Sandbox) -> Iterator[Kube]:
    cluster = kube(demand_sandbox)
    yield cluster
    remove_shares(cluster, SHARES)
    cluster.delete("v1", "ResourceQuota", "gpus", NAMESPACE)
    cluster.patch(API, "Environment", ENVIRONMENT, {"spec": {"access": None}})
    remove_added(cluster, "GPUDemand")


def told(cluster: Kube, said: str) -> list[Manifest]:
    """Events on the pods that have the text."""
    found = (each for each in cluster.list("v1", "Event", NAMESPACE) if each["reason"] == "CapacityNotRequested")
    return [each for each in found if said in each["message"] and each["involvedObject"]["name"] in SHARES]


def test_shares_buy_what_access_and_quotas_leave(cluster: Kube, demand_sandbox: Sandbox, tmp_path: Path) -> None:
    declare_demand(cluster, "trigger-pod")
    add_pool(cluster, POOL, EIGHT_GPUS, tier=POOL)
    cluster.patch(API, "Environment", ENVIRONMENT, {"spec": {"access": [{"namespaces": ["*"], "gpus": 0}]}})
    with controller(demand_sandbox, tmp_path):
        add_shares(cluster, SHARES, fraction="0.9", tier=POOL)
        await_condition(lambda: told(cluster, "access.gpus of the Environment"), 60, "the pods are told")
        assert not triggers(cluster)
        assert not claims_of(cluster, POOL)
        cluster.apply(QUOTA)
        cluster.patch(API, "Environment", ENVIRONMENT, {"spec": {"access": None}})
        await_condition(lambda: "ResourceQuota gpus" in str(demands(cluster)), 60, "the quota bounds them, too")
        assert not triggers(cluster)
        assert not claims_of(cluster, POOL)
        assert len(gated(cluster)) == len(SHARES)
        cluster.apply({**QUOTA, "spec": {"hard": {"requests.nvidia.com/gpu": "2"}}})
        await_condition(lambda: nodes_of(cluster, POOL), 120, "what the quota leaves is provided")
        await_condition(lambda: len(gated(cluster)) == 2, 60, "two of four pods with 0.9 GPUs may run")
        assert len(claims_of(cluster, POOL)) == 1
        waiting = [each for each in demands(cluster) if each["phase"] != "Completed"]
        assert [each["refusedPods"] for each in waiting] == [2], "the demand of those who were left out has ended"
