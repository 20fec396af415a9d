"""Idle nodes: an autoscaler fills a CapacityBuffer with them before it creates others."""

from collections.abc import Collection

from plimsoll.cluster.nodes import gpu_devices
from plimsoll.cluster.pods import nodes_in_use
from plimsoll.cluster.pools.launching import unready_claims
from plimsoll.labels import NODEPOOL
from plimsoll.model import Snapshot


def idle_nodes(snapshot: Snapshot, pool: str, instance_type: str, taken: Collection[str]) -> tuple[int, ...]:
    """GPU devices of each node of the type in the NodePool whose GPUs no pod uses; 0 where its NodeClaim is not Ready.

    Nodes and NodeClaims in `taken` are left out.
    """
    resource = snapshot.environment.spec.gpu_resource
    claims = [
        claim
        for claim in unready_claims(snapshot, resource)
        if claim.labels.get(NODEPOOL) == pool and instance_type in claim.possible_types and claim.name not in taken
    ]
    launching = {claim.node_name for claim in claims}
    nodes = {
        node.name: gpu_devices(node, resource) or 0
        for node in snapshot.nodes
        if node.labels.get(NODEPOOL) == pool and node.instance_type == instance_type and node.usable
    }
    busy = nodes_in_use(snapshot.pods, nodes, resource).union(launching, taken)
    return (*(devices for name, devices in nodes.items() if name not in busy), *(0 for _ in claims))
