"""Headroom: CapacityBuffers that the Environment declares. The autoscaler refills them when pods use their nodes."""

from collections.abc import Collection, Iterable
from typing import NamedTuple

from plimsoll.cluster.catalog import Catalog, counted_by_karpenter
from plimsoll.cluster.pools import Room, idle_nodes
from plimsoll.cluster.profiles import discovery_of, read_discovery
from plimsoll.labels import HEADROOM, NODEPOOL
from plimsoll.model import DemandRef, Snapshot
from plimsoll.model.api import Headroom
from plimsoll.model.karpenter import CapacityBuffer, PodTemplate
from plimsoll.plan.owned import PlanBuilder, RequestObject
from plimsoll.plan.requests.batches import capacity_buffer, headroom_request, of_headroom, pod_template
from plimsoll.plan.requests.node_request import NodeRequest


def keep_headroom(
    snapshot: Snapshot, objs: Iterable[RequestObject], room: Room, taken: Collection[str], builder: PlanBuilder
) -> set[str]:
    """Adds the missing headroom objects to the Plan; returns the names of the objects to keep.

    A CapacityBuffer with another node shape is deleted first and created again in the next round. `room` is what the
    Environment's limits leave beside demand, whose pods will use the nodes and NodeClaims `taken`.
    """
    environment = snapshot.environment
    existing = {obj.name: obj for obj in objs if HEADROOM in obj.labels and isinstance(obj, CapacityBuffer)}
    templates = {obj.name for obj in objs if HEADROOM in obj.labels and isinstance(obj, PodTemplate)}
    owner = DemandRef(kind="Environment", name=environment.name)
    taints = {pool.name: pool.taints for pool in snapshot.node_pools if not pool.deleting}
    kept = set()
    for headroom in environment.spec.demand.headroom:
        name = f"headroom-{headroom.name}"
        if headroom.node_pool not in taints:
            builder.warnings.append(
                f"headroom {headroom.name}: there is no NodePool {headroom.node_pool}; correct "
                "spec.demand.headroom[].nodePool of the Environment"
            )
        asked = _asked(snapshot, headroom)
        if asked.why_none:
            builder.warnings.append(
                f"headroom {headroom.name}: no nodes are kept, because {asked.why_none} (spec.demand.headroom of "
                "the Environment)"
            )
            continue
        node_request = headroom_request(headroom, taints.get(headroom.node_pool, ()), asked.resource)
        # What exists counts against the limits already.
        free_devices = idle_nodes(snapshot, headroom.node_pool, headroom.instance_type, taken)
        idle = [devices or headroom.gpus for devices in free_devices]
        nodes, excess = room.minus(-sum(idle), -len(idle)).fitting(headroom.nodes, headroom.gpus)
        room = room.minus(max(0, nodes * headroom.gpus - sum(idle)), max(0, nodes - len(idle)))
        if excess is not None:
            builder.warnings.append(f"headroom {headroom.name}: {nodes} of {headroom.nodes} nodes are kept: {excess}")
        metadata = of_headroom(environment, headroom, node_request, name)
        buffer = existing.get(name)
        if buffer is None:
            if name not in templates:
                reason = "spec.demand.headroom of the Environment declares it"
                builder.create(pod_template(environment, metadata, node_request), owner, reason)
                builder.create(capacity_buffer(metadata, nodes), owner, reason)
        elif NodeRequest.from_annotations(buffer.annotations) == node_request and not buffer.deleting:
            kept.add(name)
            if name not in templates:
                builder.create(pod_template(environment, metadata, node_request), owner, "it was deleted")
            if buffer.replicas != nodes:
                reason = f"headroom changed to {nodes} nodes"
                builder.update(capacity_buffer(metadata, nodes), owner, reason)
    return kept


class _Asked(NamedTuple):
    """What a CapacityBuffer requests the GPUs of its nodes by."""

    resource: str = ""
    """Empty: the Environment's resource."""
    why_none: str = ""
    """Why no node would come for it, and what to change; empty: some may."""


def _asked(snapshot: Snapshot, headroom: Headroom) -> _Asked:
    """By what nodes, else NodeProfiles, else the catalog say of the type. GPUs of AMD and Intel are requested where
    Karpenter counts them: it would take a node whose GPUs are in use for a free one otherwise."""
    pool, name = headroom.node_pool, headroom.instance_type
    wanted, own = (pool, name.casefold()), snapshot.environment.spec.gpu_resource
    nodes = [each for each in snapshot.nodes if (each.labels.get(NODEPOOL), each.instance_type.casefold()) == wanted]
    known = [each.status.learned or each.spec for each in snapshot.node_profiles if each.pair == wanted and not nodes]
    said = [discovery_of(node, own) for node in nodes]
    said += [read_discovery(each.labels, each.allocatable, own) for each in known]
    claimed = any(device.claimable for each in said for device in each.devices)
    if claimed or any(each.claim_devices is not None for each in known):
        why = f"pods claim the GPUs of {name} in NodePool {pool}, and a CapacityBuffer has no claims"
        return _Asked(why_none=f"{why}; remove it, or name a type whose GPUs a device plugin announces")
    listed = Catalog.builtin().lookup(name) if not said else None
    others = [each.of_vendor for each in (*said, listed) if each is not None]
    resource = next((each.resource for each in others if each is not None), "")
    if resource in ("", own) or _counts(snapshot, headroom, resource):
        return _Asked(resource if resource != own else "")
    why = f"Karpenter is not known to count {resource} of {name} in NodePool {pool}"
    return _Asked(why_none=f"{why}; remove it, or list the resource in a NodeOverlay")


def _counts(snapshot: Snapshot, headroom: Headroom, resource: str) -> bool:
    """Whether Karpenter launches such nodes for pods with the resource."""
    groups = (each.node_class_group for each in snapshot.node_pools if each.name == headroom.node_pool)
    by_itself = any(counted_by_karpenter(group, headroom.instance_type, resource) for group in groups)
    return by_itself or any(resource in each.resources for each in snapshot.node_overlays)
