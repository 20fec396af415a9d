"""What a Plan adds to and removes from the hourly cost."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from plimsoll.cost.prices import UNPRICED, PriceBasis, Prices
from plimsoll.labels import CAPACITY_TYPE, INSTANCE_TYPE, WORKSPACE
from plimsoll.model import REQUEST_KINDS, Change, Deletion, Plan, Snapshot
from plimsoll.model.karpenter import NodeClaim, NodePool
from plimsoll.model.meta import ObservedObject
from plimsoll.plan.demand import PlannedNode
from plimsoll.plan.requests import NodeRequest


@dataclass(frozen=True)
class PlannedCost:
    """Per hour. Operations that launch or release no node do not count."""

    added: float = 0.0
    removed: float = 0.0
    unpriced: int = 0
    """Nodes whose price is not known."""
    basis: PriceBasis = UNPRICED
    reserved: int = 0
    """Nodes that are reserved capacity, and are priced as on-demand: no list has the price of a reservation."""

    @property
    def change(self) -> float:
        return self.added - self.removed


def nodes_cost(nodes: Iterable[PlannedNode], prices: Prices) -> PlannedCost:
    """Of new nodes of demand; each counts with the instance type that is planned."""
    names = [node.instance_type for node in nodes]
    found = list(map(prices.of_type, names))
    known = [price for price in found if price is not None]
    return PlannedCost(added=sum(known), unpriced=len(found) - len(known), basis=prices.basis(names))


class _Nodes(NamedTuple):
    types: tuple[str, ...]
    number: int
    """Below 0 where nodes are released."""


def planned_cost(plan: Plan, snapshot: Snapshot, prices: Prices) -> PlannedCost:
    """The sum over all operations of the Plan."""
    operations: tuple[Change | Deletion, ...] = (*plan.creations, *plan.updates, *plan.deletions)
    changes = [nodes for each in operations if (nodes := _change(each, snapshot)) is not None and nodes.number]
    found = [_price(each, prices) for each in changes]
    known = [each for each in found if each is not None]
    return PlannedCost(
        added=sum(each for each in known if each > 0),
        removed=-sum(each for each in known if each < 0),
        unpriced=sum(abs(each.number) for each, price in zip(changes, found, strict=True) if price is None),
        basis=prices.basis(name for each in changes for name in each.types),
        reserved=sum(each.key.kind == "NodeClaim" and _is_listed(each, prices) for each in plan.creations),
    )


def _is_listed(creation: Change, prices: Prices) -> bool:
    """Whether a new NodeClaim is reserved capacity alone, with a price of an on-demand list."""
    claim = NodeClaim.read(creation.manifest)
    return claim.allowed_values.get(CAPACITY_TYPE) == ("reserved",) and bool(prices.basis(claim.instance_types).lists)


def operation_price(operation: Change | Deletion, snapshot: Snapshot, prices: Prices) -> float | None:
    """The change of the hourly cost by one operation, below 0 for a deletion; None if no price is known, or no node is
    affected. Of several instance types the cheapest counts, so the result is a lower bound of what is added."""
    nodes = _change(operation, snapshot)
    return None if nodes is None else _price(nodes, prices)


def _price(nodes: _Nodes, prices: Prices) -> float | None:
    price = prices.cheapest(nodes.types)
    return None if price is None else price * nodes.number


def _change(operation: Change | Deletion, snapshot: Snapshot) -> _Nodes | None:
    """The nodes that the operation launches or releases; None if it affects none."""
    if isinstance(operation, Deletion):
        return _released(operation, snapshot)
    nodes = _nodes_of(operation.manifest)
    return None if nodes is None else nodes._replace(number=nodes.number - _count_before(operation, snapshot))


def _nodes_of(manifest: Mapping[str, Any]) -> _Nodes | None:
    """Instance types and number of the nodes that an object represents."""
    kind, spec = manifest["kind"], manifest.get("spec") or {}
    if kind == "NodeClaim":
        return _Nodes(NodeClaim.read(manifest).instance_types, 1)
    if kind == "NodePool":
        pool = NodePool.read(manifest)
        return None if pool.replicas is None else _Nodes(pool.instance_types, pool.replicas)
    request = NodeRequest.from_annotations(manifest["metadata"].get("annotations") or {})
    if request is None or kind not in REQUEST_KINDS:
        return None
    if kind == "CapacityBuffer":
        return _Nodes(request.instance_types, int(spec.get("replicas") or 0))
    if kind == "ProvisioningRequest":
        return _Nodes(request.instance_types, _pods_of(spec.get("podSets") or ()))
    return _Nodes(request.instance_types, 1)


def _count_before(change: Change, snapshot: Snapshot) -> int:
    """Number of nodes that the existing object represents; 0 for a new one."""
    kind, name = change.key.kind, change.key.name
    if kind == "NodePool":
        return next((pool.replicas or 0 for pool in snapshot.node_pools if pool.name == name), 0)
    if kind == "CapacityBuffer":
        return next((each.replicas for each in snapshot.capacity_buffers if each.name == name), 0)
    return 0


def _released(deletion: Deletion, snapshot: Snapshot) -> _Nodes | None:
    kind, name = deletion.key.kind, deletion.key.name
    if kind == "NodeClaim":
        claim = next((each for each in snapshot.node_claims if each.name == name), None)
        return None if claim is None else _Nodes(_types_of(claim, snapshot), -1)
    if kind == "NodePool":
        pool = next((each for each in snapshot.node_pools if each.name == name), None)
        return None if pool is None else _Nodes(pool.instance_types, -(pool.replicas or 0))
    if kind == "CapacityBuffer":
        buffer = next((each for each in snapshot.capacity_buffers if each.name == name), None)
        return None if buffer is None else _requested(buffer, buffer.replicas)
    if kind == "ProvisioningRequest":
        request = next((each for each in snapshot.provisioning_requests if each.name == name), None)
        if request is None or request.says("Provisioned"):
            return None
        return _requested(request, _pods_of(request.pod_sets))
    if kind == "Pod":
        pod = next((each for each in snapshot.pods if each.uid == deletion.uid and WORKSPACE not in each.labels), None)
        # A trigger pod on a node has been answered, and releases nothing.
        return None if pod is None or pod.node_name else _requested(pod, 1)
    return None


def _requested(obj: ObservedObject, count: int) -> _Nodes | None:
    """Withdrawn requests."""
    request = NodeRequest.from_annotations(obj.annotations)
    return None if request is None else _Nodes(request.instance_types, -count)


def _pods_of(pod_sets: Iterable[Mapping[str, Any]]) -> int:
    return sum(int(each.get("count") or 0) for each in pod_sets)


def _types_of(claim: NodeClaim, snapshot: Snapshot) -> tuple[str, ...]:
    """The instance type of its node, else those that it allows."""
    node = next((each for each in snapshot.nodes if each.name == claim.node_name), None)
    launched = claim.labels.get(INSTANCE_TYPE, "") or (node.instance_type if node is not None else "")
    return (launched,) if launched else claim.instance_types
