"""Headroom: CapacityBuffers that the Environment declares. The autoscaler refills them when pods use their nodes."""

from collections.abc import Collection, Iterable

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
        if why := _why_none(snapshot, headroom):
            builder.warnings.append(
                f"headroom {headroom.name}: no nodes are kept, because {why}; remove it, or name a type whose GPUs "
                "NVIDIA's device plugin announces, in spec.demand.headroom of the Environment"
            )
            continue
        node_request = headroom_request(headroom, taints.get(headroom.node_pool, ()))
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


def _why_none(snapshot: Snapshot, headroom: Headroom) -> str:
    """Why no such nodes can be kept: a CapacityBuffer does not request their GPUs, as nodes and NodeProfiles say; empty
    if they can."""
    wanted = (headroom.node_pool, headroom.instance_type.casefold())
    nodes = [each for each in snapshot.nodes if (each.labels.get(NODEPOOL), each.instance_type.casefold()) == wanted]
    resource, where = (
        snapshot.environment.spec.gpu_resource,
        f"{headroom.instance_type} in NodePool {headroom.node_pool}",
    )
    if nodes:
        said = [discovery_of(node, resource) for node in nodes]
    else:
        known = [each.status.learned or each.spec for each in snapshot.node_profiles if each.pair == wanted]
        if any(each.claim_devices is not None for each in known):
            return f"pods claim the GPUs of {where}, and a CapacityBuffer has no claims"
        said = [read_discovery(each.labels, each.allocatable, resource) for each in known]
    if any(device.claimable for each in said for device in each.devices):
        return f"pods claim the GPUs of {where}, and a CapacityBuffer has no claims"
    other = next((each.of_vendor for each in said if each.of_vendor is not None), None)
    return f"a CapacityBuffer requests {resource}, and {where} has {other.resource}" if other is not None else ""
