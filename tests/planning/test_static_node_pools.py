"""The provisioner static-nodepool: a NodePool with replicas for each Workspace."""

from datetime import UTC, datetime
from typing import Any

import pytest

from plimsoll import labels
from plimsoll.model import Plan, Snapshot
from plimsoll.model.karpenter import NodeClaim
from plimsoll.plan import plan, validate
from tests.builders import NC24, a_claim, a_node, a_node_pool, a_pod, a_snapshot, a_workspace, an_environment
from tests.planning.cluster import after

NOW = datetime(2026, 1, 1, tzinfo=UTC)
STATIC = {"provisioner": "static-nodepool"}


def of(snapshot: Snapshot) -> Plan:
    return plan(snapshot, validate(snapshot), NOW)


def a_cluster(*objects: Any, **environment: Any) -> Snapshot:
    return a_snapshot(*objects, environment=an_environment(nap=True, **(STATIC | environment)))


def wanting(nodes: int, **fields: Any) -> Any:
    given: dict[str, Any] = {"instance_type": NC24, "replicas": nodes, "uid": "u"} | fields
    return a_workspace(**given)


def pools(found: Plan) -> list[dict[str, Any]]:
    return [each.manifest for each in (*found.creations, *found.updates) if each.key.kind == "NodePool"]


def with_pool(replicas: int, *objects: Any, **environment: Any) -> Snapshot:
    """A cluster in which a Workspace has its NodePool with this many replicas."""
    snapshot = a_cluster(wanting(replicas), *objects, **environment)
    return after(snapshot, of(snapshot))


def pooled(snapshot: Snapshot, name: str = "pooled") -> NodeClaim:
    """A NodeClaim as Karpenter creates it from the Workspace's NodePool."""
    claim = a_claim(name, wanting(1))
    return claim.model_copy(update={"labels": claim.labels | {labels.NODEPOOL: snapshot.node_pools[-1].name}})


def test_node_pools_of_a_former_mode_are_named() -> None:
    claimed = a_claim("claim-1", wanting(1))
    snapshot = with_pool(2, claimed)
    name = snapshot.node_pools[0].name
    without_provisioning = snapshot.model_copy(update={"environment": an_environment()})
    assert of(without_provisioning).empty
    assert of(without_provisioning).warnings == (
        "Workspace default/ws: 1 NodeClaim from when node auto-provisioning was enabled, not deleted: claim-1",
        f"Workspace default/ws: 1 static NodePool from when node auto-provisioning was enabled, not deleted: {name} "
        "(replicas: 1)",
    )


def test_the_manifest_of_the_node_pool() -> None:
    [manifest] = pools(of(a_cluster(wanting(2, selector={"team": "red"}))))
    spec = manifest["spec"]
    assert (spec["replicas"], spec["limits"]) == (2, {"nodes": "2"})
    assert "weight" not in spec
    assert spec["disruption"]["budgets"] == [{"nodes": "0"}]
    assert spec["disruption"]["consolidateAfter"] == "Never"
    template = spec["template"]
    assert template["spec"]["expireAfter"] == "Never"
    assert template["metadata"]["labels"].items() >= {"team": "red", labels.WORKSPACE: "ws"}.items()
    assert manifest["metadata"]["labels"].items() >= {labels.WORKSPACE: "ws", labels.WORKSPACE_UID: "u"}.items()
    types = [each for each in template["spec"]["requirements"] if each["key"] == labels.INSTANCE_TYPE]
    assert types == [{"key": labels.INSTANCE_TYPE, "operator": "In", "values": [NC24]}]


def test_replicas_follow_the_workspace_and_nothing_else_changes() -> None:
    snapshot = with_pool(2)
    assert of(snapshot).empty
    for nodes in (3, 1, 0):
        changed = snapshot.model_copy(update={"workspaces": (wanting(nodes),)})
        found = of(changed)
        [manifest] = pools(found)
        assert manifest["spec"]["replicas"] == nodes
        assert found.creations == ()
        assert found.deletions == ()
        assert of(after(changed, found)).empty


def test_its_claims_are_left_to_karpenter_to_delete() -> None:
    snapshot = with_pool(1)
    claims = (pooled(snapshot, "a"), pooled(snapshot, "b"))
    assert of(snapshot.model_copy(update={"node_claims": claims})).empty
    gone = snapshot.model_copy(update={"workspaces": (), "node_claims": claims})
    assert [str(each.key) for each in of(gone).deletions] == [f"NodePool {snapshot.node_pools[0].name}"]


def test_existing_nodes_reduce_the_replicas() -> None:
    [manifest] = pools(of(a_cluster(wanting(3), a_node(instance_type=NC24))))
    assert manifest["spec"]["replicas"] == 2


def test_limits_hold_for_replicas() -> None:
    snapshot = a_cluster(wanting(2), limits={"nodes": 1})
    assert of(snapshot).empty, "refused as a whole"
    grown = with_pool(2, limits={"nodes": 2}).model_copy(update={"workspaces": (wanting(3),)})
    assert of(grown).empty, "its replicas count before they are nodes"


def test_nodes_being_deleted_count_against_the_limits() -> None:
    snapshot = with_pool(1, limits={"nodes": 2})
    going = pooled(snapshot, "b").model_copy(update={"deletion_timestamp": "2026-01-01T00:00:00Z"})
    grown = snapshot.model_copy(update={"node_claims": (pooled(snapshot, "a"), going), "workspaces": (wanting(2),)})
    found = of(grown)
    assert found.empty
    assert any("LimitExceeded" in warning for warning in found.warnings)
    [manifest] = pools(of(grown.model_copy(update={"node_claims": (pooled(snapshot, "a"),)})))
    assert manifest["spec"]["replicas"] == 2


def test_other_workspaces_do_not_use_the_workspaces_own_node_pool() -> None:
    snapshot = with_pool(1, a_node_pool("lender", [NC24], node_class="lent"))
    other = wanting(1, name="other", uid="o")
    [manifest] = pools(of(snapshot.model_copy(update={"workspaces": (*snapshot.workspaces, other)})))
    assert manifest["spec"]["template"]["spec"]["nodeClassRef"]["name"] == "lent"


def test_claims_of_the_former_provisioner_count() -> None:
    found = of(a_cluster(wanting(3), a_claim("before", wanting(1))))
    assert [manifest["spec"]["replicas"] for manifest in pools(found)] == [2]
    assert found.deletions == ()


@pytest.mark.parametrize("busy", ["a", "b"])
def test_of_surplus_claims_of_the_former_provisioner_those_without_a_pod_go_first(busy: str) -> None:
    claims = [a_claim(name, wanting(1), ready=True, node=f"node-{name}") for name in "ab"]
    nodes = [a_node(f"node-{name}", allocatable=1) for name in "ab"]
    found = of(a_cluster(wanting(1), *claims, *nodes, a_pod("pod", wanting(1), f"node-{busy}", devices=1)))
    assert [each.key.name for each in found.deletions] == ["b" if busy == "a" else "a"]


def test_a_changed_provisioner_keeps_the_nodes_and_deletes_the_pool_with_the_last_one() -> None:
    snapshot = with_pool(2).model_copy(update={"environment": an_environment(nap=True)})
    assert of(snapshot).empty
    raised = of(snapshot.model_copy(update={"workspaces": (wanting(3),)}))
    assert [each.key.kind for each in raised.creations] == ["NodeClaim"]
    lowered = of(snapshot.model_copy(update={"workspaces": (wanting(1),)}))
    assert [manifest["spec"]["replicas"] for manifest in pools(lowered)] == [1]
    none = of(snapshot.model_copy(update={"workspaces": (wanting(0),)}))
    assert [each.key.kind for each in none.deletions] == ["NodePool"]


def test_a_changed_provisioner_deletes_a_pool_that_has_no_replicas() -> None:
    """As after existing nodes replaced all of its own."""
    snapshot = with_pool(1)
    snapshot = snapshot.model_copy(update={"nodes": (a_node(instance_type=NC24),)})
    snapshot = after(snapshot, of(snapshot))
    assert [pool.replicas for pool in snapshot.node_pools] == [0]
    changed = of(snapshot.model_copy(update={"environment": an_environment(nap=True)}))
    assert [each.key.kind for each in changed.deletions] == ["NodePool"]
    assert (changed.creations, changed.updates) == ((), ())


@pytest.mark.parametrize("nodes", range(6))
def test_a_surplus_of_claims_and_a_node_pool_is_removed_once(nodes: int) -> None:
    """As after the provisioner changed while the Workspace had a NodePool."""
    snapshot = with_pool(2).model_copy(update={"environment": an_environment(nap=True)})
    own = tuple(a_claim(f"own-{n}", wanting(1), ready=True) for n in range(2))
    nodes_of_claims = tuple(a_node(f"own-{n}") for n in range(2))
    changed = {"node_claims": own, "nodes": nodes_of_claims, "workspaces": (wanting(nodes),)}
    found = of(snapshot.model_copy(update=changed))
    claims = 2 + sum(each.key.kind == "NodeClaim" for each in found.creations)
    claims -= sum(each.key.kind == "NodeClaim" for each in found.deletions)
    replicas = [each["spec"]["replicas"] for each in pools(found)] or [2]
    if any(each.key.kind == "NodePool" for each in found.deletions):
        replicas = [0]
    assert claims + replicas[0] == nodes
