"""Packs the pods of all classes together where they can share nodes."""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from plimsoll.packing.nodes import (
    FilledNode,
    FreeNode,
    Limit,
    NodePacking,
    NodeShape,
    PodNeed,
    Rules,
    all_fit,
    pack_nodes,
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Part:
    """An independent part of the packing problem: its pods can use none of the nodes and shapes of other parts.
    `packing` is the result."""

    needs: Sequence[PodNeed]
    free: Sequence[FreeNode]
    shapes: Sequence[NodeShape]
    limits: Sequence[Limit]
    rules: Rules | None = None
    """None: they concern none of its pods."""
    packing: NodePacking = field(default_factory=NodePacking, compare=False)


class JointPacking:
    """Packs each part on its own. The last results are cached by part; the cache does not affect the result.

    `seconds` limits the search, counted as work instead of time.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._known: dict[frozenset[str], Part] = {}
        self._fitting = Part((), (), (), ()), dict[frozenset[tuple[object, int]], bool]()
        """Whether pods fit what this part has, by how many need the same."""

    def pack(
        self,
        needs: Sequence[PodNeed],
        free: Sequence[FreeNode],
        shapes: Sequence[NodeShape] = (),
        rules: Rules | None = None,
    ) -> list[Part]:
        """Packs all parts without limits."""
        known, self._known = self._known, {}
        return [self._packed(kinds, part, known) for kinds, part in _parts(needs, free, shapes, rules).items()]

    def without_redundant_nodes(self, parts: Sequence[Part], whole: Part) -> Sequence[Part]:
        """Repacks the placed pods onto fewer of the new nodes if that saves GPUs; otherwise returns `parts`.

        Preferences may open nodes that the next round would withdraw. `whole` has all nodes and shapes, and the needs
        of the placed pods for all kinds that they could use.
        """
        able, free, shapes, rules = whole.needs, whole.free, whole.shapes, whole.rules
        new = Counter(node.shape or "" for part in parts for node in part.packing.new_nodes)
        opened = [shape for shape in shapes if shape.name in new]
        kinds = {shape.kind for shape in opened}
        needs = {need.name: need for part in parts for need in part.needs}
        if all(kinds.isdisjoint(each.milli.keys() - needs[each.name].milli.keys()) for each in able):
            return parts
        limits = [Limit(new[shape.name], {shape.name: 1}) for shape in opened]
        packing = pack_nodes(able, opened, free, limits=limits, seconds=self._seconds, rules=rules)
        if packing.unplaced or packing.gpus >= sum(part.packing.gpus for part in parts):
            return parts
        bound = pack_nodes(able, shapes, free, seconds=self._seconds)
        node_of = {name: node.kind for node in packing.nodes for name in node.pods}
        needs |= {each.name: each for each in able if node_of[each.name] not in needs[each.name].milli}
        unplaced = tuple(name for part in parts for name in part.packing.unplaced)
        packing = replace(packing, unplaced=unplaced, least=bound.least, lower_bound=bound.lower_bound)
        return [Part(list(needs.values()), free, shapes, (), rules, packing)]

    def pack_within(self, part: Part) -> Part:
        """Packs everything as one part within its limits."""
        return self._packed(frozenset({kind for need in part.needs for kind in need.milli}), part, self._known)

    def all_fit(self, part: Part) -> bool:
        """Whether all pods have a place within the limits."""
        supply = replace(part, needs=())
        if self._fitting[0] != supply:
            self._fitting = supply, {}
        rules = part.rules
        spread = any(node.spread for node in part.free) or any(shape.spread for shape in part.shapes)
        keys = (
            (need_key(need), rules.alike(need.name) if rules is not None else (), need.order if spread else ())
            for need in part.needs
        )
        known, alike = self._fitting[1], frozenset(Counter(keys).items())
        if alike not in known:
            known[alike] = all_fit(
                part.needs, part.shapes, part.free, limits=part.limits, seconds=self._seconds, rules=rules
            )
        return known[alike]

    def fewest_gpus(self, needs: Sequence[PodNeed], shapes: Sequence[NodeShape]) -> float:
        """GPUs of the new nodes that these pods need without other nodes. Infinite if some fit none."""
        packing = pack_nodes(needs, shapes, seconds=self._seconds)
        return math.inf if packing.unplaced else packing.gpus

    def _packed(self, kinds: frozenset[str], part: Part, known: Mapping[frozenset[str], Part]) -> Part:
        before = known.get(kinds)
        if before is None or before != part:
            packing = pack_nodes(
                part.needs, part.shapes, part.free, limits=part.limits, seconds=self._seconds, rules=part.rules
            )
            before = replace(part, packing=packing)
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
    needs: Sequence[PodNeed], free: Sequence[FreeNode], shapes: Sequence[NodeShape], rules: Rules | None
) -> dict[frozenset[str], Part]:
    """Divides the problem into parts: two kinds are in the same part if any pod can use both. All pods that rules
    concern are in one part."""
    # Most pods share one mapping, and all mappings exist at once, so that identities differ.
    mappings = {id(need.milli): need.milli for need in needs}
    ruled = {kind for need in needs if rules is not None and rules.concern(need.name) for kind in need.milli}
    first = _joined((*mappings.values(), *([ruled] if ruled else ())))
    members: dict[str, set[str]] = {}
    for kind, part in first.items():
        members.setdefault(part, set()).add(kind)
    part_of = {mapping: first[next(iter(milli))] for mapping, milli in mappings.items()}
    divided_needs = _divided(needs, members, lambda need: part_of[id(need.milli)])
    nodes = _divided(free, members, lambda node: first.get(node.kind))
    offered = _divided(shapes, members, lambda shape: first.get(shape.kind))
    return {
        frozenset(kinds): Part(
            divided_needs[part], nodes[part], offered[part], (), None if ruled.isdisjoint(kinds) else rules
        )
        for part, kinds in sorted(members.items())
    }


def _joined(groups: Iterable[Collection[str]]) -> dict[str, str]:
    """For each kind, the first of those that it is joined with: two kinds are joined if they are in one group."""
    parent: dict[str, str] = {}

    def root(kind: str) -> str:
        while parent.setdefault(kind, kind) != kind:
            kind = parent[kind]
        return kind

    for group in groups:
        first, *others = sorted({root(kind) for kind in group})
        parent |= dict.fromkeys(others, first)
    return {kind: root(kind) for kind in parent}


def _divided(values: Iterable[T], parts: Iterable[str], part_of: Callable[[T], str | None]) -> dict[str, list[T]]:
    """The values of each part; without those that are of none."""
    found: dict[str, list[T]] = {part: [] for part in parts}
    for value in values:
        part = part_of(value)
        if part is not None:
            found[part].append(value)
    return found


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


def need_key(need: PodNeed) -> tuple[object, ...]:
    """Equal for pods that need the same."""
    return (
        tuple(sorted(need.milli.items())),
        need.devices,
        need.cpu_milli,
        need.memory_mib,
        need.storage_mib,
        need.scheduler,
    )
