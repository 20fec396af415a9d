"""The capacity that the pods of a plan may use: free and requested nodes, new nodes, and limits."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter

from plimsoll.cluster.claims import selection
from plimsoll.cluster.pools import PoolLimits
from plimsoll.cluster.profiles import NodeProfile
from plimsoll.model.cluster import Device
from plimsoll.packing import GPU_MILLI
from plimsoll.packing.nodes import HOST, FilledNode, FreeNode, Limit, NodeShape, PodNeed
from plimsoll.plan.classes import ClassMembers, DemandClass
from plimsoll.plan.demand.demand import RequestedNode
from plimsoll.plan.demand.hosts import Hosts, Kind, ShapeOffer, preference
from plimsoll.plan.demand.inputs import DemandInputs
from plimsoll.plan.demand.supply import Supplied


@dataclass(frozen=True)
class Usable:
    """Nodes and limits for the pods of one plan. GPUs are in thousandths, CPU in millicores, memory in MiB."""

    offers: Mapping[str, ShapeOffer]
    """Shapes of new nodes, by name."""
    blocked: Mapping[str, ShapeOffer]
    """Shapes of new nodes that are skipped for now, by name."""
    possible: Mapping[str, ShapeOffer]
    """Shapes of which limits allow a new node, with those that are skipped for now, by name."""
    free: Sequence[FreeNode]
    """Free resources of existing and requested nodes."""
    kinds: Mapping[str, Kind]
    """The kinds of free and requested nodes, by name."""
    requested: Mapping[str, RequestedNode]
    """Requested nodes that pods may use, by name."""
    pool_limits: PoolLimits
    limits: Sequence[Limit]
    """`pool_limits` for packing onto `shapes`."""

    @cached_property
    def shapes(self) -> list[NodeShape]:
        """Shapes of new nodes, for packing."""
        return [offer.packed for offer in self.offers.values()]

    def existing_kinds(self, demand_class: DemandClass, names: Collection[str]) -> dict[str, Device]:
        """Those of the named kinds that can run the pods of the class, by name."""
        able = (kind for name, kind in self.kinds.items() if name in names)
        return {kind.name: kind.gpus for kind in able if demand_class.placement in kind.placements}

    def left_by(self, nodes: Iterable[FilledNode], needs: Iterable[PodNeed]) -> "Usable":
        """The same without the resources of these pods on these nodes."""
        taken = {node.node: node for node in nodes if node.node is not None}
        if not taken:
            return self
        by_name = {need.name: need for need in needs}
        return replace(self, free=[_without(node, taken.get(node.name), by_name) for node in self.free])

    def with_room(self, needs: Iterable[PodNeed]) -> set[str]:
        """Names of the pods that would have a place if no other pod waited."""
        roomy: dict[tuple[int, ...], bool] = {}
        """By the identity of the mapping, as most pods share one: fractions are slow to hash."""
        found, pods = set[str](), tuple(needs)  # all exist at once, so that identities differ
        for need in pods:
            same = id(need.milli), need.devices, need.cpu_milli, need.memory_mib, need.storage_mib
            if same not in roomy:
                roomy[same] = self.has_new_node(need) or any(fits(node, need) for node in self._different)
            if roomy[same]:
                found.add(need.name)
        return found

    def is_blocked(self, need: PodNeed) -> bool:
        """Whether a node of an instance type that is skipped for now could take the pod."""
        return any(could_take(offer, need) for offer in self.blocked.values())

    def has_new_node(self, need: PodNeed) -> bool:
        """Whether limits allow a new node that the pod fits, if no other pod waited."""
        return any(could_take(offer, need) for name, offer in self.possible.items() if name in self.offers)

    @cached_property
    def _different(self) -> Sequence[FreeNode]:
        """One of each set of free nodes that have the same left."""
        room = attrgetter("kind", "devices", *HOST, "pods")
        by_room = {room(each): each for each in self.free}
        return tuple(by_room.values())


def usable_of(inputs: DemandInputs, hosts: Hosts) -> Usable:
    """The capacity for the pods of all classes."""
    offers = _by_name(hosts.offers(shape for shape in inputs.shapes if not inputs.is_blocked(shape)))
    blocked = _by_name(hosts.offers(shape for shape in inputs.shapes if inputs.is_blocked(shape)))
    limits = inputs.pool_limits()
    least = _least_milli(inputs.classes.values(), inputs.supply)
    existing = [found for host in inputs.supply.values() if (found := hosts.free_of(host, least))]
    requested = list(_requested(inputs, hosts, limits))
    kinds = {kind.name: kind for kind, _ in (*existing, *(found for _, found in requested))}
    return Usable(
        offers=offers,
        blocked=blocked,
        possible=_by_name(hosts.offers(shape for shape in inputs.shapes if limits.excess(shape) is None)),
        free=[free for _, free in (*existing, *(found for _, found in requested))],
        kinds=dict(sorted(kinds.items())),
        requested={node.name: node for node, _ in requested},
        pool_limits=limits,
        limits=limits.packing_limits({name: offer.shape for name, offer in offers.items()}),
    )


def _requested(
    inputs: DemandInputs, hosts: Hosts, limits: PoolLimits
) -> Iterable[tuple[RequestedNode, tuple[Kind, FreeNode]]]:
    """The requested nodes that will come and that pods can use. Those without a NodeClaim are subtracted from the
    limits: Karpenter counts a node once it has one."""
    alike = dict[tuple[object, ...], tuple[Kind, FreeNode] | None]()
    """What equal requests offer, which differ in their names."""
    by_name: dict[str, NodeProfile] = {shape.name: shape for shape in (*inputs.shapes, *inputs.unready)}
    for node in inputs.requested:
        names = (f"{node.node_pool}/{instance_type}" for instance_type in node.instance_types)
        shapes = [by_name[name] for name in names if name in by_name]
        if not shapes or not (node.claimed or any(not inputs.is_blocked(shape) for shape in shapes)):
            continue
        if not node.claimed:
            limits.subtract(max(shapes, key=lambda shape: (shape.gpus, shape.cpu_milli, shape.name)))
        offer = node.instance_types, node.node_pool, node.gpus, node.kind, node.requires, node.scheduler
        if offer not in alike:
            alike[offer] = hosts.requested_of(node, shapes)
        if (found := alike[offer]) is not None:
            kind, free = found
            yield node, (kind, replace(free, name=node.name))


def kinds_of(offers: Iterable[ShapeOffer], demand_class: DemandClass) -> dict[str, Device]:
    """The kinds of those new nodes that can serve pods of the class, by name."""
    return {offer.kind.name: offer.kind.gpus for offer in offers if offer.kind.serves(demand_class)}


def rank(offer: ShapeOffer, demand_class: DemandClass) -> tuple[int, int, int]:
    """Sort key of new nodes, smallest first: the order of alternatives in the claims of the pods, the preference of the
    pods, then the weight of the NodePool."""
    device, claims = offer.kind.gpus, demand_class.claims
    order = selection(claims, device.claimable, device.count).order if claims and device.claimable is not None else 0
    return order, -preference(demand_class.placement, offer.shape), -offer.shape.weight


def could_take(offer: ShapeOffer, need: PodNeed) -> bool:
    """Whether the pod fits an empty node of the shape, with the reservation pods of the GPUs that it shares."""
    shape = offer.packed
    milli = need.milli.get(shape.kind)
    if milli is None or shape.devices < need.devices or not _has_host(shape, need):
        return False
    return shape.pods > (need.devices if milli < GPU_MILLI else 0)


def fits(node: FreeNode, need: PodNeed) -> bool:
    """Whether the pod fits what is free of the node."""
    milli = need.milli.get(node.kind)
    able = milli is not None and sum(free >= milli for free in node.devices) >= need.devices
    return able and _has_host(node, need)


def _has_host(node: NodeShape | FreeNode, need: PodNeed) -> bool:
    """Whether the pod fits, apart from its GPUs."""
    return node.pods > 0 and all(getattr(node, name) >= getattr(need, name) for name in HOST)


def _by_name(offers: Iterable[ShapeOffer]) -> dict[str, ShapeOffer]:
    return {offer.packed.name: offer for offer in offers}


def _least_milli(classes: Collection[ClassMembers], supply: Mapping[str, Supplied]) -> int:
    """The smallest share in whole thousandths of the largest GPU. A GPU with less free capacity serves no pod. 0 if it
    is not known."""
    shares = [pod.share for members in classes for pod in (*members.shares.values(), *members.whole.values())]
    if any(share.claims for share in shares):
        return 0  # a part of a device depends on what it is
    if all(share.milli is not None for share in shares):
        return min((int(share.milli or 0) for share in shares), default=0)
    memory = max((profile.device.memory_mib or 0 for _, profile in supply.values()), default=0)
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
        **{name: getattr(node, name) - sum(getattr(need, name) for need in pods) for name in HOST},
        pods=node.pods - len(pods),
        scheduler=node.scheduler or max(need.scheduler for need in pods),
    )
