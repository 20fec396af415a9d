"""Nodes that came and are held for a moment: their triggers stay armed, their buffers do not shrink, their pods gated.

Karpenter first puts what asks for capacity onto nodes that are idle. A node that came would be its answer to the next
trigger or replica of a buffer, for which it has made no NodeClaim yet, and it would make none until pods hold the GPUs
of the node. While both ask it counts right. That is safe where nothing can take the GPUs meanwhile: the capacity gate
holds every pod that the node could take.

A buffer shrinks by an update, which takes a second or more. A pod that is let go may be put onto another node of the
NodePool that has come meanwhile, and Karpenter would fill that one's buffer again. So all are awaited together.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import chain
from typing import Final

from plimsoll.labels import NODEPOOL
from plimsoll.model import Snapshot
from plimsoll.model.cluster import Node, Pod
from plimsoll.model.karpenter import CapacityBuffer
from plimsoll.model.meta import condition_of
from plimsoll.plan.classes import gated
from plimsoll.plan.demand import Demand
from plimsoll.plan.nodes import gpu_devices
from plimsoll.plan.owned import parse_time
from plimsoll.plan.pods import node_of
from plimsoll.plan.requests.capacity_request import CapacityRequest
from plimsoll.plan.requests.node_request import NodeRequest

PATIENCE: Final = timedelta(seconds=30)
"""How long what asks may go without a NodeClaim, and a node that is Ready without those beside it: three times
Karpenter looks at what is armed."""


def reserved_nodes(
    new_nodes: Mapping[str, Sequence[str]],
    snapshot: Snapshot,
    waiting: Sequence[CapacityRequest],
    demands: Sequence[Demand],
    now: datetime,
) -> tuple[frozenset[str], datetime | None]:
    """Names among the nodes that have just come (by what asked for them), and until when they are held at most."""
    names = {name for several in new_nodes.values() for name in several}
    if not names:
        return frozenset(), None
    unclaimed = [
        (each.node_request, each.since + PATIENCE)
        for each in waiting
        if each.outstanding > each.claimed and now < each.since + PATIENCE
    ]
    unclaimed += [(NodeRequest.of(node), now + PATIENCE) for demand in demands for node in demand.nodes]
    launching = {
        each.node_request.node_pool for each in waiting if each.outstanding and isinstance(each.thing, CapacityBuffer)
    }
    taken = {node_of(pod) for pod in snapshot.pods}
    found, ends = set(), list[datetime]()
    for node in snapshot.nodes:
        if node.name in names and node.name not in taken and not _open(node, demands):
            until = [
                end
                for node_request, end in unclaimed
                if _answers(node, node_request, snapshot.environment.spec.gpu_resource)
            ]
            if node.labels.get(NODEPOOL, "") in launching and (since := _ready_since(node)) and now < since + PATIENCE:
                until.append(since + PATIENCE)
            if until:
                found.add(node.name)
                ends.append(max(until))
    return frozenset(found), min(ends, default=None)


def _ready_since(node: Node) -> datetime | None:
    ready = condition_of(node.conditions, "Ready")
    return parse_time(ready.last_transition_time) if ready is not None else None


def _answers(node: Node, node_request: NodeRequest, gpu_resource: str) -> bool:
    return (
        node.labels.get(NODEPOOL, "") == node_request.node_pool
        and node.instance_type in node_request.instance_types
        and (gpu_devices(node, gpu_resource) or 0) >= node_request.gpus
    )


def _open(node: Node, demands: Iterable[Demand]) -> bool:
    """Whether a pod could be bound there now."""
    return any(not gated(pod) for demand in demands if _serves(node, demand) for pod in _pods(demand))


def _serves(node: Node, demand: Demand) -> bool:
    placement = demand.of.placement
    return placement.allows(node.labels, node.name) and not placement.kept_away(node.taints)


def _pods(demand: Demand) -> Iterator[Pod]:
    return (each.pod for each in chain(demand.pods.values(), demand.spoken_for.values()))
