"""Under the limits of the Environment a requested node counts once: as a request, a NodeClaim or a node."""

from typing import Any

import pytest

from plimsoll.model.cluster import Node
from tests.builders import an_environment
from tests.capacity_requests.cluster import Cluster, at, claim, node, pool, share_pod


def shares(of: str, number: int = 8) -> list[Any]:
    """As many as fill a node of 8 GPUs."""
    return [share_pod(f"{of}-{each}", "0.9") for each in range(number)]


def a_cluster(nodes: int, *objects: Any) -> Cluster:
    """With a request for one node, where the limit is this many."""
    limited = an_environment(nap=True, limits={"nodes": nodes}, demand={"provisioner": "trigger-pod"})
    cluster = Cluster(pool(), *shares("first"), *objects, environment=limited)
    cluster.run_round(at(10))
    assert len(cluster.requested()) == 1
    return cluster


def without_gpus(name: str) -> Node:
    return node(name, at(20)).model_copy(update={"allocatable": {}, "capacity": {}})


@pytest.mark.parametrize("ready", [True, False], ids=["Ready", "not Ready"])
def test_a_node_without_its_gpus_yet_and_its_request_are_one(ready: bool) -> None:
    """A node is Ready some time before the driver is installed."""
    cluster = a_cluster(2)
    cluster.objects.append(claim("own", at(11), nodeName="own" if ready else ""))
    if ready:
        cluster.objects.append(without_gpus("own"))
    cluster.objects += shares("second")
    cluster.run_round(at(30))
    assert len(cluster.requested()) == 2


def test_an_older_claim_is_not_that_of_the_request() -> None:
    cluster = a_cluster(2, claim("older", at(0)))
    cluster.objects += shares("second")
    cluster.run_round(at(30))
    assert len(cluster.requested()) == 1, "the older NodeClaim, and the request"
