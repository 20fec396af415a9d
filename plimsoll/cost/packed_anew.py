"""Savings: the same demand packed anew, and which nodes could be emptied by moving pods; nothing is changed.

Nodes of one instance type, NodePool and GPU product form a group. Pods stay within their group, where their selectors
and tolerations are known to fit, so that the result is a lower bound of what could be saved.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from plimsoll.cluster.ledger import GpuAccount, free_node, gpu_ledger
from plimsoll.cluster.pods import ASSUMED_MILLI, bound_pods, is_reservation, read_shares
from plimsoll.cost.prices import Prices
from plimsoll.labels import DO_NOT_DISRUPT, NODEPOOL, WORKSPACE
from plimsoll.model import Snapshot
from plimsoll.model.cluster import Pod
from plimsoll.model.kai import NAMESPACES, GPUShare
from plimsoll.packing import GPU_MILLI, Milli
from plimsoll.packing.nodes import NodePacking, NodeShape, PodNeed, pack_nodes


@dataclass(frozen=True, slots=True)
class Move:
    """A pod that would have to be started again on another node."""

    pod: str
    """`namespace/name`"""
    source: str
    target: str


@dataclass(frozen=True, slots=True)
class GroupSavings:
    """What could be saved among alike nodes; prices an hour."""

    instance_type: str
    node_pool: str
    product: str
    nodes: int
    """Usable nodes."""
    anew: int
    """Nodes that the same pods need if all of them are packed anew."""
    least: int
    """Lower bound of `anew`, for any packing."""
    leaving: tuple[str, ...]
    """Nodes whose pods all fit onto the free parts of the others."""
    moves: tuple[Move, ...]
    """What emptying them would take."""
    kept: tuple[str, ...]
    """Nodes that stay: they belong to a Workspace, a pod on them must not be disrupted, or the ledger has discrepancies
    on them."""
    price: float | None
    """Of one node; None if not known."""

    @property
    def hourly(self) -> float:
        """Price of the nodes that would go."""
        return (self.price or 0.0) * len(self.leaving)

    @property
    def most_hourly(self) -> float:
        """Upper bound of what any packing of these pods onto these nodes saves."""
        return (self.price or 0.0) * max(0, self.nodes - self.least)


@dataclass(frozen=True, slots=True)
class _Held:
    """A usable node with its pods."""

    account: GpuAccount
    needs: tuple[PodNeed, ...]
    movable: bool


def savings(snapshot: Snapshot, prices: Prices) -> tuple[GroupSavings, ...]:
    """By group; those of which the most is saved come first."""
    pods = bound_pods(snapshot.pods)
    held = [
        _held(account, pods.get(account.node.name, ()), snapshot)
        for account in gpu_ledger(snapshot).accounts()
        if account.gpus and account.kind and account.shareable and account.node.usable
    ]
    ordered = sorted(held, key=_group)
    found = [_of_group(key, list(group), prices) for key, group in groupby(ordered, key=_group)]
    return tuple(sorted(found, key=lambda each: (-each.hourly, -len(each.leaving), each.instance_type, each.node_pool)))


def _group(held: _Held) -> tuple[str, str, str, int]:
    node = held.account.node
    return (node.instance_type, node.labels.get(NODEPOOL, ""), held.account.kind, held.account.gpus)


def _held(account: GpuAccount, pods: Iterable[Pod], snapshot: Snapshot) -> _Held:
    using = [pod for pod in pods if not is_reservation(pod, NAMESPACES)]
    shares = read_shares(using, snapshot.environment.spec.gpu_resource).found
    owned = WORKSPACE in account.node.labels or any(
        account.node.name in each.status.worker_nodes for each in snapshot.workspaces
    )
    fixed = any(pod.annotations.get(DO_NOT_DISRUPT) == "true" for pod in using)
    needs = tuple(
        PodNeed(
            name=f"{each.pod.namespace}/{each.pod.name}",
            milli={account.kind: _milli(each.share, account.memory_mib)},
            devices=each.share.devices,
            cpu_milli=each.pod.host.cpu_milli,
            memory_mib=each.pod.host.memory_mib,
        )
        for each in shares
    )
    return _Held(account, needs, movable=not (owned or fixed or account.discrepancies))


def _milli(share: GPUShare, memory_mib: int | None) -> Milli:
    """Thousandths of each of its GPUs; `memory_mib` is the shareable memory of one, None where it is not known."""
    if share.milli is not None:
        return share.milli
    return min(GPU_MILLI, share.milli_of(memory_mib)) if memory_mib else ASSUMED_MILLI


def _of_group(key: tuple[str, str, str, int], held: Sequence[_Held], prices: Prices) -> GroupSavings:
    instance_type, node_pool, product, gpus = key
    needs = [need for each in held for need in each.needs]
    shape = NodeShape(
        name=instance_type or "node",
        kind=product,
        gpus=gpus,
        cpu_milli=min(each.account.cpu_milli + sum(need.cpu_milli for need in each.needs) for each in held),
        memory_mib=min(each.account.host_memory_mib + sum(need.memory_mib for need in each.needs) for each in held),
    )
    anew = pack_nodes(needs, [shape])
    leaving, packing = _emptied(held)
    sources = {need.name: each.account.node.name for each in leaving for need in each.needs}
    return GroupSavings(
        instance_type=instance_type,
        node_pool=node_pool,
        product=product,
        nodes=len(held),
        anew=min(len(held), len(anew.new_nodes) + len(anew.unplaced)),
        least=math.ceil(anew.least / gpus),
        leaving=tuple(sorted(each.account.node.name for each in leaving)),
        moves=_moves(packing, sources),
        kept=tuple(sorted(each.account.node.name for each in held if not each.movable)),
        price=prices.of_type(instance_type),
    )


def _emptied(held: Sequence[_Held]) -> tuple[list[_Held], NodePacking]:
    """The most of the least used nodes whose pods fit onto the free parts of the others, and where they would go."""
    order = sorted((each for each in held if each.movable), key=lambda each: (_used(each), each.account.node.name))
    best: tuple[list[_Held], NodePacking] = ([], NodePacking())
    fewest, most = 0, len(order)
    while fewest < most:
        count = (fewest + most + 1) // 2
        leaving = order[:count]
        packing = _onto_others(leaving, held)
        if packing.unplaced:
            most = count - 1
        else:
            fewest, best = count, (leaving, packing)
    return best


def _onto_others(leaving: Sequence[_Held], held: Sequence[_Held]) -> NodePacking:
    gone = {each.account.node.name for each in leaving}
    free = [free_node(each.account, each.account.free_milli) for each in held if each.account.node.name not in gone]
    return pack_nodes([need for each in leaving for need in each.needs], (), free)


def _moves(packing: NodePacking, sources: Mapping[str, str]) -> tuple[Move, ...]:
    found = (Move(pod, sources[pod], node.node or "") for node in packing.nodes for pod in node.pods)
    return tuple(sorted(found, key=lambda move: (move.source, move.pod)))


def _used(held: _Held) -> Milli:
    return held.account.gpus * GPU_MILLI - sum(held.account.likely_free_milli)
