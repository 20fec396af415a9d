"""Supply that demand is packed into before new nodes are requested: free parts of existing GPUs and of NodeClaims."""

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from plimsoll.labels import WORKSPACE
from plimsoll.model import Snapshot
from plimsoll.model.cluster import Node
from plimsoll.model.meta import Placement
from plimsoll.packing.nodes import FilledNode, FreeNode, NodeUse, PodNeed
from plimsoll.plan.demand.demand import Demand
from plimsoll.plan.demand.served_placements import Holder, ServedPlacements
from plimsoll.plan.ledger import GpuAccount, GpuLedger, free_node
from plimsoll.plan.nodes import gpu_devices
from plimsoll.plan.pools import PoolShape, claim_spares


class DemandSupply:
    """Free parts by name of node or NodeClaim; what is used of them is not free any more.

    `came` are nodes that registered for a demand, with its name: until its pods are bound, they serve this demand only.
    Otherwise each class would choose again among the registered nodes, and one that chose badly would request more.
    `changed` are the names that differ from the previous supply.
    """

    def __init__(
        self, free: Mapping[str, FreeNode], served: ServedPlacements, came: Mapping[str, str], changed: AbstractSet[str]
    ) -> None:
        self._free = dict(free)
        self._served = served
        self._came = came
        self.changed = changed
        self.taken: set[str] = set()
        """Of which a part is free no more."""
        self._came_for: dict[str, list[str]] = {}
        for name in sorted(came):
            self._came_for.setdefault(came[name], []).append(name)

    def copy(self) -> "DemandSupply":
        """The same, to be taken from alone."""
        return DemandSupply(self._free, self._served, self._came, self.changed)

    def unused(self, demands: Iterable[Demand]) -> frozenset[str]:
        """Nodes that came for a demand, and that none of these has pods for."""
        used = {name for demand in demands for name in demand.on_nodes}
        return frozenset(name for name in self._came if name in self._free and name not in used)

    def opened(self, nodes: Container[str]) -> "DemandSupply":
        """A copy in which these nodes, which came for a demand, are everybody's."""
        came = {name: demand for name, demand in self._came.items() if name not in nodes}
        return DemandSupply(self._free, self._served, came, self.changed)

    @property
    def names(self) -> Collection[str]:
        """Of all nodes and claims."""
        return self._free.keys()

    def serves(self, placement: Placement, name: str) -> bool:
        return name in self._served.names(placement)

    def served(self, placement: Placement) -> set[str]:
        """Names of what pods of that placement may use, those that came for a demand and those that are full too."""
        return self._served.names(placement)

    def serving(self, placement: Placement) -> list[FreeNode]:
        """What pods of that placement may use, by name, without the nodes that came for a demand."""
        names = (name for name in sorted(self.served(placement)) if name not in self._came)
        return [free for name in names if any((free := self._free[name]).gpus)]

    def kinds(self, placement: Placement) -> list[tuple[str, int | None]]:
        """Kinds of GPU of that, with MiB of one of them; None where that is not known."""
        return self._served.kinds(placement, self._came)

    def everybodys(self, name: str) -> FreeNode | None:
        """What is free there; None where it is not there, or came for a demand."""
        return None if name in self._came else self._free.get(name)

    def came_for(self, demand: str) -> list[tuple[FreeNode, Node]]:
        """Nodes that came for a demand and have something free, with their free parts, by name."""
        names = [name for name in self._came_for.get(demand, ()) if name in self._free]
        found = ((self._free[name], self._served.holders[name].of) for name in names)
        return [(free, node) for free, node in found if isinstance(node, Node)]

    def gpu_memory(self, name: str) -> int | None:
        """MiB of one GPU of the node or claim; None where it is not known."""
        return self._served.holders[name].gpu_memory_mib

    def take(self, uses: Iterable[NodeUse]) -> None:
        for use in uses:
            self._free[use.node] = use.taken_from(self._free[use.node])
            self.taken.add(use.node)

    def uses(self, filled: Iterable[FilledNode], needs: Mapping[str, PodNeed]) -> tuple[NodeUse, ...]:
        """What these pods take where they lie, of nodes that are here and may hold them."""
        there = ((self._free[each.node], each.gpus) for each in filled if each.node in self._free)
        found = (NodeUse.of(free, held, needs) for free, held in there if len(held) == len(free.gpus))
        return tuple(use for use in found if use is not None)


class Supplies:
    """Builds the supply of one snapshot after the other; unchanged nodes are not read again."""

    def __init__(self) -> None:
        self._ledger: GpuLedger | None = None
        self._begin()

    def _begin(self) -> None:
        self._free: dict[str, FreeNode] = {}
        """Of nodes."""
        self._holders: dict[str, Holder] = {}
        self._coming: Mapping[str, tuple[FreeNode, PoolShape]] = {}
        """Of claims."""
        self._served = ServedPlacements()
        self._came: Mapping[str, str] = {}

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
            self._ledger = ledger
            self._begin()
        changed = self._came.keys() ^ came.keys()
        self._came = dict(came)
        for name in self._free.keys() - ledger.names:
            del self._free[name], self._holders[name]
            changed.add(name)
        for name in ledger.unread():
            self._read(name, ledger.account(name))
            changed.add(name)
        before, self._coming = self._coming, self._claims(snapshot, shapes, failed_claims)
        changed |= {name for name in before.keys() | self._coming.keys() if before.get(name) != self._coming.get(name)}
        for name in changed:
            self._served.put(name, self._holder(name))
        free = {name: free for name, (free, _) in self._coming.items()} | self._free
        return DemandSupply(free, self._served, came, changed)

    def keep(self, placements: Collection[Placement]) -> None:
        """Forgets what serves other placements."""
        self._served.keep(placements)

    def _claims(
        self, snapshot: Snapshot, shapes: Sequence[PoolShape], failed_claims: Collection[str]
    ) -> Mapping[str, tuple[FreeNode, PoolShape]]:
        claims = [claim for claim in snapshot.node_claims if claim.name not in failed_claims]
        if not claims:
            return {}
        nodes = {node.name: node for node in snapshot.nodes}
        resource = snapshot.environment.spec.gpu_resource
        coming = [claim for claim in claims if not _devices(nodes.get(claim.node_name), resource)]
        return {free.name: (free, shape) for free, shape in claim_spares(coming, shapes, resource)}

    def _holder(self, name: str) -> Holder | None:
        if name not in self._holders and name in self._coming:
            _, shape = self._coming[name]
            return Holder(shape, shape.kind, shape.gpu_memory_mib)
        return self._holders.get(name)

    def _read(self, name: str, account: GpuAccount | None) -> None:
        self._free.pop(name, None)
        self._holders.pop(name, None)
        if account is None or not account.node.usable or WORKSPACE in account.node.labels:
            return
        milli = account.likely_free_milli
        if account.shareable and account.kind and any(milli):
            self._free[name] = free_node(account, milli)
            self._holders[name] = Holder(account.node, account.kind, account.memory_mib)


def _devices(node: Node | None, resource: str) -> int:
    """Devices that pods may ask of the node; 0 where there is none, or it says nothing."""
    return (gpu_devices(node, resource) or 0) if node is not None else 0
