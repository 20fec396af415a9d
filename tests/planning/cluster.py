"""Applies a plan to a snapshot."""

from datetime import datetime
from typing import Any

from plimsoll.model import ObjectKey, Plan, Snapshot
from plimsoll.model.api import WorkspaceStatus
from plimsoll.model.cluster import Workload
from plimsoll.model.karpenter import NodeClaim, NodePool
from plimsoll.plan import plan, validate
from plimsoll.plan.workspaces import AppliedClaims, WorkspaceNodes
from plimsoll.report import status_of
from tests.builders import a_node, a_workload

CLAIM = "karpenter.sh/v1"


def claim_key(name: str) -> ObjectKey:
    return ObjectKey(api_version=CLAIM, kind="NodeClaim", namespace="", name=name)


def pool_key(name: str) -> ObjectKey:
    return ObjectKey(api_version=CLAIM, kind="NodePool", namespace="", name=name)


def workload_key(workload: Workload) -> ObjectKey:
    return ObjectKey(
        api_version=workload.api_version, kind=workload.kind, namespace=workload.namespace, name=workload.name
    )


def after(snapshot: Snapshot, made: Plan) -> Snapshot:
    """The snapshot after every operation of the made. Creating an existing object fails, and deleting a NodeClaim
    deletes its node."""
    gone = {deletion.key for deletion in made.deletions}
    claims = {claim_key(claim.name): claim for claim in snapshot.node_claims}
    workloads = {workload_key(workload): workload for workload in snapshot.workloads}
    pools = {pool_key(pool.name): pool for pool in snapshot.node_pools}
    assert gone <= claims.keys() | workloads.keys() | pools.keys(), "what is deleted is there"
    for creation in made.creations:
        assert creation.key not in claims, "a name is used once"
        assert creation.key not in workloads | pools, "a name is used once"
        if creation.key.kind == "NodeClaim":
            claims[creation.key] = created(creation.manifest)
        elif creation.key.kind == "NodePool":
            pools[creation.key] = NodePool.read(creation.manifest)
        else:
            workloads[creation.key] = a_workload(creation.manifest)
    for update in made.updates:
        if update.partial:
            scaled = {"replicas": update.manifest["spec"]["replicas"]}
            there: dict[ObjectKey, Any] = pools if update.key in pools else workloads
            there[update.key] = there[update.key].model_copy(update=scaled)
            continue
        if update.key in pools:
            pools[update.key] = NodePool.read(update.manifest)
            continue
        assert update.key in workloads, "what is updated is there"
        workloads[update.key] = a_workload(update.manifest)
    gone_nodes = {claim.node_name for key, claim in claims.items() if key in gone}
    return snapshot.model_copy(
        update={
            "nodes": tuple(node for node in snapshot.nodes if node.name not in gone_nodes),
            "node_claims": tuple(claim for key, claim in claims.items() if key not in gone),
            "node_pools": tuple(pool for key, pool in pools.items() if key not in gone),
            "workloads": tuple(workload for key, workload in workloads.items() if key not in gone),
        }
    )


def created(manifest: dict[str, Any]) -> NodeClaim:
    metadata = {
        **manifest["metadata"],
        "uid": f"uid-{manifest['metadata']['name']}",
        "creationTimestamp": "2026-01-02T00:00:00Z",
    }
    return NodeClaim.read({**manifest, "metadata": metadata})


def round_of(snapshot: Snapshot, now: datetime) -> tuple[Plan, Snapshot]:
    """One round: the plan, and the snapshot with the reported statuses."""
    verdicts = validate(snapshot)
    found = plan(snapshot, verdicts, now)
    holdings = WorkspaceNodes(snapshot, verdicts, AppliedClaims(found))
    verdict_of = {(each.workspace.namespace, each.workspace.name): each for each in verdicts}
    workspaces = tuple(
        each.model_copy(
            update={"status": WorkspaceStatus.model_validate(status_of(each, verdict_of[each.key], holdings, now))}
        )
        for each in snapshot.workspaces
    )
    return found, snapshot.model_copy(update={"workspaces": workspaces})


def names(found: Plan) -> tuple[list[str], list[str]]:
    """Created and deleted."""
    return [each.key.name for each in found.creations], [each.key.name for each in found.deletions]


def launched(snapshot: Snapshot) -> Snapshot:
    """Every NodeClaim is Ready and has a node that shows its GPUs."""
    claims, nodes = [], list(snapshot.nodes)
    there = {node.name for node in nodes}
    for claim in snapshot.node_claims:
        name = claim.node_name or f"node-of-{claim.name}"
        ready = [{"type": "Ready", "status": "True"}]
        fields = {"node_name": name, "conditions": NodeClaim.model_validate(_with(claim.name, ready)).conditions}
        claims.append(claim if claim.deleting else claim.model_copy(update=fields))
        if name not in there:
            nodes.append(
                a_node(name, None, allocatable=1, instance_type=claim.instance_types[0], more_labels=claim.labels)
            )
    return snapshot.model_copy(update={"node_claims": tuple(claims), "nodes": tuple(nodes)})


def _with(name: str, conditions: list[dict[str, str]]) -> dict[str, Any]:
    return {"metadata": {"name": name}, "status": {"conditions": conditions}}
