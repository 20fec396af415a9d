"""Karpenter creates no nodes from NodePools that are being deleted or not Ready, so none are requested from them."""

from typing import Any

import pytest

from plimsoll.labels import INSTANCE_TYPE, NODEPOOL
from plimsoll.model.karpenter import NodeClaim, NodePool
from plimsoll.model.meta import Condition
from plimsoll.plan import plan, validate
from tests.builders import NC24, a_node_pool, a_snapshot, a_waiting_pod, a_workspace
from tests.capacity_requests.cluster import Cluster, at, pool, share_pod
from tests.demand.plans import on_nodes, only, planned, refused

SHARE = a_waiting_pod("share", gpu_fraction="0.5")
SMALL, LARGE = "g6.xlarge", "g6.12xlarge"


def ready(of: NodePool, status: str = "False", message: str = "") -> NodePool:
    condition = Condition(type="Ready", status=status, reason="NodeClassNotReady", message=message)
    return of.model_copy(update={"conditions": (condition,)})


def deleting(of: NodePool) -> NodePool:
    return of.model_copy(update={"deletion_timestamp": "2026-01-01T00:00:00Z"})


FIRST = a_node_pool("first", [SMALL], weight=10)


@pytest.mark.parametrize(
    ("first", "chosen"),
    [
        (FIRST, "first"),
        (ready(FIRST, "True"), "first"),
        (ready(FIRST), "second"),
        (ready(FIRST, "Unknown"), "second"),
        (deleting(FIRST), "second"),
    ],
)
def test_the_next_node_pool_is_used(first: NodePool, chosen: str) -> None:
    assert [node.node_pool for node in planned(SHARE, first, a_node_pool("second", [SMALL])).nodes] == [chosen]


def test_the_reason_names_the_node_pool() -> None:
    found = planned(SHARE, ready(FIRST, message="NodeClass is missing"))
    (why,) = refused(found).values()
    assert "NodePool first is not Ready (NodeClassNotReady: NodeClass is missing)" in why
    assert any("NodePool first" in warning for warning in only(found).warnings)
    assert "NodePool first" not in next(iter(refused(planned(SHARE, deleting(FIRST))).values()))


def test_no_smaller_type_of_a_node_pool_that_is_not_ready_makes_a_larger_one_surplus() -> None:
    found = planned(SHARE, ready(FIRST), a_node_pool("second", [LARGE, SMALL]), blocked={(SMALL, "second")})
    assert "would be requested where 1 are enough" in refused(found)["uid-share"], "its own smaller type does"
    assert [node.instance_type for node in planned(SHARE, ready(FIRST), a_node_pool("second", [LARGE])).nodes] == [
        LARGE
    ]


def test_its_node_claims_are_supply() -> None:
    manifest: dict[str, Any] = {
        "metadata": {"name": "claim", "labels": {NODEPOOL: "first", INSTANCE_TYPE: SMALL}},
        "spec": {"resources": {"requests": {"cpu": "1"}}},
    }
    found = planned(SHARE, ready(FIRST), a_node_pool("second", [SMALL]), NodeClaim.read(manifest))
    assert (on_nodes(found), found.nodes) == ({"uid-share": "claim"}, ())


def test_a_request_stays_while_its_node_pool_is_not_ready_for_a_moment() -> None:
    cluster = Cluster(pool("first", weight=10), pool("second"), share_pod("share"))
    assert len(cluster.run_round(at(0)).creations) == 1
    cluster.objects = [ready(each) if each.name == "first" else each for each in cluster.objects]
    assert cluster.run_round(at(10)).empty
    late = cluster.run_round(at(1000))
    assert len(late.deletions) == 1
    (creation,) = late.creations
    assert creation.manifest["spec"]["nodeSelector"][NODEPOOL] == "second"


@pytest.mark.parametrize(("first", "chosen"), [(ready, "a"), (deleting, "b")])
def test_a_workspace_keeps_the_node_class_of_a_node_pool_that_is_not_ready(first: Any, chosen: str) -> None:
    pools = [first(a_node_pool("a", [NC24], weight=10, node_class="a")), a_node_pool("b", [NC24], node_class="b")]
    snapshot = a_snapshot(a_workspace(instance_type=NC24), *pools, nap=True)
    (claim,) = [each for each in plan(snapshot, validate(snapshot), at(0)).creations if each.key.kind == "NodeClaim"]
    assert claim.manifest["spec"]["nodeClassRef"]["name"] == chosen


def test_limits_of_a_node_pool_that_is_not_ready_count() -> None:
    full = a_node_pool("a", [NC24], weight=10, limits={"nodes": 1}, used={"nodes": 1})
    (verdict,) = validate(a_snapshot(a_workspace(instance_type=NC24), ready(full), a_node_pool("b", [NC24]), nap=True))
    assert "limits.nodes of NodePool a" in verdict.message
