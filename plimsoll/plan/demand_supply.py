"""What demand is packed into before anything is asked for: free parts of existing GPUs, and of claims on their way."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plimsoll.model.labels import INSTANCE_TYPE, NODEPOOL, WORKSPACE
from plimsoll.model.node import Node
from plimsoll.model.node_claim import NodeClaim
from plimsoll.model.placement import Placement
from plimsoll.model.quantity import parse_cpu_milli, parse_devices, parse_memory_mib
from plimsoll.model.snapshot import Snapshot
from plimsoll.plan.gpu_account import GpuAccount
from plimsoll.plan.gpu_ledger import GpuLedger, free_node
from plimsoll.plan.node_index import gpu_devices
from plimsoll.plan.node_need import FilledNode, FreeNode, PodNeed, less
from plimsoll.plan.node_use import NodeUse
from plimsoll.plan.packing_problem import GPU_MILLI
from plimsoll.plan.pool_shape import PoolShape


@dataclass(frozen=True, slots=True)
class _Holder:
    """Whose labels and taints say which pods it takes: a node, or the shape of a claim."""

    of: Node | PoolShape
    gpu_memory_mib: int | None

    def serves(self, placement: Placement) -> bool:
        if isinstance(self.of, PoolShape):
            return self.of.serves(placement)
        return not placement.kept_away(self.of.taints) and placement.allows(self.of.labels, self.of.name)


class DemandSupply:
    """Free parts by name of node or claim; what is taken of them is free no more.

    `came` are nodes that came for a demand, with its name: until its pods are bound they are for it alone. Else each
    class would choose anew among the nodes that come, and one that chose badly would ask for more.
    """

    def __init__(self, free: Mapping[str, FreeNode], holders: Mapping[str, _Holder], came: Mapping[str, str]) -> None:
        self._free = dict(free)
        self._holders = holders
        self._came = came
        self._served: dict[Placement, tuple[str, ...]] = {}

    def copy(self) -> "DemandSupply":
        """The same, to be taken from alone."""
        other = DemandSupply(self._free, self._holders, self._came)
        other._served = self._served
        return other

    def serving(self, placement: Placement) -> list[FreeNode]:
        """What pods of that placement may use, by name, without the nodes that came for a demand."""
        names = self._served.get(placement)
        if names is None:
            everybodys = ((name, holder) for name, holder in self._holders.items() if name not in self._came)
            found = (name for name, holder in everybodys if holder.serves(placement))
            names = self._served[placement] = tuple(sorted(found))
        return [free for name in names if any((free := self._free[name]).gpus)]

    def came_for(self, demand: str) -> list[tuple[FreeNode, Node]]:
        """Nodes that came for a demand and have something free, with their free parts, by name."""
        names = sorted(name for name, each in self._came.items() if each == demand and name in self._free)
        found = ((self._free[name], self._holders[name].of) for name in names)
        return [(free, node) for free, node in found if isinstance(node, Node)]

    def gpu_memory(self, name: str) -> int | None:
        """MiB of one GPU of the node or claim; None where it is not known."""
        return self._holders[name].gpu_memory_mib

    def uses(self, filled: Iterable[FilledNode], needs: Mapping[str, PodNeed]) -> tuple[NodeUse, ...]:
        """What these pods take where they lie, of nodes that are here and may hold them."""
        there = ((self._free[each.node], each.gpus) for each in filled if each.node in self._free)
        found = (NodeUse.of(free, held, needs) for free, held in there if len(held) == len(free.gpus))
        return tuple(use for use in found if use is not None)

    def take(self, uses: Iterable[NodeUse]) -> None:
        for use in uses:
            self._free[use.node] = use.taken_from(self._free[use.node])

    def give_back(self, uses: Iterable[NodeUse]) -> None:
        for use in uses:
            self._free[use.node] = use.taken_from(self._free[use.node], -1)

    def reserve(self, uses: Iterable[NodeUse]) -> tuple[NodeUse, ...]:
        """Takes what is free of it, node by node, and gives back what that is."""
        kept = tuple(use for use in uses if (free := self._free.get(use.node)) is not None and use.fits(free))
        self.take(kept)
        return kept


class Supplies:
    """The supply of one snapshot after the other; of nodes that did not change it is not read again."""

    def __init__(self) -> None:
        self._ledger: GpuLedger | None = None
        self._free: dict[str, FreeNode] = {}
        self._holders: dict[str, _Holder] = {}

    def of(
        self,
        snapshot: Snapshot,
        ledger: GpuLedger,
        shapes: Sequence[PoolShape],
        failed_claims: Collection[str],
        came: Mapping[str, str],
    ) -> DemandSupply:
        """The supply of a snapshot; `failed_claims` are NodeClaims of which nothing is expected any more.

        Nobody else reads the ledger.
        """
        if ledger is not self._ledger:
            self._ledger, self._free, self._holders = ledger, {}, {}
        for name in self._free.keys() - ledger.names:
            del self._free[name], self._holders[name]
        for name in ledger.unread():
            self._read(name, ledger.account(name))
        free, holders = dict(self._free), self._holders
        claims = [claim for claim in snapshot.node_claims if claim.name not in failed_claims]
        if claims:
            holders = dict(holders)
            nodes = {node.name: node for node in snapshot.nodes}
            resource = snapshot.environment.spec.gpu_resource
            coming = [claim for claim in claims if not _devices(nodes.get(claim.node_name), resource)]
            for node, shape in _spares(coming, shapes, resource):
                free.setdefault(node.name, node)
                holders.setdefault(node.name, _Holder(shape, shape.gpu_memory_mib))
        return DemandSupply(free, holders, came)

    def _read(self, name: str, account: GpuAccount | None) -> None:
        self._free.pop(name, None)
        self._holders.pop(name, None)
        if account is None or not account.node.usable or WORKSPACE in account.node.labels:
            return
        milli = account.likely_free_milli
        if account.shareable and account.kind and any(milli):
            self._free[name] = free_node(account, milli)
            self._holders[name] = _Holder(account.node, account.memory_mib)


def _devices(node: Node | None, resource: str) -> int:
    """Devices that pods may ask of the node; 0 where there is none, or it says nothing."""
    return (gpu_devices(node, resource) or 0) if node is not None else 0


def _spares(
    claims: Iterable[NodeClaim], shapes: Sequence[PoolShape], resource: str
) -> Iterable[tuple[FreeNode, PoolShape]]:
    """What claims of known shapes leave free for others than those they were made for."""
    by_name = {shape.name: shape for shape in shapes}
    for claim in claims:
        shape = by_name.get(f"{claim.labels.get(NODEPOOL, '')}/{_instance_type(claim)}")
        if shape is not None and not claim.deleting and WORKSPACE not in claim.labels:
            spare = _spare(claim, shape, resource)
            if spare is not None:
                yield spare, shape


def _instance_type(claim: NodeClaim) -> str:
    """That it was launched as, or the only one that it may be."""
    launched = claim.labels.get(INSTANCE_TYPE)
    if launched:
        return launched
    return claim.instance_types[0] if len(claim.instance_types) == 1 else ""


def _spare(claim: NodeClaim, shape: PoolShape, resource: str) -> FreeNode | None:
    """What the pods that it was made for leave free; None where that is no GPU."""
    resources = claim.spec.get("resources")
    requests = resources.get("requests") if isinstance(resources, dict) else None
    asked = requests if isinstance(requests, dict) else {}
    gpus = shape.gpus - _amount(asked, resource, parse_devices)
    if gpus <= 0:
        return None
    # Karpenter writes what DaemonSets take into the requests of a claim.
    cpu_milli = min(shape.cpu_milli, max(0, shape.node_cpu_milli - _amount(asked, "cpu", parse_cpu_milli)))
    memory_mib = min(shape.memory_mib, max(0, shape.node_memory_mib - _amount(asked, "memory", parse_memory_mib)))
    pods = less(shape.pods, max(0, _amount(asked, "pods", parse_devices) - shape.overhead.pods))
    return FreeNode(claim.name, shape.kind, (GPU_MILLI,) * gpus, cpu_milli, memory_mib, pods)


def _amount(amounts: Mapping[str, Any], resource: str, parse: Any) -> int:
    try:
        return int(parse(amounts.get(resource, 0)))
    except ValueError:
        return 0
