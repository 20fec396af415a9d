"""Nodes of an autoscaler that pods cannot use yet, their NodeClaims, and the free resources of these."""

from collections.abc import Iterable, Sequence
from typing import Final

from plimsoll.cluster.profiles import NodeProfile
from plimsoll.labels import INSTANCE_TYPE, NODEPOOL, WORKSPACE
from plimsoll.model import Snapshot
from plimsoll.model.cluster import VENDOR_RESOURCES, Node
from plimsoll.model.karpenter import NodeClaim
from plimsoll.model.meta import EPHEMERAL_STORAGE
from plimsoll.packing import GPU_MILLI, less
from plimsoll.packing.nodes import FreeNode
from plimsoll.quantity import amount_in, parse_cpu_milli, parse_devices, parse_memory_mib

UNREGISTERED: Final = "karpenter.sh/unregistered"
"""Taint of a node that Karpenter has not registered yet."""
_STARTUP_TAINT: Final = "startup-taint.cluster-autoscaler.kubernetes.io/"
"""Prefix of the taints that Cluster Autoscaler takes for startup taints."""


def starting_nodes(snapshot: Snapshot) -> frozenset[str]:
    """Names of nodes that carry a startup taint, or that are not registered. Such a node stands for its NodeClaim,
    whatever it has allocatable: pods need not tolerate a startup taint, and wait until it is removed.

    As in Karpenter, no taint of an initialized node is a startup taint.
    """
    tainted = [node for node in snapshot.nodes if node.taints]
    if not tainted:
        return frozenset()
    claims = {claim.node_name: claim.startup_taints for claim in snapshot.node_claims if not claim.initialized}
    return frozenset(
        node.name
        for node in tainted
        for taint in node.taints
        if taint.key == UNREGISTERED
        or taint.key.startswith(_STARTUP_TAINT)
        or (taint.key, taint.effect) in claims.get(node.name, ())
    )


def unready_claims(snapshot: Snapshot, resource: str) -> list[NodeClaim]:
    """NodeClaims whose nodes pods cannot use yet, oldest first. A node can be Ready before its devices are
    allocatable."""
    claims = [claim for claim in snapshot.node_claims if WORKSPACE not in claim.labels and not claim.deleting]
    if not claims:
        return []
    ready = {node.name for node in snapshot.nodes if node.ready and _has_devices(node, resource)}
    ready -= starting_nodes(snapshot)
    left = (claim for claim in claims if claim.node_name not in ready)
    return sorted(left, key=lambda claim: (claim.creation_timestamp, claim.name))


def _has_devices(node: Node, resource: str) -> bool:
    """Whether it has devices of the vendor: GPUs, replicas with another name, or MIG slices; or of a driver."""
    vendor = f"{resource.partition('/')[0]}/"
    announced = any(
        (name.startswith(vendor) or name in VENDOR_RESOURCES) and str(amount) != "0"
        for name, amount in node.allocatable.items()
    )
    return announced or bool(node.published.kinds)


def free_on_claims(
    claims: Iterable[NodeClaim], shapes: Sequence[NodeProfile], resource: str
) -> Iterable[tuple[FreeNode, NodeProfile]]:
    """Free resources of NodeClaims with known shapes, beyond the pods that they were created for.

    NodeClaims whose GPUs will be allocatable as shared devices are left out: each counts as the node of the request
    that it was created for.
    """
    by_name = {shape.name: shape for shape in shapes}
    for claim in claims:
        shape = by_name.get(f"{claim.labels.get(NODEPOOL, '')}/{_instance_type(claim)}")
        if shape is not None and not shape.device.resource and not claim.deleting and WORKSPACE not in claim.labels:
            spare = _spare(claim, shape, resource)
            if spare is not None:
                yield spare, shape


def _instance_type(claim: NodeClaim) -> str:
    """The launched instance type, or the only allowed one."""
    launched = claim.labels.get(INSTANCE_TYPE)
    if launched:
        return launched
    return claim.instance_types[0] if len(claim.instance_types) == 1 else ""


def _spare(claim: NodeClaim, shape: NodeProfile, resource: str) -> FreeNode | None:
    """What the NodeClaim's pods leave free; None if that is no GPU."""
    needed = claim.requests
    gpus = shape.gpus - amount_in(needed, resource, parse_devices)
    if gpus <= 0:
        return None
    # A NodeClaim's requests include those of DaemonSets.
    cpu_milli = min(shape.cpu_milli, max(0, shape.node_cpu_milli - amount_in(needed, "cpu", parse_cpu_milli)))
    memory_mib = min(shape.memory_mib, max(0, shape.node_memory_mib - amount_in(needed, "memory", parse_memory_mib)))
    storage_mib = less(
        shape.storage_mib, max(0, amount_in(needed, EPHEMERAL_STORAGE, parse_memory_mib) - shape.overhead.storage_mib)
    )
    pods = less(shape.pods, max(0, amount_in(needed, "pods", parse_devices) - shape.overhead.pods))
    free = (GPU_MILLI,) * gpus
    return FreeNode(claim.name, shape.device.product, free, cpu_milli, memory_mib, pods, storage_mib=storage_mib)
