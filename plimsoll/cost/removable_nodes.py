"""Savings: which nodes could be removed if pods moved, and the cost of a new packing of the same demand, with a bound.

Pods move to where their node selectors, affinities and tolerations allow. Nothing is changed.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from plimsoll.cost.least import Alike, least_weight
from plimsoll.cost.prices import Prices
from plimsoll.cost.used_nodes import UsedNode, gpu_accounts, left_out_nodes, pending_pods, used_nodes
from plimsoll.model import Snapshot
from plimsoll.model.kai import group_key
from plimsoll.packing import GPU_MILLI, Milli
from plimsoll.packing.nodes import FreeNode, Limit, NodePacking, NodeShape, PodNeed, pack_nodes

_TRIES: Final = 20_000
"""Maximum number of nodes that are evaluated in total while looking for further removable nodes."""


@dataclass(frozen=True, slots=True)
class Move:
    """A pod that would have to move to another node."""

    pod: str
    """`namespace/name`"""
    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Moving:
    """The pods that would have to move."""

    moves: tuple[Move, ...] = ()
    gpus: float = 0.0
    """GPUs of the pods that move."""
    gangs: int = 0
    """Number of PodGroups of which a pod moves; most frameworks then restart all their pods."""
    without_controller: int = 0
    """Number of pods without a controller, which are not recreated."""


@dataclass(frozen=True, slots=True)
class GroupSavings:
    """Nodes of one instance type, NodePool and GPU product."""

    instance_type: str
    node_pool: str
    product: str
    price: float | None
    """Hourly price of one node; None if not known."""
    nodes: int
    removable: tuple[str, ...]
    """Names of the nodes that could be removed."""
    repacked: int
    """Number of nodes in a new packing of all pods."""


@dataclass(frozen=True, slots=True)
class Savings:
    """Hourly costs; if the price of a node is not known, all figures are GPUs instead of prices."""

    priced: bool
    """Whether figures are prices; otherwise they are GPUs."""
    now: float
    """Cost of all usable nodes."""
    saved: float
    """Cost of the nodes that could be removed."""
    repacked: float
    """Cost of a new packing of the pods of all removable nodes onto any of these nodes."""
    least: float
    """Lower bound of `repacked`, for any packing."""
    groups: tuple[GroupSavings, ...]
    moving: Moving
    stays: Mapping[str, str]
    """Why nodes cannot be removed, by name."""
    left_out: Mapping[str, str]
    """Why nodes with GPUs are not examined, and not part of any figure, by name."""
    pending: int
    """Number of pending pods that request GPUs: they are not counted, and may need what could be removed."""

    @property
    def unpriced(self) -> int:
        """Number of usable nodes without a price."""
        return sum(each.nodes for each in self.groups if each.price is None)


def savings(snapshot: Snapshot, prices: Prices, *, any_gpu: bool = False) -> Savings:
    """Unless `any_gpu`, pods stay on GPUs of the product that they have now."""
    accounts = gpu_accounts(snapshot)
    nodes = used_nodes(snapshot, accounts, prices, any_gpu=any_gpu)
    priced = all(node.price is not None for node in nodes)
    weights = {node.name: (node.price or 0.0) if priced else float(node.gpus) for node in nodes}
    movable = _alike(node for node in nodes if not node.stays)
    fixed = [node.free for node in nodes if node.stays and not node.reserved]
    alike = [Alike(_largest(group), len(group), weights[group[0].name]) for group in movable]
    needs = [need for group in movable for node in group for need in node.needs]
    least = least_weight(needs, alike, fixed)
    removable, packing = _emptied(nodes, movable, least.counts, weights)
    after = tuple(sum(node.name not in removable for node in group) for group in movable)
    repacked = min(
        (after, *_repacked(needs, movable, least.counts, fixed)),
        key=lambda counts: sum(group.weight * count for group, count in zip(alike, counts, strict=True)),
    )
    staying = sum(weights[node.name] for node in nodes if node.stays)
    weight = staying + sum(group.weight * count for group, count in zip(alike, repacked, strict=True))
    return Savings(
        priced=priced,
        now=sum(weights.values()),
        saved=sum(weights[name] for name in removable),
        repacked=weight,
        least=min(weight, staying + least.weight),
        groups=_reported(nodes, movable, repacked, removable),
        moving=_moving(nodes, removable, packing, snapshot),
        stays={node.name: node.stays for node in nodes if node.stays},
        left_out=left_out_nodes(accounts),
        pending=pending_pods(snapshot),
    )


def _alike(nodes: Iterable[UsedNode]) -> list[list[UsedNode]]:
    """Nodes of one type, NodePool and kind of GPUs, in order."""
    groups: dict[tuple[str, ...], list[UsedNode]] = defaultdict(list)
    for node in nodes:
        groups[node.instance_type, node.node_pool, node.free.kind, str(node.gpus)].append(node)
    return [groups[key] for key in sorted(groups)]


def _largest(group: Sequence[UsedNode]) -> FreeNode:
    """Of each amount the most that one of them has."""
    every = [node.emptied for node in group]
    return replace(
        every[0],
        cpu_milli=max(each.cpu_milli for each in every),
        memory_mib=max(each.memory_mib for each in every),
        pods=max(each.pods for each in every),
    )


def _repacked(
    needs: Sequence[PodNeed], groups: Sequence[Sequence[UsedNode]], counts: Sequence[int], fixed: Sequence[FreeNode]
) -> list[tuple[int, ...]]:
    """Number of nodes of each group for all pods in a new packing; empty if no packing was found. Tries as many nodes
    as the bound first, then more of those that fit the unplaced pods."""
    shapes = [_smallest(str(number), group) for number, group in enumerate(groups)]
    counts = list(counts)
    step = 1
    while True:
        limits = [Limit(count, {shape.name: 1}) for shape, count in zip(shapes, counts, strict=True)]
        packing = pack_nodes(needs, shapes, fixed, limits=limits)
        if not packing.unplaced:
            used = Counter(node.shape for node in packing.new_nodes)
            return [tuple(used[shape.name] for shape in shapes)]
        lacking = set(packing.unplaced)
        kinds = {kind for need in needs if need.name in lacking for kind in need.milli}
        more = [
            number
            for number, group in enumerate(groups)
            if shapes[number].kind in kinds and counts[number] < len(group)
        ]
        if not more:
            return []
        for number in more:
            counts[number] = min(len(groups[number]), counts[number] + step)
        step *= 2


def _smallest(name: str, group: Sequence[UsedNode]) -> NodeShape:
    """The minimum of each resource over the nodes, so that each of them fits what this node fits."""
    every = [node.emptied for node in group]
    return NodeShape(
        name=name,
        kind=every[0].kind,
        gpus=len(every[0].devices),
        cpu_milli=min(each.cpu_milli for each in every),
        memory_mib=min(each.memory_mib for each in every),
        price=group[0].price,
        pods=min(each.pods for each in every),
    )


def _emptied(
    nodes: Sequence[UsedNode],
    groups: Sequence[Sequence[UsedNode]],
    counts: Sequence[int],
    weights: Mapping[str, float],
) -> tuple[frozenset[str], NodePacking]:
    """Names of nodes whose pods all fit onto the free parts of the others, and where these pods would go.

    First the least used nodes beyond the counts of the bound, without those whose pods find no place. Then more of the
    others, as many at a time as succeed.
    """
    removable = {
        node.name: node
        for group, count in zip(groups, counts, strict=True)
        for node in sorted(group, key=_by_use)[: max(0, len(group) - count)]
    }
    packing = _onto_others(removable, nodes)
    while packing.unplaced:
        lacking = set(packing.unplaced)
        without = sorted(
            (each for each in removable.values() if any(n.name in lacking for n in each.needs)), key=_by_use
        )
        # A node that stays takes pods of others, too: a part of them is enough.
        for node in without[-max(1, len(without) // 4) :]:
            del removable[node.name]
        packing = _onto_others(removable, nodes)
    rest = [node for group in groups for node in group if node.name not in removable and weights[node.name]]
    rest.sort(key=lambda node: (node.used_milli / weights[node.name], node.name))
    at, size = 0, 1
    for _ in range(_TRIES // max(1, len(nodes))):
        if at >= len(rest):
            break
        further = {node.name: node for node in rest[at : at + size]}
        tried = _onto_others(removable | further, nodes)
        if tried.unplaced and size > 1:
            size //= 2
            continue
        at += size
        if not tried.unplaced:
            removable, packing, size = removable | further, tried, size * 2
    return frozenset(removable), packing


def _by_use(node: UsedNode) -> tuple[Milli, str]:
    return node.used_milli, node.name


def _onto_others(removable: Mapping[str, UsedNode], nodes: Sequence[UsedNode]) -> NodePacking:
    free = [node.free for node in nodes if node.name not in removable and not node.reserved]
    return pack_nodes([need for node in removable.values() for need in node.needs], (), free)


def _moving(nodes: Sequence[UsedNode], removable: Collection[str], packing: NodePacking, snapshot: Snapshot) -> Moving:
    targets = {pod: filled.node or "" for filled in packing.nodes for pod in filled.pods}
    moved = [
        (node, pod, need)
        for node in nodes
        if node.name in removable
        for pod, need in zip(node.pods, node.needs, strict=True)
    ]
    gangs = {(group.namespace, group.name) for group in snapshot.pod_groups if group.min_member > 1}
    return Moving(
        moves=tuple(Move(need.name, node.name, targets[need.name]) for node, _, need in moved),
        gpus=float(sum(need.devices * need.milli[node.free.kind] for node, _, need in moved)) / GPU_MILLI,
        gangs=len(gangs & {group_key(pod) for _, pod, _ in moved}),
        without_controller=sum(not pod.owner_kind for _, pod, _ in moved),
    )


def _reported(
    nodes: Sequence[UsedNode],
    movable: Sequence[Sequence[UsedNode]],
    repacked: Sequence[int],
    removable: Collection[str],
) -> tuple[GroupSavings, ...]:
    """Groups with the most removable nodes first."""
    needed = Counter(_shown(node) for node in nodes if node.stays)
    for group, count in zip(movable, repacked, strict=True):
        needed[_shown(group[0])] += count
    members: dict[tuple[str, str, str], list[UsedNode]] = defaultdict(list)
    for node in nodes:
        members[_shown(node)].append(node)
    found = [
        GroupSavings(
            *key,
            price=group[0].price,
            nodes=len(group),
            removable=tuple(node.name for node in group if node.name in removable),
            repacked=needed[key],
        )
        for key, group in sorted(members.items())
    ]
    return tuple(sorted(found, key=lambda each: -(each.price or 0.0) * len(each.removable)))


def _shown(node: UsedNode) -> tuple[str, str, str]:
    return (node.instance_type, node.node_pool, node.product)
