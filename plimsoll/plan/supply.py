"""Nodes that were there before (NAP): a Workspace uses ready ones that fit before any is made for it."""

from collections.abc import Iterator
from itertools import islice

from plimsoll.model.environment import EnvironmentSpec
from plimsoll.model.labels import NODEPOOL, WORKSPACE
from plimsoll.model.node import Node
from plimsoll.model.snapshot import Snapshot
from plimsoll.plan.node_index import NodeIndex
from plimsoll.plan.ownership import by_age


def brought_supply(
    snapshot: Snapshot, index: NodeIndex, targets: dict[tuple[str, str], int]
) -> dict[tuple[str, str], tuple[str, ...]]:
    """Names of brought nodes that each Workspace may count, at most its target; no node counts for two.

    Counted are Ready nodes that a non-empty selector matches, of the Workspace's instance type (case aside), that
    belong to no NodeClaim, no NodePool and no Workspace. The oldest Workspace chooses first.
    """
    claimed = {claim.node_name for claim in snapshot.node_claims if claim.node_name}
    claimed_ids = {claim.provider_id for claim in snapshot.node_claims if claim.provider_id}
    free: dict[tuple[str, str], Iterator[str]] = {}
    taken: set[str] = set()
    counted: dict[tuple[str, str], tuple[str, ...]] = {}
    for workspace in sorted(snapshot.workspaces, key=by_age):
        target = targets.get(workspace.key, 0)
        resource = workspace.spec.resource
        if not target or resource.label_selector.empty:
            continue
        wanted = (str(resource.label_selector), (resource.instance_type or "").casefold())
        # Each node is looked at once for each kind of wish: a node that one Workspace passed over suits no other.
        nodes = free.get(wanted)
        if nodes is None:
            nodes = free[wanted] = (
                node.name
                for node in index.matching(resource.label_selector)
                if node.instance_type.casefold() == wanted[1]
                and node.name not in claimed
                and node.provider_id not in claimed_ids
                and _free(node, snapshot.environment.spec)
            )
        names = tuple(islice((name for name in nodes if name not in taken), target))
        taken.update(names)
        if names:
            counted[workspace.key] = names
    return counted


def _free(node: Node, environment: EnvironmentSpec) -> bool:
    if not node.usable or NODEPOOL in node.labels or WORKSPACE in node.labels:
        return False
    try:
        return node.allocatable_devices(environment.gpu_resource) != 0
    except ValueError:
        return False
