"""The capacity that the pods of a round may use: free and requested nodes, new nodes, and limits."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property

from plimsoll.cluster.pods import GpuKind
from plimsoll.cluster.pools import PoolLimits, PoolShape
from plimsoll.cluster.queues import QueueGate
from plimsoll.model import Snapshot
from plimsoll.model.cluster import Pod
from plimsoll.model.kai import PodGroup
from plimsoll.model.meta import Placement
from plimsoll.packing.nodes import FilledNode, FreeNode, NodeShape, PodNeed
from plimsoll.plan.classes import ClassMembers, DemandClass
from plimsoll.plan.demand.class_plan import ClassPlan
from plimsoll.plan.demand.demand import RequestedNode
from plimsoll.plan.demand.hosts import Hosts, Kind, ShapeOffer, preference
from plimsoll.plan.demand.supply import FreeHost


@dataclass(frozen=True)
class DemandInputs:
    """The arguments of a round; see `DemandPlanner.plan`."""

    snapshot: Snapshot
    classes: Mapping[DemandClass, ClassMembers]
    """In order of priority, highest first."""
    groups: Mapping[tuple[str, str], PodGroup]
    supply: Mapping[str, FreeHost]
    shapes: Sequence[PoolShape]
    unready: Sequence[PoolShape]
    """As in PoolShapes: no more of these nodes are requested, and those that were requested may come."""
    blocked: frozenset[tuple[str, str]]
    requested: Sequence[RequestedNode]
    limits: PoolLimits
    gate: QueueGate | None
    group_of: Callable[[Pod], PodGroup | None]
    now: datetime | None
    warnings: tuple[str, ...]
    without_place: frozenset[tuple[str, str, str]] = frozenset()
    """Pods that found no place before, as in DemandPlan: they are refused and use nothing of their queue."""

    def is_blocked(self, shape: PoolShape) -> bool:
        return (shape.instance_type, shape.node_pool) in self.blocked


class Usable:
    """Nodes and limits for the pods of one round. GPUs are in thousandths, CPU in millicores, memory in MiB."""

    def __init__(self, inputs: DemandInputs, hosts: Hosts, classes: Iterable[ClassPlan]) -> None:
        self._inputs = inputs
        self._hosts = hosts
        self.offers = _by_name(hosts.offers(each for each in inputs.shapes if not inputs.is_blocked(each)))
        """Shapes of new nodes, by name."""
        self.blocked = _by_name(hosts.offers(each for each in inputs.shapes if inputs.is_blocked(each)))
        """Shapes of new nodes that are skipped for now, by name."""
        self.shapes = [offer.packed for offer in self.offers.values()]
        """Shapes of new nodes, for packing."""
        self.requested: dict[str, RequestedNode] = {}
        """Requested nodes that pods may use, by name."""
        self.free: list[FreeNode] = []
        """Free resources of existing and requested nodes."""
        self._kinds: set[Kind] = set()
        self._answers: dict[tuple[object, ...], bool] = {}
        self._add_free(_least_milli([each.members for each in classes], inputs.supply))
        self._add_requested()
        self.possible = _by_name(hosts.offers(each for each in inputs.shapes if inputs.limits.excess(each) is None))
        """Shapes of which limits allow a new node, with those that are skipped for now, by name."""
        self.limits = inputs.limits.packing_limits({name: offer.shape for name, offer in self.offers.items()})

    @cached_property
    def kinds(self) -> Mapping[str, Kind]:
        """The kinds of free and requested nodes, by name."""
        return {kind.name: kind for kind in sorted(self._kinds, key=lambda kind: kind.name)}

    def existing_kinds(self, of: DemandClass, names: Collection[str]) -> dict[str, GpuKind]:
        """Those of the named kinds that can run the pods of the class, by name."""
        able = (kind for name, kind in self.kinds.items() if name in names and of.placement in kind.placements)
        return {kind.name: kind.gpus for kind in able}

    def left_by(self, nodes: Iterable[FilledNode], needs: Mapping[str, PodNeed]) -> list[FreeNode]:
        """The free nodes without the resources of the pods on these."""
        taken = {node.node: node for node in nodes if node.node is not None}
        return [_without(node, taken.get(node.name), needs) for node in self.free]

    def has_room(self, need: PodNeed) -> bool:
        """Whether the pod would have a place if no other pod waited."""
        return self.has_new_node(need) or self._any("free", need, (fits(node, need) for node in self.free))

    def is_blocked(self, need: PodNeed) -> bool:
        """Whether a node of an instance type that is skipped for now could take the pod."""
        return self._any("blocked", need, (could_take(each, need) for each in self.blocked.values()))

    def is_offered(self, need: PodNeed) -> bool:
        """Whether a node of another instance type could take the pod, whatever limits allow."""
        return self._any("offered", need, (could_take(each, need) for each in self.offers.values()))

    def has_new_node(self, need: PodNeed) -> bool:
        """Whether limits allow a new node that the pod fits, if no other pod waited."""
        possible = (each for name, each in self.possible.items() if name in self.offers)
        return self._any("new", need, (could_take(each, need) for each in possible))

    def _any(self, what: str, need: PodNeed, answers: Iterable[bool]) -> bool:
        # The amounts of a class are one mapping for all pods that request as much.
        key = (what, id(need.milli), need.devices, need.cpu_milli, need.memory_mib)
        if key not in self._answers:
            self._answers[key] = any(answers)
        return self._answers[key]

    def _add_free(self, least: int) -> None:
        for host in self._inputs.supply.values():
            if host.largest >= least:
                self._add(self._hosts.free_of(host))

    def _add_requested(self) -> None:
        by_name = {shape.name: shape for shape in (*self._inputs.shapes, *self._inputs.unready)}
        for node in self._inputs.requested:
            names = (f"{node.node_pool}/{each}" for each in node.instance_types)
            shapes = [by_name[name] for name in names if name in by_name]
            if not shapes or not (node.claimed or any(not self._inputs.is_blocked(shape) for shape in shapes)):
                continue
            if not node.claimed:  # Karpenter counts a node against limits once it has a NodeClaim
                self._inputs.limits.subtract(max(shapes, key=lambda each: (each.gpus, each.cpu_milli, each.name)))
            if self._add(self._hosts.requested_of(node, shapes)):
                self.requested[node.name] = node

    def _add(self, found: tuple[Kind, FreeNode] | None) -> bool:
        if found is not None:
            self._kinds.add(found[0])
            self.free.append(found[1])
        return found is not None


def kinds_of(offers: Iterable[ShapeOffer], of: DemandClass) -> dict[str, GpuKind]:
    """The kinds of those new nodes that can serve pods of the class, by name."""
    return {offer.kind.name: offer.kind.gpus for offer in offers if offer.kind.serves(of)}


def rank(offer: ShapeOffer, placement: Placement) -> tuple[int, int]:
    """Sort key of new nodes, smallest first: the preference of the pods, then the weight of the NodePool."""
    return -preference(placement, offer.shape), -offer.shape.weight


def could_take(offer: ShapeOffer, need: PodNeed) -> bool:
    """Whether the pod fits an empty node of the shape."""
    shape = offer.packed
    return shape.kind in need.milli and shape.devices >= need.devices and _has_host(shape, need)


def fits(node: FreeNode, need: PodNeed) -> bool:
    """Whether the pod fits what is free of the node."""
    milli = need.milli.get(node.kind)
    able = milli is not None and sum(free >= milli for free in node.devices) >= need.devices
    return able and _has_host(node, need)


def _has_host(node: NodeShape | FreeNode, need: PodNeed) -> bool:
    """Whether the pod fits, apart from its GPUs."""
    return node.cpu_milli >= need.cpu_milli and node.memory_mib >= need.memory_mib and node.pods > 0


def _by_name(offers: Iterable[ShapeOffer]) -> dict[str, ShapeOffer]:
    return {offer.packed.name: offer for offer in offers}


def _least_milli(members: Sequence[ClassMembers], supply: Mapping[str, FreeHost]) -> int:
    """The smallest share in whole thousandths of the largest GPU. A GPU with less free capacity serves no pod. 0 if it
    is not known."""
    shares = [each.share for of in members for each in (*of.shares.values(), *of.whole.values())]
    if all(share.milli is not None for share in shares):
        return min((int(share.milli or 0) for share in shares), default=0)
    memory = max((host.gpu_memory_mib or 0 for host in supply.values()), default=0)
    known = memory and all(share.tflops_milli is None for share in shares)
    return min(int(share.milli_of(memory)) for share in shares) if known else 0


def _without(node: FreeNode, taken: FilledNode | None, needs: Mapping[str, PodNeed]) -> FreeNode:
    """The node's free resources without those of the pods in `taken`."""
    if taken is None:
        return node
    pods = [needs[name] for name in taken.pods]
    on_devices = zip(node.devices, taken.devices, strict=True)
    return replace(
        node,
        devices=tuple(free - sum(needs[name].milli[node.kind] for name in held) for free, held in on_devices),
        cpu_milli=node.cpu_milli - sum(each.cpu_milli for each in pods),
        memory_mib=node.memory_mib - sum(each.memory_mib for each in pods),
        pods=node.pods - len(pods),
        scheduler=node.scheduler or max(each.scheduler for each in pods),
    )
