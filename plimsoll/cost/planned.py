"""What a Plan adds to and removes from the hourly cost."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from plimsoll.cost.prices import Prices
from plimsoll.labels import INSTANCE_TYPE, WORKSPACE
from plimsoll.model import Change, Deletion, Plan, Snapshot
from plimsoll.model.cluster import Pod
from plimsoll.model.karpenter import CapacityBuffer, NodeClaim, NodePool
from plimsoll.plan.requests import NodeRequest

NODES: Final = ("NodeClaim", "NodePool", "Pod", "CapacityBuffer", "ProvisioningRequest")
"""Kinds of objects that represent nodes."""


@dataclass(frozen=True)
class PlannedCost:
    """Per hour. Operations that launch or release no node do not count."""

    added: float = 0.0
    removed: float = 0.0
    unpriced: int = 0
    """Operations on nodes whose price is not known."""

    @property
    def change(self) -> float:
        return self.added - self.removed


def planned_cost(plan: Plan, snapshot: Snapshot, prices: Prices) -> PlannedCost:
    """The sum over all operations of the Plan."""
    changes = [*plan.creations, *plan.updates]
    found = [operation_price(each, snapshot, prices) for each in changes if _nodes_of(each.manifest) is not None]
    gone = [operation_price(each, snapshot, prices) for each in plan.deletions if each.key.kind in NODES]
    known = [each for each in (*found, *gone) if each is not None]
    return PlannedCost(
        added=sum(each for each in known if each > 0),
        removed=-sum(each for each in known if each < 0),
        unpriced=len(found) + len(gone) - len(known),
    )


def operation_price(operation: Change | Deletion, snapshot: Snapshot, prices: Prices) -> float | None:
    """The change of the hourly cost by one operation, below 0 for a deletion; None if no price is known, or no node is
    affected. Of several instance types the cheapest counts, so the result is a lower bound of what is added."""
    if isinstance(operation, Deletion):
        return _price_of_deleted(operation, snapshot, prices)
    nodes = _nodes_of(operation.manifest)
    if nodes is None:
        return None
    types, count = nodes
    price = prices.cheapest(types)
    return None if price is None else price * (count - _count_before(operation, snapshot))


def _nodes_of(manifest: Mapping[str, Any]) -> tuple[tuple[str, ...], int] | None:
    """Instance types and number of the nodes that an object represents."""
    kind, spec = manifest["kind"], manifest.get("spec") or {}
    if kind == "NodeClaim":
        return NodeClaim.read(manifest).instance_types, 1
    if kind == "NodePool":
        pool = NodePool.read(manifest)
        return None if pool.replicas is None else (pool.instance_types, pool.replicas)
    request = NodeRequest.from_annotations(manifest["metadata"].get("annotations") or {})
    if request is None or kind not in NODES:
        return None
    if kind == "CapacityBuffer":
        return request.instance_types, int(spec.get("replicas") or 0)
    if kind == "ProvisioningRequest":
        return request.instance_types, sum(int(each.get("count") or 0) for each in spec.get("podSets") or ())
    return request.instance_types, 1


def _count_before(change: Change, snapshot: Snapshot) -> int:
    """Number of nodes that the existing object represents; 0 for a new one."""
    kind, name = change.key.kind, change.key.name
    if kind == "NodePool":
        return next((pool.replicas or 0 for pool in snapshot.node_pools if pool.name == name), 0)
    if kind == "CapacityBuffer":
        return next((each.replicas for each in snapshot.capacity_buffers if each.name == name), 0)
    return 0


def _price_of_deleted(deletion: Deletion, snapshot: Snapshot, prices: Prices) -> float | None:
    kind, name = deletion.key.kind, deletion.key.name
    if kind == "NodeClaim":
        claim = next((each for each in snapshot.node_claims if each.name == name), None)
        return None if claim is None else _less(prices.cheapest(_types_of(claim, snapshot)))
    if kind == "NodePool":
        pool = next((each for each in snapshot.node_pools if each.name == name), None)
        return None if pool is None else _less(prices.cheapest(pool.instance_types), pool.replicas or 0)
    if kind == "CapacityBuffer":
        return _less_requested((each for each in snapshot.capacity_buffers if each.name == name), prices)
    if kind == "Pod":
        found = (each for each in snapshot.pods if each.uid == deletion.uid and WORKSPACE not in each.labels)
        return _less_requested(found, prices)
    return None


def _types_of(claim: NodeClaim, snapshot: Snapshot) -> tuple[str, ...]:
    """The instance type of its node, else those that it allows."""
    node = next((each for each in snapshot.nodes if each.name == claim.node_name), None)
    launched = claim.labels.get(INSTANCE_TYPE, "") or (node.instance_type if node is not None else "")
    return (launched,) if launched else claim.instance_types


def _less_requested(objs: Iterable[Pod | CapacityBuffer], prices: Prices) -> float | None:
    """Withdrawn requests; a trigger pod on a node has been answered, and releases nothing."""
    for obj in objs:
        request = NodeRequest.from_annotations(obj.annotations)
        if request is not None and not (isinstance(obj, Pod) and obj.node_name):
            return _less(prices.cheapest(request.instance_types), getattr(obj, "replicas", 1))
    return None


def _less(price: float | None, count: int = 1) -> float | None:
    return None if price is None else -price * count
