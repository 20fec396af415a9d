"""CapacityRequest: nodes that an object requests from an autoscaler, and how many of them have registered."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from itertools import chain
from typing import Final, TypeVar

import orjson

from plimsoll.cluster.nodes import gpu_devices
from plimsoll.cluster.pods import nodes_in_use
from plimsoll.cluster.pools import starting_nodes
from plimsoll.labels import DEMAND, GROUP, NODEPOOL, REQUEST
from plimsoll.model import SignalReason, Snapshot
from plimsoll.model.api import DemandObject
from plimsoll.model.cluster import Node, Pod
from plimsoll.model.karpenter import CapacityBuffer, ProvisioningRequest
from plimsoll.model.meta import condition_of
from plimsoll.plan.demand import RequestedNode
from plimsoll.plan.known import Known
from plimsoll.plan.owned import RequestObject, key_of, parse_time, request_objects, signalled
from plimsoll.plan.requests.node_request import ATTEMPT, DEMANDS, GIVEN_UP, LOST, REGISTERED, NodeRequest

READY_MESSAGE: Final = "the GPUs are allocatable on node "
"""Prefix of the condition message of a trigger pod whose node is ready; the node's name follows."""
_REGISTERED_BEFORE: Final = f"{GROUP}/came"
"""REGISTERED, as the previous version wrote it."""
_T = TypeVar("_T")
_NODE = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


@dataclass(frozen=True)
class CapacityRequest:
    """One object that requests nodes, with the progress of its nodes."""

    obj: Pod | CapacityBuffer | ProvisioningRequest
    attempts: Mapping[str, int]
    """Number of the attempt of each demand that it serves; not empty, the owner first."""
    node_request: NodeRequest
    since: datetime | None
    """When the object was created; None in a manifest from a file."""
    outstanding: int
    """Nodes that have not registered yet."""
    registered: tuple[str, ...] = ()
    """Names of nodes that have registered for this request."""
    lost: tuple[str, ...] = ()
    """Names of NodeClaims that failed and are no longer expected."""
    given_up: int = 0
    """Number of nodes that are no longer expected."""
    claimed: int = 0
    """Number of outstanding nodes that have a NodeClaim."""

    @property
    def name(self) -> str:
        return self.obj.name

    @cached_property
    def listed(self) -> DemandObject:
        """The object as the statuses of its demands list it."""
        return key_of(self.obj).of_demand

    @cached_property
    def requested_nodes(self) -> tuple[RequestedNode, ...]:
        """The outstanding nodes, as supply for the demand planner."""
        return tuple(
            self.node_request.requested_node(
                f"{self.name}/{number}", claimed=number < self.claimed, since=self.obj.creation_timestamp
            )
            for number in range(self.outstanding)
        )

    def with_registered(self, nodes: Iterable[str]) -> "CapacityRequest":
        """A copy in which these nodes have registered too."""
        new = tuple(nodes)
        return replace(self, outstanding=self.outstanding - len(new), registered=(*self.registered, *new))

    def with_reserved(self, nodes: Collection[str]) -> "CapacityRequest":
        """A copy in which these registered nodes count as outstanding."""
        registered = tuple(name for name in self.registered if name not in nodes)
        return replace(
            self, outstanding=self.outstanding + len(self.registered) - len(registered), registered=registered
        )

    def without(self, nodes: int, claims: Iterable[str] = ()) -> "CapacityRequest":
        """A copy that no longer expects this many nodes, nor these NodeClaims."""
        given = min(nodes, self.outstanding)
        lost = (*self.lost, *claims)
        return replace(self, outstanding=self.outstanding - given, given_up=self.given_up + given, lost=lost)

    def deadline(self, seconds: int) -> datetime | None:
        """When its nodes are no longer expected; None where it is not known when it was created."""
        return None if self.since is None else self.since + timedelta(seconds=seconds)


class CapacityRequests:
    """The capacity requests of one snapshot. Each property is computed once."""

    def __init__(self, snapshot: Snapshot, known: Known) -> None:
        self._snapshot = snapshot
        self._known = known

    @cached_property
    def objs(self) -> tuple[RequestObject, ...]:
        """All request objects, oldest first, including those that are being deleted."""
        return request_objects(self._snapshot)

    @cached_property
    def found(self) -> tuple[CapacityRequest, ...]:
        """What the objects request, without those that are being deleted."""
        objs = tuple(obj for obj in self.objs if not obj.deleting)
        return self._known.result("capacity requests", (objs,), lambda: tuple(filter(None, map(read_request, objs))))

    @cached_property
    def registered(self) -> Mapping[str, list[str]]:
        """Newly registered nodes by request; see `registered_since`."""
        found, seen, resource = self.found, self._snapshot, self._snapshot.environment.spec.gpu_resource
        arguments = (found, seen.node_claims, seen.nodes)
        young = self._known.result("young nodes", arguments, lambda: _young_nodes(found, seen))
        used = nodes_in_use(seen.pods, young, resource)
        return self._known.result(
            "registered", (found, young, used, resource), lambda: _assigned(found, young, used, resource)
        )


def read_request(obj: RequestObject) -> CapacityRequest | None:
    """Reads a request object. None for PodTemplates, for headroom, and for annotations that cannot be read."""
    node_request = NodeRequest.from_annotations(obj.annotations)
    since = parse_time(obj.creation_timestamp)
    demand = obj.labels.get(DEMAND)
    if node_request is None or demand is None:
        return None
    attempts = {demand: _number(obj.annotations.get(ATTEMPT, ""), 1)}
    attempts |= {name: each for name, each in _json(obj.annotations, DEMANDS, dict).items() if isinstance(each, int)}
    if isinstance(obj, Pod):
        node = ready_node(obj)
        return CapacityRequest(obj, attempts, node_request, since, 0 if node else 1, (node,) if node else ())
    registered = _names(obj.annotations, REGISTERED) or _names(obj.annotations, _REGISTERED_BEFORE)
    lost = _names(obj.annotations, LOST)
    given_up = _number(obj.annotations.get(GIVEN_UP, ""))
    if isinstance(obj, CapacityBuffer):
        outstanding = obj.replicas
    elif isinstance(obj, ProvisioningRequest):
        outstanding = sum(_count(each) for each in obj.pod_sets) - len(registered) - given_up
    else:
        return None
    return CapacityRequest(obj, attempts, node_request, since, max(0, outstanding), registered, lost, given_up)


def ready_node(pod: Pod) -> str:
    """The node that is ready for a trigger pod; empty while the pod waits for one."""
    condition = condition_of(pod.conditions, "PodScheduled")
    if condition is None or condition.reason != SignalReason.CAPACITY_READY:
        return ""
    node = condition.message.removeprefix(READY_MESSAGE)
    return node if _NODE.fullmatch(node) else ""


def any_registered(snapshot: Snapshot) -> bool:
    """Whether a node has registered for a trigger pod that is still marked Unschedulable."""
    objs = (obj for obj in request_objects(snapshot) if signalled(obj) == SignalReason.UNSCHEDULABLE)
    requests = [each for obj in objs if not obj.deleting and (each := read_request(obj)) is not None]
    return bool(registered_since(requests, snapshot))


def registered_since(requests: Sequence[CapacityRequest], snapshot: Snapshot) -> Mapping[str, list[str]]:
    """Nodes that registered for outstanding requests, by request name.

    A node is assigned to the newest request that it fits: same NodePool and instance types, created after the request,
    usable by pods, GPUs allocatable, and not assigned to another request. Newest, because an older request may be
    served by an earlier node that is still booting, which could not serve the newer request. Where a node has a
    NodeClaim, its creation time is that of the NodeClaim. A node whose GPUs are in use is assigned to no request: the
    request that it was created for is over. A node with shared devices is labelled with its request.

    A node is assigned as soon as it is supply: otherwise other demand would be planned onto it.
    """
    young, resource = _young_nodes(requests, snapshot), snapshot.environment.spec.gpu_resource
    return _assigned(requests, young, nodes_in_use(snapshot.pods, young, resource), resource)


def _young_nodes(requests: Sequence[CapacityRequest], snapshot: Snapshot) -> Mapping[str, tuple[Node, str]]:
    """Usable nodes that are not older than every outstanding request, by name, with their creation time."""
    first = min((request.obj.creation_timestamp for request in requests if request.outstanding), default=None)
    if first is None:
        return {}
    ordered = {claim.node_name: claim.creation_timestamp for claim in snapshot.node_claims if claim.node_name}
    born = ((node, ordered.get(node.name, node.creation_timestamp)) for node in snapshot.nodes)
    young = [(node, time) for node, time in born if time >= first and node.ready is not False and not node.deleting]
    starting = starting_nodes(snapshot) if young else ()
    return {node.name: (node, time) for node, time in young if node.name not in starting}


def _assigned(
    requests: Sequence[CapacityRequest], young: Mapping[str, tuple[Node, str]], used: Set[str], gpu_resource: str
) -> Mapping[str, list[str]]:
    """As `registered_since`; `used` are the names of those nodes whose GPUs are in use."""
    waiting = [request for request in requests if request.outstanding]
    nodes_of = _named(waiting, (node for node, _ in young.values()))
    taken = {
        *used,
        *chain.from_iterable(request.registered for request in requests),
        *chain.from_iterable(nodes_of.values()),
    }
    left = {request.name: request.outstanding for request in waiting}
    of_kinds = by_kind(each for each in waiting if not each.node_request.resource)
    free = (entry for name, entry in young.items() if name not in taken)
    for node, born in sorted(free, key=lambda each: (each[1], each[0].name)):
        of_kind = of_kinds.get((node.labels.get(NODEPOOL, ""), node.instance_type), ())
        open_ones = (request for request in reversed(of_kind) if left[request.name])
        earlier = (request for request in open_ones if request.obj.creation_timestamp <= born)
        answered = next(
            (request for request in earlier if (gpu_devices(node, gpu_resource) or 0) >= request.node_request.gpus),
            None,
        )
        if answered is not None:
            left[answered.name] -= 1
            nodes_of.setdefault(answered.name, []).append(node.name)
    return nodes_of


def _named(waiting: Iterable[CapacityRequest], nodes: Iterable[Node]) -> dict[str, list[str]]:
    """Nodes with shared devices, by the request that their label names, also where pods use them already."""
    requests = {request.name: request for request in waiting if request.node_request.resource}
    names: dict[str, list[str]] = {}
    for node in nodes:
        request = requests.get(node.labels.get(REQUEST, ""))
        if request is not None and gpu_devices(node, request.node_request.resource):
            names.setdefault(request.name, []).append(node.name)
    return names


def by_kind(requests: Iterable[CapacityRequest]) -> Mapping[tuple[str, str], Sequence[CapacityRequest]]:
    """Requests by (NodePool, instance type), in the order given."""
    requests_by_kind: dict[tuple[str, str], list[CapacityRequest]] = {}
    for request in requests:
        for instance_type in dict.fromkeys(request.node_request.instance_types):
            requests_by_kind.setdefault((request.node_request.node_pool, instance_type), []).append(request)
    return requests_by_kind


def _number(text: str, otherwise: int = 0) -> int:
    return int(text) if text.isdecimal() and len(text) < 5 else otherwise


def _names(annotations: Mapping[str, str], key: str) -> tuple[str, ...]:
    return tuple(map(str, _json(annotations, key, list)))


def _json(annotations: Mapping[str, str], key: str, kind: type[_T]) -> _T:
    """The annotation's value; empty where it is not of this kind."""
    try:
        value = orjson.loads(annotations.get(key, "null"))
    except orjson.JSONDecodeError:
        value = None
    return value if isinstance(value, kind) else kind()


def _count(pod_set: Mapping[str, object]) -> int:
    count = pod_set.get("count")
    return count if isinstance(count, int) else 0
