"""Registered nodes that are reserved for a short time: their trigger pods stay Unschedulable, their buffers do not
shrink, and their pods stay gated.

Karpenter first simulates pods without capacity on idle nodes. An idle registered node would satisfy the next trigger
pod or buffer replica, for which Karpenter has not created a NodeClaim yet, and Karpenter would create none until pods
use the node's GPUs. While both requests are visible, Karpenter counts correctly. This is safe only where the capacity
gate holds every pod that could use the node.

A buffer shrinks by an update, which takes a second or more. Meanwhile, a released pod may be bound to another
registered node of the NodePool, and Karpenter would refill that node's buffer. Therefore all nodes of the NodePool are
awaited together.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import chain
from typing import Final

from plimsoll.cluster.nodes import gpu_devices
from plimsoll.cluster.pods import gated, node_of
from plimsoll.labels import NODEPOOL
from plimsoll.model import Snapshot
from plimsoll.model.cluster import Node, Pod
from plimsoll.model.karpenter import CapacityBuffer
from plimsoll.model.meta import condition_of
from plimsoll.plan.demand import Demand, DemandPlan
from plimsoll.plan.owned import parse_time
from plimsoll.plan.requests.capacity_request import CapacityRequest
from plimsoll.plan.requests.node_request import NodeRequest

PATIENCE: Final = timedelta(seconds=30)
"""How long a request may have no NodeClaim, and a Ready node may wait for the others; three intervals in which
Karpenter checks its pending pods."""


def reserved_nodes(
    new_nodes: Mapping[str, Sequence[str]],
    snapshot: Snapshot,
    waiting: Sequence[CapacityRequest],
    plan: DemandPlan,
    now: datetime,
) -> tuple[frozenset[str], datetime | None]:
    """The newly registered nodes that are reserved, and when the first reservation ends; `new_nodes` is by request
    name."""
    names = {name for several in new_nodes.values() for name in several}
    if not names:
        return frozenset(), None
    unclaimed = [
        (request.node_request, request.since + PATIENCE)
        for request in waiting
        if request.since is not None and request.outstanding > request.claimed and now < request.since + PATIENCE
    ]
    unclaimed += [(NodeRequest.of(node), now + PATIENCE) for node in plan.nodes]
    launching = {
        each.node_request.node_pool for each in waiting if each.outstanding and isinstance(each.obj, CapacityBuffer)
    }
    taken, resource = {node_of(pod) for pod in snapshot.pods}, snapshot.environment.spec.gpu_resource
    found, ends = set(), list[datetime]()
    for node in snapshot.nodes:
        if node.name in names and node.name not in taken and not _open(node, plan.demands):
            until = [end for node_request, end in unclaimed if _fits(node, node_request, resource)]
            if node.labels.get(NODEPOOL, "") in launching and (since := _ready_since(node)) and now < since + PATIENCE:
                until.append(since + PATIENCE)
            if until:
                found.add(node.name)
                ends.append(max(until))
    return frozenset(found), min(ends, default=None)


def _ready_since(node: Node) -> datetime | None:
    ready = condition_of(node.conditions or (), "Ready")
    return parse_time(ready.last_transition_time) if ready is not None else None


def _fits(node: Node, node_request: NodeRequest, gpu_resource: str) -> bool:
    """Whether Karpenter could place the trigger pod on the node. One for shared devices selects its own node."""
    return (
        not node_request.resource
        and node.labels.get(NODEPOOL, "") == node_request.node_pool
        and node.instance_type in node_request.instance_types
        and (gpu_devices(node, gpu_resource) or 0) >= node_request.gpus
    )


def _open(node: Node, demands: Iterable[Demand]) -> bool:
    """Whether a pod could be bound to the node now."""
    able = (demand for demand in demands if demand.demand_class.placement.admits(node.labels, node.taints, node.name))
    return any(not gated(pod) for demand in able for pod in _pods(demand))


def _pods(demand: Demand) -> Iterator[Pod]:
    return (asking.pod for asking in chain(demand.pods.values(), demand.whole_gpu_pods.values()))
