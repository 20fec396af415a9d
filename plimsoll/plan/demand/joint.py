"""Packs the pods of all classes together where they can share nodes."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from plimsoll.packing.nodes import FilledNode, FreeNode, Limit, NodePacking, NodeShape, PodNeed, all_fit, pack_nodes


@dataclass(frozen=True, slots=True)
class Part:
    """An independent part of the packing problem: its pods can use none of the nodes and shapes of other parts.
    `packing` is the result."""

    needs: Sequence[PodNeed]
    free: Sequence[FreeNode]
    shapes: Sequence[NodeShape]
    limits: Sequence[Limit]
    packing: NodePacking = field(default_factory=NodePacking, compare=False)


class JointPacking:
    """Packs each part on its own. The last results are cached by part; the cache does not affect the result.

    `seconds` limits the search, counted as work instead of time.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._known: dict[frozenset[str], Part] = {}

    def pack(
        self,
        needs: Sequence[PodNeed],
        free: Sequence[FreeNode],
        shapes: Sequence[NodeShape] = (),
    ) -> list[Part]:
        """Packs all parts without limits."""
        known, self._known = self._known, {}
        return [self._packed(kinds, part, known) for kinds, part in _parts(needs, free, shapes).items()]

    def without_redundant_nodes(
        self, parts: Sequence[Part], able: Sequence[PodNeed], free: Sequence[FreeNode], shapes: Sequence[NodeShape]
    ) -> Sequence[Part]:
        """Repacks the placed pods onto fewer of the new nodes if that saves GPUs; otherwise returns `parts`.

        Preferences may open nodes that the next round would withdraw. `able` has the needs of the placed pods, for all
        kinds that they could use.
        """
        new = Counter(node.shape or "" for part in parts for node in part.packing.new_nodes)
        opened = [shape for shape in shapes if shape.name in new]
        kinds = {shape.kind for shape in opened}
        needs = {need.name: need for part in parts for need in part.needs}
        if all(kinds.isdisjoint(each.milli.keys() - needs[each.name].milli.keys()) for each in able):
            return parts
        limits = [Limit(new[shape.name], {shape.name: 1}) for shape in opened]
        packing = pack_nodes(able, opened, free, limits=limits, seconds=self._seconds)
        if packing.unplaced or packing.gpus >= sum(part.packing.gpus for part in parts):
            return parts
        bound = pack_nodes(able, shapes, free, seconds=self._seconds)
        node_of = {name: node.kind for node in packing.nodes for name in node.pods}
        needs |= {each.name: each for each in able if node_of[each.name] not in needs[each.name].milli}
        unplaced = tuple(name for part in parts for name in part.packing.unplaced)
        packing = replace(packing, unplaced=unplaced, least=bound.least, lower_bound=bound.lower_bound)
        return [Part(list(needs.values()), free, shapes, (), packing)]

    def pack_within(self, part: Part) -> Part:
        """Packs everything as one part within its limits."""
        return self._packed(frozenset({kind for need in part.needs for kind in need.milli}), part, self._known)

    def all_fit(self, part: Part) -> bool:
        """Whether all pods have a place within the limits."""
        return all_fit(part.needs, part.shapes, part.free, limits=part.limits, seconds=self._seconds)

    def fewest_gpus(self, needs: Sequence[PodNeed], shapes: Sequence[NodeShape]) -> float:
        """GPUs of the new nodes that these pods need without other nodes. Infinite if some fit none."""
        packing = pack_nodes(needs, shapes, seconds=self._seconds)
        return math.inf if packing.unplaced else packing.gpus

    def _packed(self, kinds: frozenset[str], part: Part, known: Mapping[frozenset[str], Part]) -> Part:
        before = known.get(kinds)
        if before is None or before != part:
            packing = pack_nodes(part.needs, part.shapes, part.free, limits=part.limits, seconds=self._seconds)
            before = Part(part.needs, part.free, part.shapes, part.limits, packing)
        self._known[kinds] = before
        return before


def binds(limit: Limit, parts: Iterable[Part]) -> bool:
    """Whether the limit may prevent one more node."""
    return _used(limit, parts) + max(limit.uses.values(), default=0) > limit.left


def within(limit: Limit, parts: Iterable[Part]) -> bool:
    return _used(limit, parts) <= max(0, limit.left)


def _used(limit: Limit, parts: Iterable[Part]) -> int:
    nodes = (node for part in parts for node in part.packing.new_nodes)
    return sum(limit.uses.get(node.shape or "", 0) for node in nodes)


def _parts(
    needs: Sequence[PodNeed], free: Sequence[FreeNode], shapes: Sequence[NodeShape]
) -> dict[frozenset[str], Part]:
    """Divides the problem into parts: two kinds are in the same part if any pod can use both."""
    first: dict[str, str] = {}

    def root(kind: str) -> str:
        while first.setdefault(kind, kind) != kind:
            kind = first[kind]
        return kind

    seen: dict[int, str] = {}
    for need in needs:
        if id(need.milli) not in seen:
            roots = sorted({root(kind) for kind in need.milli})
            for other in roots[1:]:
                first[other] = roots[0]
            seen[id(need.milli)] = roots[0]
    members: dict[str, set[str]] = {}
    for kind in first:
        members.setdefault(root(kind), set()).add(kind)
    of = {kind: at for at, kinds in members.items() for kind in kinds}
    sorted_needs: dict[str, list[PodNeed]] = {at: [] for at in members}
    nodes: dict[str, list[FreeNode]] = {at: [] for at in members}
    offered: dict[str, list[NodeShape]] = {at: [] for at in members}
    for need in needs:
        sorted_needs[root(seen[id(need.milli)])].append(need)
    for node in free:
        if node.kind in of:
            nodes[of[node.kind]].append(node)
    for shape in shapes:
        if shape.kind in of:
            offered[of[shape.kind]].append(shape)
    return {frozenset(members[at]): Part(sorted_needs[at], nodes[at], offered[at], ()) for at in sorted(members)}


def filled(parts: Iterable[Part]) -> list[FilledNode]:
    """The nodes of all parts, with their pods. An existing node has those of all parts."""
    existing: dict[str, FilledNode] = {}
    for node in (node for part in parts for node in part.packing.nodes):
        if node.node is None:
            continue
        same = existing.setdefault(node.node, node)
        if same is not node:
            devices = (a + b for a, b in zip(same.devices, node.devices, strict=True))
            existing[node.node] = replace(node, devices=tuple(devices))
    return [*existing.values(), *(node for part in parts for node in part.packing.new_nodes)]
