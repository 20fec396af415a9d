"""Nodes with the devices that are published of them, and pods with what their claims ask for.

Whoever observes the objects joins them, so that a node's devices and a pod's request are values of these, whatever
announces the one and asks for the other.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import compress
from operator import attrgetter
from typing import Final

from plimsoll.cluster.claims.pod_claims import PodClaims
from plimsoll.cluster.claims.pools import NodeParts, Served, parts_by_node, published
from plimsoll.model.cluster import Node, Pod
from plimsoll.model.dra import (
    NOTHING_PUBLISHED,
    DeviceClass,
    Published,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)

_CLAIMS: Final = attrgetter("resource_claims")


@dataclass(frozen=True)
class ClaimObjects:
    """All objects of Dynamic Resource Allocation of a cluster."""

    slices: tuple[ResourceSlice, ...] = ()
    classes: tuple[DeviceClass, ...] = ()
    claims: tuple[ResourceClaim, ...] = ()
    templates: tuple[ResourceClaimTemplate, ...] = ()


@dataclass
class Joining:
    """Joins consecutive states. What did not change is the same value again. Not thread-safe."""

    _of: tuple[object, ...] = ()
    _parts: Mapping[str, NodeParts] = field(default_factory=dict)
    _published: Mapping[str, Published] = field(default_factory=dict)
    _nodes: dict[str, tuple[Node, Published, Node]] = field(default_factory=dict)
    _pods: dict[int, tuple[Pod, Pod]] = field(default_factory=dict)
    """By the identity of the pod, which this keeps alive: keys of thousands of pods take longer than to join them."""
    _holding: tuple[ResourceClaim, ...] = ()
    """The claims that have devices."""
    _last_nodes: tuple[object, ...] = ()
    _last_pods: tuple[object, ...] = ()
    _joined_nodes: tuple[Node, ...] = ()
    _joined_pods: tuple[Pod, ...] = ()

    def nodes(self, nodes: tuple[Node, ...], objects: ClaimObjects) -> tuple[Node, ...]:
        """The nodes with their devices; the same tuple while nothing changes."""
        if not objects.slices and not self._published:
            return nodes
        holding = tuple(claim for claim in objects.claims if claim.devices)
        if holding != self._holding:
            self._holding = holding
        read_of = (objects.slices, self._holding, objects.classes)
        if not _same(read_of, self._of):
            known = self._parts if _same((objects.classes,), self._of[2:]) else {}
            parts, before, served = (
                parts_by_node(objects.slices, self._holding),
                self._published,
                Served(objects.classes),
            )
            self._published = {
                name: before[name] if own.same(known.get(name)) else _kept(before.get(name), published(own, served))
                for name, own in parts.items()
            }
            self._parts, self._of = parts, read_of
        if not _same((nodes, self._published), self._last_nodes):
            self._joined_nodes = self._join(nodes)
            self._last_nodes = (nodes, self._published)
        return self._joined_nodes

    def has_devices(self, node: str) -> bool:
        """Whether drivers publish devices of the node of that name."""
        return node in self._published

    def _join(self, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        known, self._nodes = self._nodes, {}
        found = []
        for node in nodes:
            published = self._published.get(node.name, NOTHING_PUBLISHED)
            before = known.get(node.name)
            if before is None or before[0] is not node or before[1] is not published:
                joined = node if published is node.published else node.model_copy(update={"published": published})
                before = (node, published, joined)
            self._nodes[node.name] = before
            found.append(before[2])
        return tuple(found)

    def pods(self, pods: tuple[Pod, ...], objects: ClaimObjects) -> tuple[Pod, ...]:
        """The pods with what their claims ask for; the same tuple while nothing changes."""
        read_of = (pods, objects.classes, objects.claims, objects.templates)
        if _same(read_of, self._last_pods):
            return self._joined_pods
        self._last_pods = read_of
        # Without a step of the interpreter for each of the others, of which there may be a hundred thousand.
        claiming = list(compress(pods, map(_CLAIMS, pods)))
        if not claiming:
            self._pods, self._joined_pods = {}, pods
            return pods
        reader = PodClaims(objects.classes, objects.claims, objects.templates, claiming)
        known, self._pods = self._pods, {}
        for pod in claiming:
            before = known.get(id(pod))
            claimed = before[1].claimed if before is not None else None
            if before is None or claimed is None or not claimed.settled:
                read = {"claimed": reader.of(pod), "host": reader.host(pod)}
                if before is None or any(getattr(before[1], key) != read[key] for key in read):
                    before = (pod, pod.model_copy(update=read))
            self._pods[id(pod)] = before
        joined = self._pods
        self._joined_pods = tuple(joined[id(pod)][1] if pod.resource_claims else pod for pod in pods)
        return self._joined_pods


def _kept(before: Published | None, now: Published) -> Published:
    return before if before is not None and before == now else now


def _same(left: Iterable[object], right: Iterable[object]) -> bool:
    one, other = tuple(left), tuple(right)
    return len(one) == len(other) and all(each is of for each, of in zip(one, other, strict=True))
