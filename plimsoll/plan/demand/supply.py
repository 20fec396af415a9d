"""Supply that is used before new nodes are requested: free resources of nodes and of NodeClaims."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from plimsoll.cluster.ledger import GpuAccount, GpuLedger, free_node
from plimsoll.cluster.nodes import gpu_devices
from plimsoll.cluster.pools import PoolShape, free_on_claims, starting_nodes
from plimsoll.labels import NODEPOOL, WORKSPACE
from plimsoll.model import Snapshot
from plimsoll.model.api import NOT_SHARED, DeviceSharing, EnvironmentSpec
from plimsoll.model.cluster import Node
from plimsoll.packing import GPU_MILLI
from plimsoll.packing.nodes import FreeNode


@dataclass(frozen=True, slots=True)
class FreeHost:
    """Free resources of a node, or of a NodeClaim with a known shape."""

    free: FreeNode
    """Free resources; the kind is the GPU product."""
    source: Node | PoolShape
    """The node or shape whose labels and taints decide which pods can run there."""
    gpu_memory_mib: int | None
    """MiB of one GPU; None if it is not known."""
    largest: int
    """Whole thousandths of the device with the most free."""
    sharing: DeviceSharing = NOT_SHARED
    """How its GPUs are allocatable: as whole GPUs or as several devices each."""


class Supply:
    """Reads the supply of consecutive snapshots. Unchanged nodes are not read again."""

    def __init__(self) -> None:
        self._ledger: GpuLedger | None = None
        self._nodes: dict[str, FreeHost] = {}

    def of(
        self, snapshot: Snapshot, ledger: GpuLedger, shapes: Sequence[PoolShape], failed_claims: Collection[str]
    ) -> Mapping[str, FreeHost]:
        """Supply by the name of the node or NodeClaim. `failed_claims` are names of NodeClaims that are no longer
        expected.

        Nothing else may read the accounts of `ledger` between two calls, because reading an account clears its mark in
        `ledger.unread`.
        """
        if ledger is not self._ledger:
            self._ledger, self._nodes = ledger, {}
        for name in self._nodes.keys() - ledger.names:
            del self._nodes[name]
        for name in ledger.unread():
            self._nodes.pop(name, None)
            found = _of_node(ledger.account(name), snapshot.environment.spec)
            if found is not None:
                self._nodes[name] = found
        starting = starting_nodes(snapshot)
        usable = {name: host for name, host in self._nodes.items() if name not in starting} if starting else self._nodes
        claims = [claim for claim in snapshot.node_claims if claim.name not in failed_claims]
        if not claims:
            return usable
        nodes = {node.name: node for node in snapshot.nodes if node.name not in starting}
        spec = snapshot.environment.spec
        in_flight = [claim for claim in claims if not _devices(nodes.get(claim.node_name), spec.gpu_resource)]
        spares = free_on_claims(in_flight, shapes, spec.gpu_resource)
        in_flight_free = {free.name: FreeHost(free, of, of.gpu_memory_mib or None, GPU_MILLI) for free, of in spares}
        return in_flight_free | usable


def _of_node(account: GpuAccount | None, spec: EnvironmentSpec) -> FreeHost | None:
    if account is None or not account.node.usable or account.node.troubled or WORKSPACE in account.node.labels:
        return None
    sharing = spec.demand.sharing_of(account.node.labels.get(NODEPOOL, ""), account.node.instance_type)
    if sharing.resource:
        return _of_shared(account, sharing, spec.gpu_resource)
    milli = account.likely_free_milli
    members = [*(each for group in account.groups for each in group.members), *(each for each, _ in account.ungrouped)]
    schedulers = sorted({each.pod.scheduler_name for each in members})
    if len(schedulers) > 1:  # it is not known here whose shares use which of the GPUs
        milli = tuple(free if free == GPU_MILLI else 0 for free in milli)
    if not (account.shareable and account.kind and any(milli)):
        return None
    free = replace(free_node(account, milli), scheduler=schedulers[0] if len(schedulers) == 1 else "")
    return FreeHost(free, account.node, account.memory_mib, max(map(int, milli)))


def _of_shared(account: GpuAccount, sharing: DeviceSharing, gpu_resource: str) -> FreeHost | None:
    """Supply of a node whose GPUs are allocatable as several devices each. As in the scheduler, the devices of the node
    count together."""
    free = account.free_gpus if sharing.resource == gpu_resource else account.devices_of(sharing.resource).free
    if free <= 0:
        return None
    return FreeHost(free_node(account, (GPU_MILLI,) * free), account.node, account.memory_mib, GPU_MILLI, sharing)


def _devices(node: Node | None, resource: str) -> int:
    """Number of devices that pods may request on the node; 0 if there is no node or no valid number."""
    return (gpu_devices(node, resource) or 0) if node is not None else 0
