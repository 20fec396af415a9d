"""Hourly cost of the GPU nodes of a cluster, and its idle part."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from plimsoll.cluster.ledger import GpuAccount
from plimsoll.cluster.nodes import NodeOwner
from plimsoll.cost.prices import UNPRICED, PriceBasis, Prices
from plimsoll.packing import GPU_MILLI


@dataclass(frozen=True, slots=True)
class NodeCost:
    """Hourly cost of one node."""

    price: float
    idle: float
    """The price times the part of the node's GPUs that no pod uses; without whole GPUs, of its shared devices and MIG
    slices, by number. All of it where none are allocatable, such as while the device plugin fails."""


@dataclass(frozen=True)
class ClusterCost:
    """Hourly cost of all nodes with GPUs whose price is known."""

    hourly: float = 0.0
    idle: float = 0.0
    nodes: int = 0
    """Number of nodes with a known price."""
    unpriced: Mapping[str, int] = field(default_factory=dict)
    """Nodes without a price, by instance type; they are not counted."""
    basis: PriceBasis = UNPRICED


def node_cost(account: GpuAccount, prices: Prices) -> NodeCost | None:
    """None if the price of the node's instance type is not known, or if it is no GPU node."""
    price = prices.of_type(account.node.instance_type)
    free, whole = sum(account.likely_free_milli), account.gpus * GPU_MILLI
    if not whole:
        free, whole = sum(each.free for each in account.devices), sum(each.allocatable for each in account.devices)
    if price is None or not _has_gpus(account):
        return None
    return NodeCost(price, price * free / whole if whole else price)


def _has_gpus(account: GpuAccount) -> bool:
    """Whether it has GPUs, allocatable or not."""
    return bool(account.gpus or account.devices or account.kind)


def cluster_cost(accounts: Iterable[GpuAccount], prices: Prices) -> ClusterCost:
    hourly = idle = 0.0
    nodes = 0
    unpriced: Counter[str] = Counter()
    types: set[str] = set()
    for account in accounts:
        if not _has_gpus(account):
            continue
        cost = node_cost(account, prices)
        if cost is None:
            unpriced[account.node.instance_type or "(no instance type)"] += 1
        else:
            hourly, idle, nodes = hourly + cost.price, idle + cost.idle, nodes + 1
            types.add(account.node.instance_type)
    return ClusterCost(hourly, idle, nodes, dict(sorted(unpriced.items())), prices.basis(types))


def cost_by_owner(
    accounts: Iterable[GpuAccount], owners: Mapping[str, NodeOwner], prices: Prices
) -> dict[tuple[str, str], float]:
    """Hourly cost of the nodes whose price is known, by namespace and queue of those for whom they were requested; both
    are empty for nodes without an owner. `owners` are by the node's name."""
    found: dict[tuple[str, str], float] = {}
    for account in accounts:
        cost = node_cost(account, prices)
        if cost is not None:
            owner = owners.get(account.node.name, NodeOwner())
            key = (owner.namespace, owner.queue)
            found[key] = found.get(key, 0.0) + cost.price
    return dict(sorted(found.items()))
