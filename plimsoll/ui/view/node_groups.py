"""The page of the cluster: nodes of one shape as a group, requested nodes, and what all of it costs."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from plimsoll.cluster.ledger import PartDevices
from plimsoll.cluster.nodes import NodeOwner, node_owners
from plimsoll.cluster.pods import PodPlaces
from plimsoll.cost import PriceBasis, Prices
from plimsoll.labels import WORKSPACE, WORKSPACE_NAMESPACE
from plimsoll.model import Snapshot
from plimsoll.model.cluster import VENDOR_RESOURCES, Pod
from plimsoll.model.karpenter import CapacityBuffer, NodeClaim, ProvisioningRequest
from plimsoll.model.meta import condition_text
from plimsoll.packing import GPU_MILLI
from plimsoll.plan.owned import ClaimProgress, phase_of, request_objects
from plimsoll.plan.requests import NodeRequest
from plimsoll.ui.view.filter import Filter
from plimsoll.ui.view.nodes import NodeRow
from plimsoll.ui.view.owners import NO_FACTS, OwnerFacts, owner_facts
from plimsoll.ui.view.segments import Bar, Use, in_order

PAGE: Final = 100
"""Nodes of a group that one page lists."""
SMALL: Final = 60
"""A cluster of at most so many nodes is listed at once; a larger one group by group."""


@dataclass(frozen=True, slots=True)
class RequestedRow:
    """Nodes that are requested and do not exist yet."""

    kind: str
    namespace: str
    name: str
    instance_types: tuple[str, ...]
    pool: str
    gpus: int
    """GPUs of all its nodes; 0 if not known."""
    nodes: int
    owner: str
    """`Workspace namespace/name` or `GPUDemand name`."""
    phase: str
    message: str
    since: str
    price: float | None
    """Price per hour of all its nodes, with the cheapest type."""


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes of one NodePool, instance type and GPU product."""

    pool: str
    instance_type: str
    product: str
    nodes: int
    not_ready: int
    gpus: int
    bar: Bar
    """Bar of all GPUs of the group."""
    devices: tuple[PartDevices, ...]
    """Shared devices and MIG slices of all its nodes, by resource, without the names of pods."""
    price: float | None
    idle: float
    rows: tuple[NodeRow, ...]
    """One page of its nodes; none if the group is closed."""
    page: int
    pages: int

    @property
    def key(self) -> str:
        return "/".join((self.pool, self.instance_type, self.product))


@dataclass(frozen=True, slots=True)
class ClusterPage:
    groups: tuple[NodeGroup, ...]
    requested: tuple[RequestedRow, ...]
    nodes: int
    not_ready: int
    gpus: int
    used: float
    """GPUs in use by pods."""
    bar: Bar
    """Bar of all GPUs, with those that are requested."""
    queues: tuple[str, ...]
    """Queues in the bars, sorted: their number is their colour."""
    hourly: float | None
    """Price of all nodes; None if none is known."""
    idle: float
    requested_price: float
    unpriced: int
    """Nodes without a price."""
    basis: PriceBasis
    """Where the prices of the nodes, and of those requested, are from."""
    owned: tuple[tuple[str, str, float], ...]
    """(namespace, queue, price) of those for whom nodes were requested, the highest first; none where no owner is
    known. Both names are empty for nodes without an owner."""
    problems: tuple[str, ...]


def cluster_page(
    rows: Iterable[NodeRow],
    snapshot: Snapshot,
    prices: Prices,
    wanted: Filter,
    *,
    opened: str = "",
    page: int = 1,
) -> ClusterPage:
    """`opened` is the key of the group whose nodes are listed; `page` is counted from 1."""
    shown = [row for row in rows if _shown(row, wanted)]
    facts = owner_facts(snapshot, wanted)
    requested = tuple(each for each in requested_rows(snapshot, prices) if _requested_shown(each, wanted, facts))
    ordered = sorted(shown, key=_group_key)
    groups = tuple(
        _group(key, list(found), opened, page, len(shown) <= SMALL) for key, found in groupby(ordered, key=_group_key)
    )
    amounts: Counter[tuple[Use, str]] = Counter()
    for group in groups:
        for segment in group.bar:
            amounts[segment.use, segment.queue] += segment.milli
    amounts[Use.REQUESTED, ""] += sum(each.gpus for each in requested) * GPU_MILLI
    priced = [row.cost for row in shown if row.cost is not None]
    return ClusterPage(
        groups=groups,
        requested=requested,
        nodes=len(shown),
        not_ready=sum(not row.usable for row in shown),
        gpus=sum(row.gpus for row in shown),
        used=sum(row.used for row in shown),
        bar=in_order(amounts),
        queues=tuple(sorted({queue for row in shown for queue in row.queues})),
        hourly=sum(cost.price for cost in priced) if priced else None,
        idle=sum(cost.idle for cost in priced),
        requested_price=sum(each.price or 0 for each in requested),
        unpriced=len(shown) - len(priced),
        basis=prices.basis(
            [*(row.instance_type for row in shown), *(name for each in requested for name in each.instance_types)]
        ),
        owned=_owned(shown, snapshot),
        problems=tuple(problem for row in shown for problem in row.problems),
    )


def _owned(rows: Iterable[NodeRow], snapshot: Snapshot) -> tuple[tuple[str, str, float], ...]:
    owners = node_owners(snapshot)
    prices: dict[tuple[str, str], float] = {}
    for row in rows:
        if row.cost is not None:
            owner = owners.get(row.name, NodeOwner())
            key = (owner.namespace, owner.queue)
            prices[key] = prices.get(key, 0.0) + row.cost.price
    found = sorted(((*key, price) for key, price in prices.items()), key=lambda each: (-each[2], each[:2]))
    return tuple(found) if any(namespace for namespace, _, _ in found) else ()


def requested_rows(snapshot: Snapshot, prices: Prices) -> list[RequestedRow]:
    """NodeClaims of Workspaces without a node, and requests to an autoscaler for which no node exists yet; oldest
    first."""
    progress = ClaimProgress(snapshot.nodes, snapshot.environment.spec, PodPlaces({}))
    claims = [
        _of_claim(claim, prices)
        for claim in snapshot.node_claims
        if WORKSPACE in claim.labels and not claim.deleting and progress.node_of(claim) is None
    ]
    requests = [
        row
        for obj in request_objects(snapshot)
        if not obj.deleting
        and isinstance(obj, Pod | CapacityBuffer | ProvisioningRequest)
        and not (isinstance(obj, Pod) and obj.node_name)
        and (row := _of_request(obj, prices)) is not None
    ]
    return sorted([*claims, *requests], key=lambda row: (row.since, row.name))


def _of_claim(claim: NodeClaim, prices: Prices) -> RequestedRow:
    waiting = next((each for each in claim.conditions if each.status != "True" and each.message), None)
    return RequestedRow(
        kind="NodeClaim",
        namespace="",
        name=claim.name,
        instance_types=claim.instance_types,
        pool="",
        gpus=_requested_gpus(claim),
        nodes=1,
        owner=f"Workspace {claim.labels.get(WORKSPACE_NAMESPACE, '')}/{claim.labels[WORKSPACE]}",
        phase=phase_of(claim),
        message=condition_text(waiting),
        since=claim.creation_timestamp,
        price=prices.cheapest(claim.instance_types),
    )


def _requested_gpus(claim: NodeClaim) -> int:
    asked = ((name, str(value)) for name, value in claim.requests.items())
    amounts = [value for name, value in asked if name.endswith("/gpu") or name in VENDOR_RESOURCES]
    return sum(int(amount) for amount in amounts if amount.isdigit())


def _of_request(obj: Pod | CapacityBuffer | ProvisioningRequest, prices: Prices) -> RequestedRow | None:
    request = NodeRequest.from_annotations(obj.annotations)
    if request is None:
        return None
    nodes = 1
    if isinstance(obj, CapacityBuffer):
        nodes = obj.replicas
    elif isinstance(obj, ProvisioningRequest):
        nodes = sum(int(each.get("count") or 0) for each in obj.pod_sets)
    price = prices.cheapest(request.instance_types)
    demand = next((value for key, value in obj.labels.items() if key.endswith("/demand")), "")
    return RequestedRow(
        kind=type(obj).__name__,
        namespace=obj.namespace,
        name=obj.name,
        instance_types=request.instance_types,
        pool=request.node_pool,
        gpus=request.gpus * nodes,
        nodes=nodes,
        owner=f"GPUDemand {demand}" if demand else "headroom",
        phase="Requested",
        message="",
        since=obj.creation_timestamp,
        price=None if price is None else price * nodes,
    )


def _group(key: tuple[str, str, str], rows: Sequence[NodeRow], opened: str, page: int, few: bool) -> NodeGroup:
    pool, instance_type, product = key
    amounts: Counter[tuple[Use, str]] = Counter()
    for row in rows:
        if row.usable:
            for use, milli in row.amounts.items():
                amounts[use] += milli
        else:
            amounts[Use.NOT_READY, ""] += row.gpus * GPU_MILLI
    priced = [row.cost for row in rows if row.cost is not None]
    pages = -(-len(rows) // PAGE)
    is_open = few or opened == "/".join(key)
    at = min(max(page, 1), pages) if opened == "/".join(key) else 1
    return NodeGroup(
        pool=pool,
        instance_type=instance_type,
        product=product,
        nodes=len(rows),
        not_ready=sum(not row.usable for row in rows),
        gpus=sum(row.gpus for row in rows),
        bar=in_order(amounts),
        devices=_summed_devices(rows),
        price=sum(cost.price for cost in priced) if priced else None,
        idle=sum(cost.idle for cost in priced),
        rows=tuple(rows[(at - 1) * PAGE : at * PAGE]) if is_open else (),
        page=at,
        pages=pages,
    )


def _summed_devices(rows: Iterable[NodeRow]) -> tuple[PartDevices, ...]:
    found: dict[str, PartDevices] = {}
    for each in (devices for row in rows for devices in row.devices):
        of = found.get(each.resource, PartDevices(each.resource))
        found[each.resource] = of._replace(allocatable=of.allocatable + each.allocatable, used=of.used + each.used)
    return tuple(of for _, of in sorted(found.items()))


def _group_key(row: NodeRow) -> tuple[str, str, str]:
    return (row.pool, row.instance_type, row.product)


def _shown(row: NodeRow, wanted: Filter) -> bool:
    return wanted.matches(
        namespaces=row.namespaces, queues=row.queues, types=(row.instance_type,)
    ) and wanted.matches_text(
        row.name, row.pool, row.instance_type, row.product, *row.workspaces, *_pod_names(row, wanted)
    )


def _pod_names(row: NodeRow, wanted: Filter) -> list[str]:
    if not wanted.text:
        return []
    names = [f"{each.pod.namespace}/{each.pod.name}" for each in row.pods]
    return [*names, *(name for each in row.devices for name in each.pods)]


def _requested_shown(row: RequestedRow, wanted: Filter, facts: Mapping[str, OwnerFacts]) -> bool:
    found = facts.get(row.owner, NO_FACTS)
    return wanted.matches(
        namespaces=found.namespaces, queues=found.queues, types=row.instance_types
    ) and wanted.matches_text(row.name, row.owner, row.pool, *row.instance_types)
