"""Kinds of node for packing. Two nodes are of the same kind if the same pods can run on them and their GPUs are alike.

The queue of a pod is not part of a kind, so pods of all classes are packed together if they can run on the same nodes.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import count

from plimsoll.cluster.nodes import NodeIndex
from plimsoll.cluster.pods import GpuKind
from plimsoll.cluster.pools import PoolShape, all_met
from plimsoll.labels import FORMER_KEYS
from plimsoll.model.cluster import Node
from plimsoll.model.meta import Placement, Taint, Terms
from plimsoll.packing import GPU_MILLI
from plimsoll.packing.nodes import FreeNode, NodeShape
from plimsoll.plan.classes import DemandClass
from plimsoll.plan.demand.demand import RequestedNode
from plimsoll.plan.demand.supply import FreeHost

FREE, IN_FLIGHT, REQUESTED = 0, 1, 2
"""Tiers of supply: existing nodes are filled first, then the nodes of NodeClaims, then requested nodes."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Nodes on which the same pods can run, with GPUs that are alike."""

    name: str
    gpus: GpuKind
    placements: frozenset[Placement]
    """The placements of the pods that can run on these nodes."""
    scheduler: str = ""
    """As in PlannedNode."""

    def serves(self, of: DemandClass) -> bool:
        """Whether pods of the class can share its GPUs."""
        return of.placement in self.placements and self.scheduler in ("", of.scheduler)


@dataclass(frozen=True, slots=True)
class ShapeOffer:
    """A shape of new nodes for pods whose conditions one node can meet together."""

    shape: PoolShape
    kind: Kind
    terms: Mapping[Placement, Terms]
    """By placement, the conditions on labels that the shape leaves open."""
    together: Terms
    """Conditions that meet all of these."""
    packed: NodeShape
    """The shape for packing; its name is unique."""

    def requires(self, placements: Iterable[Placement]) -> Terms:
        """The conditions on labels that the shape leaves open, of pods of these placements on one node."""
        own = all_met((self.terms[each] for each in sorted(set(placements), key=_digest)), self.shape.given)
        return self.together if own is None else own  # with many alternatives, not all are compared


class Hosts:
    """Finds the kinds of nodes that can serve pods of the given placements. The result does not depend on the order of
    placements or nodes."""

    def __init__(self, classes: Iterable[DemandClass]) -> None:
        self.pods = frozenset((of.placement, of.scheduler) for of in classes)
        """(placement, scheduler) of the pods."""
        placements = {placement for placement, _ in self.pods}
        self._placements = sorted(placements, key=_digest)
        selected = {key for each in placements for key, _ in each.node_selector}
        required = {need.key for each in placements for term in each.affinity for need in term if not need.field}
        self._keys = tuple(sorted(selected | required))
        self._current_keys = {FORMER_KEYS.get(key, key) for key in self._keys}
        self._by_name = any(need.field for each in placements for term in each.affinity for need in term)
        self._known: dict[tuple[object, ...], frozenset[Placement]] = {}
        self._offers: dict[str, tuple[PoolShape, tuple[ShapeOffer, ...]]] = {}
        """Of the shapes that were evaluated already, by name."""
        self._kinds: dict[tuple[object, ...], Kind] = {}
        self._free: dict[str, tuple[FreeHost, tuple[Kind, FreeNode] | None]] = {}
        """The nodes that were evaluated already, by name."""
        self._seen: dict[str, frozenset[str]] = {}

    def see(self, nodes: NodeIndex, requested: Iterable[RequestedNode]) -> None:
        """Reads which values the nodes' labels have, of those that pods or requested nodes have conditions on."""
        keys = {*self._current_keys, *(each.key for node in requested for term in node.requires for each in term)}
        seen = {key: frozenset(nodes.by_label(key)) for key in keys}
        if seen != self._seen:
            self._seen, self._offers = seen, {}

    def free_of(self, host: FreeHost) -> tuple[Kind, FreeNode] | None:
        """The kind of the node and its free resources for packing; None if no pod can run on it."""
        known = self._free.get(host.free.name)
        if known is None or known[0] is not host:
            kind, tier = self._kind_of(host), FREE if isinstance(host.source, Node) else IN_FLIGHT
            found = None if kind is None else (kind, replace(host.free, kind=kind.name, tier=tier))
            known = self._free[host.free.name] = host, found
        return known[1]

    def _kind_of(self, host: FreeHost) -> Kind | None:
        of = host.source
        placements = (
            self._on_node(of.labels, of.taints, of.name) if isinstance(of, Node) else frozenset(self._on_shape(of))
        )
        gpus = GpuKind(host.free.kind, host.gpu_memory_mib, host.sharing)
        return self._kind(gpus, placements, host.free.scheduler) if placements else None

    def requested_of(self, node: RequestedNode, shapes: Sequence[PoolShape]) -> tuple[Kind, FreeNode] | None:
        """As `free_of`, for a requested node that may come as any of these shapes: with the minimum of their resources.
        None also if the shapes differ in what pods may request."""
        if len({shape.sharing.resource for shape in shapes}) > 1:
            return None
        able = [of for of in self._placements if all(each.meets(of, node.requires, self._seen) for each in shapes)]
        memory = [shape.gpu_memory_mib for shape in shapes]
        least = min((each for each in memory if each), default=None)
        sharing = min((shape.sharing for shape in shapes), key=lambda each: each.per_gpu)
        gpus = GpuKind(node.kind, least if all(memory) else None, sharing)
        if not able:
            return None
        kind, devices = self._kind(gpus, frozenset(able), node.scheduler), (GPU_MILLI,) * (node.gpus * sharing.per_gpu)
        rest = {name: min(getattr(each, name) for each in shapes) for name in ("cpu_milli", "memory_mib", "pods")}
        return kind, FreeNode(node.name, kind.name, devices, **rest, tier=REQUESTED, scheduler=node.scheduler)

    def offers(self, shapes: Iterable[PoolShape]) -> Iterator[ShapeOffer]:
        """Each shape, once for each largest set of pods that one node can serve: pods that require different zones, or
        share GPUs by different schedulers, cannot share a node."""
        for shape in shapes:
            found = self._offers.get(shape.name)
            if found is None or found[0] != shape:
                found = self._offers[shape.name] = shape, tuple(self._offers_of(shape))
            yield from found[1]

    def _offers_of(self, shape: PoolShape) -> Iterator[ShapeOffer]:
        every, gpus = self._on_shape(shape), GpuKind(shape.kind, shape.gpu_memory_mib or None, shape.sharing)
        schedulers = {""} if shape.sharing.resource else {scheduler for _, scheduler in self.pods}
        numbers = count()
        for scheduler in sorted(schedulers):
            terms = {each: own for each, own in every.items() if not scheduler or (each, scheduler) in self.pods}
            for members, together in shape.together(set(terms.values()), self._seen):
                served = {each: own for each, own in terms.items() if own in members}
                ranks = tuple(sorted((_digest(each), preference(each, shape)) for each in served if each.preferred))
                kind = self._kind(gpus, frozenset(served), scheduler, "new", shape.weight, ranks)
                packed = NodeShape(
                    f"{shape.name}/{number}" if (number := next(numbers)) else shape.name,
                    kind.name, shape.gpus, shape.cpu_milli, shape.memory_mib, shape.price, shape.pods,
                    shape.sharing.per_gpu,
                )  # fmt: skip
                yield ShapeOffer(shape, kind, served, together, packed)

    def _on_node(self, labels: Mapping[str, str], taints: tuple[Taint, ...], name: str) -> frozenset[Placement]:
        key = (tuple(labels.get(key) for key in self._keys), taints, name if self._by_name else "")
        found = self._known.get(key)
        if found is None:
            able = (
                each for each in self._placements if not each.untolerated_taints(taints) and each.allows(labels, name)
            )
            found = self._known[key] = frozenset(able)
        return found

    def _on_shape(self, shape: PoolShape) -> Mapping[Placement, Terms]:
        """The placements that the shape serves, and what they leave open."""
        terms = ((each, shape.left_open(each)) for each in self._placements)
        return {each: own for each, own in terms if own is not None}

    def _kind(self, gpus: GpuKind, placements: frozenset[Placement], scheduler: str, *more: object) -> Kind:
        key = (gpus, placements, scheduler, *more)
        found = self._kinds.get(key)
        if found is None:
            text = repr((*gpus, sorted(map(_digest, placements)), more, scheduler))
            name = f"{gpus.product} {hashlib.sha256(text.encode()).hexdigest()[:12]}"
            found = self._kinds[key] = Kind(name, gpus, placements, scheduler)
        return found


def preference(placement: Placement, shape: PoolShape) -> int:
    """Sum of the weights of the preferred node affinity terms that a node of the shape meets."""
    return sum(
        weight
        for weight, term in placement.preferred
        if shape.serves(replace(placement, affinity=(term,), preferred=()))
    )


@lru_cache(maxsize=4096)
def _digest(placement: Placement) -> str:
    return hashlib.sha256(repr(placement).encode()).hexdigest()
