"""Supply that is used before new nodes are requested: free resources of nodes and of NodeClaims."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from plimsoll.cluster.ledger import GpuAccount, free_node
from plimsoll.cluster.nodes import gpu_devices, index_of
from plimsoll.cluster.pools import free_on_claims, starting_nodes
from plimsoll.cluster.profiles import NodeProfile, Source, discovery_of
from plimsoll.labels import MIG_PREFIX, NODEPOOL, WORKSPACE
from plimsoll.model import Snapshot
from plimsoll.model.api import DeviceSharing, EnvironmentSpec
from plimsoll.model.cluster import VENDOR_RESOURCES, Device, Division, Node
from plimsoll.packing import GPU_MILLI
from plimsoll.packing.nodes import FreeNode

Supplied = tuple[FreeNode, NodeProfile]
"""Free resources of a node or a NodeClaim, where the kind is the GPU product, and what that node offers."""


class Supply:
    """Reads the supply of consecutive snapshots. Unchanged nodes are not read again."""

    def __init__(self) -> None:
        self._accounts: Mapping[str, GpuAccount] = {}
        self._nodes: dict[str, Supplied] = {}

    def of(
        self,
        snapshot: Snapshot,
        accounts: Mapping[str, GpuAccount],
        shapes: Sequence[NodeProfile],
        failed_claims: Collection[str],
    ) -> Mapping[str, Supplied]:
        """Supply by the name of the node or NodeClaim. `accounts` are by the name of their node; `failed_claims` are
        names of NodeClaims that are no longer expected."""
        before, self._accounts = self._accounts, accounts
        if accounts is not before:
            for name in self._nodes.keys() - accounts.keys():
                del self._nodes[name]
            for name in [name for name, account in accounts.items() if before.get(name) is not account]:
                self._nodes.pop(name, None)
                found = _of_node(accounts[name], snapshot.environment.spec)
                if found is not None:
                    self._nodes[name] = found
        starting = starting_nodes(snapshot)
        usable = self._nodes
        if starting:
            usable = dict(usable)
            for name in starting:
                usable.pop(name, None)
        claims = [claim for claim in snapshot.node_claims if claim.name not in failed_claims]
        if not claims:
            return usable
        nodes, resource = index_of(snapshot.nodes).by_name, snapshot.environment.spec.gpu_resource
        in_flight = [
            claim
            for claim in claims
            if claim.node_name in starting or not _devices(nodes.get(claim.node_name), resource)
        ]
        spares = free_on_claims(in_flight, shapes, resource)
        return {free.name: (free, profile) for free, profile in spares} | usable


def _of_node(account: GpuAccount, spec: EnvironmentSpec) -> Supplied | None:
    if not account.node.usable or account.node.troubled or WORKSPACE in account.node.labels:
        return None
    if account.node.unhealthy(spec.broken_by):
        return None
    if account.driver:
        return _of_claims(account, spec.gpu_resource)
    if account.vendor_resource:
        return _of_vendor(account)
    sharing = spec.demand.sharing_of(account.node.labels.get(NODEPOOL, ""), account.node.instance_type)
    if sharing.resource:
        return _of_shared(account, sharing, spec.gpu_resource)
    milli = account.likely_free_milli
    members = [each for group in account.groups for each in group.members]
    schedulers = sorted({each.pod.scheduler_name for each in members})
    if len(schedulers) > 1:  # it is not known here whose shares use which of the GPUs
        milli = tuple(free if free == GPU_MILLI else 0 for free in milli)
    if not (account.shareable and account.kind and any(milli)):
        return None
    device = account.device if account.memory_mib else replace(account.device, memory_mib=0)
    free = replace(free_node(account, milli), scheduler=schedulers[0] if len(schedulers) == 1 else "")
    return _supplied(account.node, device, free)


def _of_shared(account: GpuAccount, sharing: DeviceSharing, gpu_resource: str) -> Supplied | None:
    """Supply of a node whose GPUs are allocatable as several devices each. As in the scheduler, the devices of the node
    count together."""
    left = account.free_gpus if sharing.resource == gpu_resource else account.devices_of(sharing.resource).free
    if left <= 0:
        return None
    division = Division.MIG if sharing.resource.startswith(MIG_PREFIX) else Division.TIME_SLICING
    device = replace(account.device, division=division, replicas=sharing.per_gpu, resource=sharing.resource, profile="")
    free = free_node(account, (GPU_MILLI,) * left)
    return _supplied(account.node, device, free)


def _of_vendor(account: GpuAccount) -> Supplied | None:
    """Supply of a node with whole GPUs of another vendor."""
    if account.vendor_resource not in VENDOR_RESOURCES or account.device.division is not Division.WHOLE:
        return None
    free = (GPU_MILLI,) * account.free_gpus
    return _supplied(account.node, account.device, free_node(account, free)) if free else None


def _of_claims(account: GpuAccount, gpu_resource: str) -> Supplied | None:
    """Supply of a node whose GPUs pods get by claims. Unlike ones serve none, and say so."""
    device = discovery_of(account.node, gpu_resource).claimed or _unlike(account.device)
    if not any(account.free_milli):
        return None
    if device.claimable is not None:
        device = replace(device, claimable=account.node.published.groups_left(device.claimable))
    return _supplied(account.node, device, free_node(account, account.free_milli))


def _unlike(device: Device) -> Device:
    claimable = device.claimable
    assert claimable is not None
    what = "a fixed configuration of MIG" if device.division is Division.MIG else "unlike ones beside them"
    return replace(device, claimable=replace(claimable, special=claimable.special or what))


def _supplied(node: Node, device: Device, free: FreeNode) -> Supplied:
    """Of a node that exists, with its devices as pods request them."""
    profile = NodeProfile(
        node_pool=node.labels.get(NODEPOOL, ""),
        weight=0,
        instance_type=node.instance_type,
        device=device,
        cpu_milli=free.cpu_milli,
        memory_mib=free.memory_mib,
        storage_mib=free.storage_mib,
        taints=node.taints,
        labels=node.labels,
        pods=free.pods,
        source=Source.LIVE,
        node=node.name,
    )
    return free, profile


def _devices(node: Node | None, resource: str) -> int:
    """Number of devices that pods may request on the node; 0 if there is no node or no valid number."""
    return (gpu_devices(node, resource) or 0) if node is not None else 0
