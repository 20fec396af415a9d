"""Kinds of node for packing. Two nodes are of the same kind if the same pods can run on them and their GPUs are alike.

The queue of a pod is not part of a kind, so pods of all classes are packed together if they can run on the same nodes.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import count

from plimsoll.cluster.nodes import NodeIndex
from plimsoll.cluster.pools import PACKED, Strategies
from plimsoll.cluster.profiles import NodeProfile, all_met
from plimsoll.labels import FORMER_KEYS
from plimsoll.model.cluster import Device
from plimsoll.model.meta import NodeRequirement, Placement, Terms
from plimsoll.packing import GPU_MILLI
from plimsoll.packing.nodes import HOST, FreeNode, NodeShape
from plimsoll.plan.classes import DemandClass
from plimsoll.plan.demand.demand import RequestedNode
from plimsoll.plan.demand.supply import Supplied

FREE, IN_FLIGHT, REQUESTED = 0, 1, 2
"""Tiers of supply: existing nodes are filled first, then the nodes of NodeClaims, then requested nodes."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Nodes on which the same pods can run, with GPUs that are alike."""

    name: str
    gpus: Device
    placements: frozenset[Placement]
    """The placements of the pods that can run on these nodes."""
    scheduler: str = ""
    """As in PlannedNode."""

    def serves(self, demand_class: DemandClass) -> bool:
        """Whether pods of the class can share its GPUs."""
        return demand_class.placement in self.placements and self.scheduler in ("", demand_class.scheduler)


@dataclass(frozen=True, slots=True)
class ShapeOffer:
    """A shape of new nodes for pods whose conditions one node can meet together."""

    shape: NodeProfile
    kind: Kind
    terms: Mapping[Placement, Terms]
    """By placement, the conditions on labels that the shape leaves open."""
    together: Terms
    """Conditions that meet all of these."""
    packed: NodeShape
    """The shape for packing; its name is unique."""

    def requires(self, placements: Iterable[Placement]) -> Terms:
        """The conditions on labels that the shape leaves open, of pods of these placements on one node."""
        sets = (self.terms[placement] for placement in sorted(set(placements), key=_digest))
        met = all_met(sets, self.shape.given)
        return self.together if met is None else met  # with many alternatives, not all are compared

    def with_domains(self, required: Terms, domains: Iterable[NodeRequirement]) -> Terms:
        """These conditions, and that the node is in these domains."""
        chosen = tuple(each for each in domains if each.key not in self.shape.labels)
        return all_met((required, (chosen,)), self.shape.given) or required

    def may_have(self, domain: NodeRequirement) -> bool:
        """Whether a node of the shape may be in the domain."""
        known = self.shape.labels.get(domain.key)
        if known is not None:
            return domain.allows(known)
        return all_met((self.together, ((domain,),)), self.shape.given) is not None


class Hosts:
    """Finds the kinds of nodes that can serve pods of the given placements. The result does not depend on the order of
    placements or nodes."""

    def __init__(self, classes: Iterable[DemandClass], strategies: Strategies = PACKED) -> None:
        self.strategies = strategies
        self.pods = frozenset((each.placement, each.scheduler) for each in classes)
        """(placement, scheduler) of the pods."""
        placements = {placement for placement, _ in self.pods}
        self._placements = sorted(placements, key=_digest)
        selected = {key for each in placements for key, _ in each.node_selector}
        required = {need.key for each in placements for term in each.affinity for need in term if not need.field}
        self._keys = tuple(sorted(selected | required))
        self._current_keys = {FORMER_KEYS.get(key, key) for key in self._keys}
        self._by_name = any(need.field for each in placements for term in each.affinity for need in term)
        self._known: dict[tuple[object, ...], frozenset[Placement]] = {}
        self._offers: dict[str, tuple[NodeProfile, tuple[ShapeOffer, ...]]] = {}
        """Of the shapes that were evaluated already, by name."""
        self._kinds: dict[tuple[object, ...], Kind] = {}
        self._free: dict[str, tuple[Supplied, int, tuple[Kind, FreeNode] | None]] = {}
        """The nodes that were evaluated already, by name; with whole thousandths of the device with the most free."""
        self._seen: dict[str, frozenset[str]] = {}
        self._wide: frozenset[Placement] = frozenset()

    def see(
        self, nodes: NodeIndex, requested: Iterable[RequestedNode], wide: frozenset[Placement] = frozenset()
    ) -> None:
        """Reads which values the nodes' labels have, of those that pods or requested nodes have conditions on. Pods of
        the `wide` placements may need any node that their own conditions allow, whatever those of others are."""
        keys = {*self._current_keys, *(each.key for node in requested for term in node.requires for each in term)}
        seen = {key: frozenset(nodes.by_label(key)) for key in keys}
        if (seen, wide) != (self._seen, self._wide):
            self._seen, self._wide, self._offers = seen, wide, {}

    def free_of(self, host: Supplied, least: int) -> tuple[Kind, FreeNode] | None:
        """The kind of the node and its free resources for packing; None if no pod can run on it, or each device has
        less than `least` whole thousandths free."""
        free, profile = host
        known = self._free.get(free.name)
        if known is None or known[0] is not host:
            kind, tier = self._kind_of(profile, free.scheduler), FREE if profile.node else IN_FLIGHT
            spread = self.strategies.spread_on(profile.node_pool, profile.labels)
            found = None if kind is None else (kind, replace(free, kind=kind.name, tier=tier, spread=spread))
            known = self._free[free.name] = host, max(map(int, free.devices)), found
        return known[2] if known[1] >= least else None

    def _kind_of(self, profile: NodeProfile, scheduler: str) -> Kind | None:
        placements = self._on_node(profile) if profile.node else frozenset(self._on_shape(profile))
        return self._kind(profile.device.one, placements, scheduler) if placements else None

    def requested_of(self, node: RequestedNode, shapes: Sequence[NodeProfile]) -> tuple[Kind, FreeNode] | None:
        """As `free_of`, for a requested node that may come as any of these shapes: with the minimum of their resources.
        None also if the shapes differ in what pods may request."""
        if len({(shape.device.resource, shape.device.claimable) for shape in shapes}) > 1:
            return None
        able = [
            placement
            for placement in self._placements
            if all(shape.meets(placement, node.requires, self._seen) for shape in shapes)
        ]
        memory = [shape.device.memory_mib for shape in shapes]
        least = min((each for each in memory if each), default=None)
        fewest = min((shape.device for shape in shapes), key=lambda device: device.replicas)
        gpus = replace(fewest.one, product=node.kind, memory_mib=least if all(memory) else None)
        if not able:
            return None
        kind, devices = self._kind(gpus, frozenset(able), node.scheduler), (GPU_MILLI,) * (node.gpus * fewest.replicas)
        rest = {name: min(getattr(each, name) for each in shapes) for name in (*HOST, "pods")}
        spread = self.strategies.spread_on(node.node_pool, shapes[0].labels)
        free = FreeNode(node.name, kind.name, devices, **rest, tier=REQUESTED, scheduler=node.scheduler, spread=spread)
        return kind, free

    def offers(self, shapes: Iterable[NodeProfile]) -> Iterator[ShapeOffer]:
        """Each shape, once for each largest set of pods that one node can serve: pods that require different zones, or
        share GPUs by different schedulers, cannot share a node. Also once for each wide placement, without the pods
        that would narrow it."""
        for shape in shapes:
            found = self._offers.get(shape.name)
            if found is None or found[0] != shape:
                found = self._offers[shape.name] = shape, tuple(self._offers_of(shape))
            yield from found[1]

    def _offers_of(self, shape: NodeProfile) -> Iterator[ShapeOffer]:
        every, gpus = self._on_shape(shape), shape.device.one
        schedulers = {""} if shape.device.resource else {scheduler for _, scheduler in self.pods}
        numbers = count()
        for scheduler in sorted(schedulers):
            terms = {
                placement: left_open
                for placement, left_open in every.items()
                if not scheduler or (placement, scheduler) in self.pods
            }
            wide = {left_open for placement, left_open in terms.items() if placement in self._wide}
            for members, together in shape.together(set(terms.values()), self._seen, wide):
                served = {placement: left_open for placement, left_open in terms.items() if left_open in members}
                ranks = tuple(sorted((_digest(each), preference(each, shape)) for each in served if each.preferred))
                kind = self._kind(gpus, frozenset(served), scheduler, "new", shape.weight, ranks)
                packed = NodeShape(
                    f"{shape.name}/{number}" if (number := next(numbers)) else shape.name,
                    kind.name, shape.gpus, shape.cpu_milli, shape.memory_mib, shape.price, shape.pods,
                    shape.device.memory_mib, shape.device.replicas, shape.storage_mib,
                    self.strategies.spread_on(shape.node_pool, shape.labels),
                )  # fmt: skip
                yield ShapeOffer(shape, kind, served, together, packed)

    def _on_node(self, node: NodeProfile) -> frozenset[Placement]:
        """The placements that the node serves, known for nodes that differ in no label of a condition."""
        key = (tuple(map(node.labels.get, self._keys)), node.taints, node.node if self._by_name else "")
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = frozenset(filter(node.serves, self._placements))
        return found

    def _on_shape(self, shape: NodeProfile) -> Mapping[Placement, Terms]:
        """The placements that the shape serves, and what they leave open."""
        terms = ((placement, shape.left_open(placement)) for placement in self._placements)
        return {placement: left_open for placement, left_open in terms if left_open is not None}

    def _kind(self, gpus: Device, placements: frozenset[Placement], scheduler: str, *more: object) -> Kind:
        key = (gpus, placements, scheduler, *more)
        found = self._kinds.get(key)
        if found is None:
            text = repr((gpus, sorted(map(_digest, placements)), more, scheduler))
            name = f"{gpus.product} {hashlib.sha256(text.encode()).hexdigest()[:12]}"
            found = self._kinds[key] = Kind(name, gpus, placements, scheduler)
        return found


def preference(placement: Placement, shape: NodeProfile) -> int:
    """Sum of the weights of the preferred node affinity terms that a node of the shape meets."""
    return sum(
        weight
        for weight, term in placement.preferred
        if shape.serves(replace(placement, affinity=(term,), preferred=()))
    )


@lru_cache(maxsize=4096)
def _digest(placement: Placement) -> str:
    return hashlib.sha256(repr(placement).encode()).hexdigest()
