"""Headroom: CapacityBuffers that the Environment declares. The autoscaler refills them when pods use their nodes."""

from collections.abc import Iterable

from plimsoll.labels import HEADROOM
from plimsoll.model import DemandRef
from plimsoll.model.api import Environment
from plimsoll.model.karpenter import CapacityBuffer
from plimsoll.plan.owned import PlanBuilder, RequestObject
from plimsoll.plan.requests.batches import capacity_buffer, headroom_request, of_headroom, pod_template
from plimsoll.plan.requests.node_request import NodeRequest


def keep_headroom(environment: Environment, objs: Iterable[RequestObject], builder: PlanBuilder) -> set[str]:
    """Adds the missing headroom objects to the Plan; returns the names of the objects to keep.

    A CapacityBuffer with another node shape is deleted first and created again in the next round.
    """
    existing = {each.name: each for each in objs if HEADROOM in each.labels and isinstance(each, CapacityBuffer)}
    taken = {each.name for each in objs if HEADROOM in each.labels}
    owner = DemandRef(kind="Environment", name=environment.name)
    kept = set()
    for headroom in environment.spec.demand.headroom:
        name = f"headroom-{headroom.name}"
        node_request = headroom_request(headroom)
        metadata = of_headroom(environment, headroom, name)
        buffer = existing.get(name)
        if buffer is None:
            if name not in taken:
                reason = "spec.demand.headroom of the Environment declares it"
                builder.create(pod_template(environment, metadata, node_request), owner, reason)
                builder.create(capacity_buffer(metadata, headroom.nodes), owner, reason)
        elif NodeRequest.from_annotations(buffer.annotations) == node_request and not buffer.deleting:
            kept.add(name)
            if buffer.replicas != headroom.nodes:
                reason = f"headroom changed to {headroom.nodes} nodes"
                builder.update(capacity_buffer(metadata, headroom.nodes), owner, reason)
    return kept
