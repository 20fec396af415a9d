"""Ephemeral storage of pods: nodes have room for what is free of theirs, new ones for what such nodes have."""

from typing import Any

import pytest

from plimsoll.labels import INSTANCE_TYPE, NODEPOOL
from plimsoll.model.cluster import Node, Pod
from plimsoll.model.karpenter import NodeClaim
from plimsoll.plan.requests import NodeRequest
from tests.builders import (
    a_daemon_set,
    a_gpu_node,
    a_node_pool,
    a_node_profile,
    a_plain_pod,
    a_waiting_pod,
)
from tests.demand.plans import on_nodes, planned, refused, types

SMALL, LARGE = "g6.xlarge", "g6.8xlarge"
POOL = a_node_pool("pool", (SMALL, LARGE))


def share(name: str = "pod", storage: str = "", fraction: str = "0.25", **more: Any) -> Pod:
    return a_waiting_pod(name, gpu_fraction=fraction, storage=storage, **more)


def a_disk(instance_type: str, storage: str) -> Any:
    """What nodes of a type in the NodePool have."""
    return a_node_profile("pool", instance_type, allocatable={"ephemeral-storage": storage})


def using(storage: str, kind: str = "plain") -> Any:
    """A pod on the node."""
    if kind == "plain":
        return a_plain_pod("log", "node", storage=storage)
    return a_waiting_pod("busy", gpu_fraction="0.25", storage=storage, node="node", phase="Running")


@pytest.mark.parametrize(("storage", "there"), [("", True), ("90Gi", True), ("110Gi", False)])
def test_a_share_goes_where_its_storage_is_free(storage: str, there: bool) -> None:
    plan = planned(share(storage=storage), a_gpu_node(storage="100Gi"))
    assert on_nodes(plan) == ({"uid-pod": "node"} if there else {})
    assert bool(refused(plan)) is not there


def test_shares_use_the_storage_of_a_node_together() -> None:
    plan = planned(*(share(f"p{number}", "40Gi") for number in range(3)), a_gpu_node(storage="100Gi"))
    assert len(on_nodes(plan)) == 2


@pytest.mark.parametrize("kind", ["plain", "share"])
def test_pods_on_the_node_use_its_storage(kind: str) -> None:
    node = a_gpu_node(storage="100Gi")
    assert on_nodes(planned(share(storage="60Gi"), using("40Gi", kind), node))
    assert not on_nodes(planned(share(storage="60Gi"), using("41Gi", kind), node))


def test_daemon_sets_will_use_the_storage_of_a_new_node() -> None:
    disk = a_disk(SMALL, "100Gi")
    agents = a_daemon_set(storage="50Gi")
    assert types(planned(share(storage="60Gi"), a_node_pool("pool", (SMALL,)), disk)) == [SMALL]
    assert not types(planned(share(storage="60Gi"), a_node_pool("pool", (SMALL,)), disk, agents))


def test_a_new_node_is_of_a_type_with_the_storage() -> None:
    disks = (a_disk(SMALL, "50Gi"), a_disk(LARGE, "500Gi"))
    assert types(planned(share(storage="60Gi"), POOL, *disks)) == [LARGE]
    (node,) = planned(share(storage="40Gi"), POOL, *disks).nodes
    assert {node.instance_type, *node.alternatives} == {SMALL, LARGE}
    (node,) = planned(share(storage="60Gi"), POOL, *disks).nodes
    assert not node.alternatives


def test_a_type_of_unknown_storage_may_have_it() -> None:
    assert types(planned(share(storage="900Gi"), POOL))


def test_a_pod_that_asks_more_than_any_node_has_is_refused_by_name() -> None:
    plan = planned(share(storage="600Gi"), POOL, a_disk(SMALL, "50Gi"), a_disk(LARGE, "500Gi"))
    assert not plan.nodes
    (why,) = refused(plan).values()
    assert "614400Mi of ephemeral-storage that it requests (at most 512000Mi for pods)" in why


def test_pods_with_whole_gpus_use_storage_that_shares_then_do_not_have() -> None:
    whole = a_waiting_pod("whole", gpus=1, storage="80Gi", scheduler="default-scheduler")
    node = a_gpu_node(gpus=2, storage="100Gi")
    assert on_nodes(planned(share(storage="40Gi"), node)) == {"uid-pod": "node"}
    running = whole.model_copy(update={"node_name": "node", "phase": "Running"})
    assert not on_nodes(planned(share(storage="40Gi"), running, node))


@pytest.mark.parametrize(("used", "there"), [("10Gi", True), ("60Gi", False)])
def test_a_node_under_way_has_what_its_pods_leave(used: str, there: bool) -> None:
    """Of a NodeClaim for a pod with one of its GPUs."""
    pool, disk = a_node_pool("pool", ("g6.12xlarge",)), a_disk("g6.12xlarge", "100Gi")
    requests = {"nvidia.com/gpu": "1", "ephemeral-storage": used}
    labels = {NODEPOOL: "pool", INSTANCE_TYPE: "g6.12xlarge"}
    claim = NodeClaim.read(
        {"metadata": {"name": "claim", "labels": labels}, "spec": {"resources": {"requests": requests}}}
    )
    plan = planned(share(storage="50Gi"), pool, disk, claim)
    assert on_nodes(plan) == ({"uid-pod": "claim"} if there else {})


def test_the_request_for_a_node_asks_for_the_storage_of_its_pods() -> None:
    (node,) = planned(share("a", "30Gi"), share("b", "10Gi"), POOL).nodes
    wanted = NodeRequest.of(node)
    assert wanted.requests("nvidia.com/gpu")["ephemeral-storage"] == f"{40 * 1024}Mi"
    assert NodeRequest.from_annotations({"plimsoll.dev/node": wanted.text}) == wanted
    (node,) = planned(share("a"), POOL).nodes
    assert "ephemeral-storage" not in NodeRequest.of(node).requests("nvidia.com/gpu")


def test_what_is_learned_of_storage_counts_for_the_next_node() -> None:
    node: Node = a_gpu_node(product="NVIDIA-L4", memory=23034, storage="50Gi", instance_type=SMALL,
                            more_labels={NODEPOOL: "pool"})  # fmt: skip
    busy = a_waiting_pod("busy", gpus=1, node="node", phase="Running")
    pool = a_node_pool("pool", (SMALL,))
    assert types(planned(share(storage="40Gi"), node, busy, pool)) == [SMALL]
    assert not types(planned(share(storage="60Gi"), node, busy, pool))
