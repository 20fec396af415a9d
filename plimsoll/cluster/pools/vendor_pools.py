"""Whole GPUs of AMD and Intel: whether nodes are requested for pods with them, or an autoscaler sees the pods."""

from collections.abc import Iterator, Mapping
from typing import Final

from plimsoll.cluster.catalog import (
    AWS,
    AZURE,
    CLOUDS,
    Catalog,
    NodeTemplate,
    allows_type,
    counted_by_karpenter,
    label_requirements,
)
from plimsoll.cluster.nodes import index_of
from plimsoll.labels import NODEPOOL, REQUEST, WORKSPACE
from plimsoll.model import Snapshot
from plimsoll.model.api import DemandProvisioner
from plimsoll.model.cluster import VENDOR_RESOURCES
from plimsoll.model.karpenter import NodePool

_WITH_AMD: Final = {
    AWS: ("g4ad.xlarge",),
    AZURE: ("Standard_ND96isr_MI300X_v5", "Standard_NV24ads_V710_v5"),
}
"""Types with GPUs that the provider counts: a NodePool that names no types has such nodes if it allows one of these."""


def planned_vendors(snapshot: Snapshot) -> frozenset[str]:
    """The extended resources of whole GPUs of other vendors for which nodes are requested."""
    said = tuple(_said(snapshot))
    own = snapshot.environment.spec.gpu_resource  # its pods have whole GPUs, whatever their vendor
    having = (each for each in VENDOR_RESOURCES if each != own and any(each in amounts for amounts in said))
    return frozenset(resource for resource in having if not why_left(snapshot, resource))


def why_left(snapshot: Snapshot, resource: str) -> str:
    """Why no nodes are requested for pods with whole GPUs of that resource; empty if they are: a NodePool whose nodes
    no two requests share has them, as nodes or a NodeProfile say, and Karpenter does not see them by itself."""
    if not any(str(amounts.get(resource, 0)) != "0" for amounts in _said(snapshot)):
        return (
            f"no node or NodeProfile of a NodePool with the requirement {{key: {REQUEST}, operator: Exists}} has "
            f"{resource}, nor a type of it in the catalog"
        )
    if snapshot.environment.spec.demand.provisioner is DemandProvisioner.PROVISIONING_REQUEST:
        return (
            f"a ProvisioningRequest requests no nodes with {resource}, and spec.demand.provisioner is "
            "provisioning-request: set it to trigger-pod or capacity-buffer"
        )
    if pool := next((each.name for each in snapshot.node_pools if _counts(each, resource)), ""):
        return f"Karpenter counts {resource} on the instance types of NodePool {pool} by itself"
    if overlay := next((each.name for each in snapshot.node_overlays if resource in each.resources), ""):
        return f"Karpenter sees {resource} by NodeOverlay {overlay}"
    return ""


def _counts(pool: NodePool, resource: str) -> bool:
    """Whether Karpenter launches nodes of the NodePool for pods with the resource by itself."""
    if pool.replicas is not None or pool.deleting:
        return False
    group, required = pool.node_class_group, label_requirements(pool)
    names = pool.instance_types or [
        name
        for name in _WITH_AMD.get(group, ())
        if allows_type(pool, required, name, CLOUDS[group], Catalog.builtin().lookup(name))
    ]
    return any(counted_by_karpenter(group, name, resource) for name in names)


def _requests(pool: NodePool) -> bool:
    scaled = WORKSPACE not in pool.labels and pool.replicas is None and not pool.deleting
    return scaled and REQUEST in NodeTemplate.by(pool).requirements


def _said(snapshot: Snapshot) -> Iterator[Mapping[str, str | int | float]]:
    """What nodes of NodePools whose nodes no two requests share have, had, or have by NodeProfiles or the catalog."""
    pools = {pool.name: pool for pool in snapshot.node_pools if _requests(pool)}
    for known in snapshot.node_profiles:
        if known.spec.node_pool in pools:
            yield known.spec.allocatable
            yield known.status.learned.allocatable if known.status.learned is not None else {}
    listed = (Catalog.builtin().lookup(name) for pool in pools.values() for name in pool.instance_types)
    gpus = (each.of_vendor for each in listed if each is not None)
    yield from ({each.resource: each.count} for each in gpus if each is not None)
    index = index_of(snapshot.nodes)
    for name, pool in sorted(pools.items()):
        types = pool.instance_types or {node.instance_type for node in index.with_label(NODEPOOL, name)}
        # The index knows these while no node changes.
        usual = (index.usual(each, name) for each in types)
        seen = (each[1].of_vendor for each in usual if each is not None)
        yield from ({each.resource: each.announced} for each in seen if each is not None)
