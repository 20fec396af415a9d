"""Objects that request capacity for demand: trigger pods, CapacityBuffers, ProvisioningRequests, PodTemplates.

Each has a label with its demand, so that a restarted controller finds it and does not request the capacity again.
"""

from typing import Final

from plimsoll.cluster.pods import marked_pods
from plimsoll.labels import DEMAND, ENVIRONMENT, HEADROOM, as_label_value
from plimsoll.model import DemandRef, Snapshot
from plimsoll.model.cluster import Pod
from plimsoll.model.karpenter import CapacityBuffer, PodTemplate, ProvisioningRequest
from plimsoll.model.meta import condition_of

RequestObject = Pod | PodTemplate | CapacityBuffer | ProvisioningRequest

KINDS: Final = (Pod, PodTemplate, CapacityBuffer, ProvisioningRequest)


def request_objects(snapshot: Snapshot) -> tuple[RequestObject, ...]:
    """The objects that request capacity for demand or headroom of the environment, oldest first.

    Those that are being deleted are among them.

    Only the namespace `spec.demand.namespace` is read: labels on objects in other namespaces have no effect.
    """
    things: list[RequestObject] = [
        *marked_pods(snapshot.pods),
        *snapshot.pod_templates,
        *snapshot.capacity_buffers,
        *snapshot.provisioning_requests,
    ]
    namespace = snapshot.environment.spec.demand.namespace
    environment = as_label_value(snapshot.environment.name)
    found = [
        thing
        for thing in things
        if thing.namespace == namespace
        and thing.labels.get(ENVIRONMENT) == environment
        and (DEMAND in thing.labels or HEADROOM in thing.labels)
    ]
    return tuple(sorted(found, key=by_age))


def by_age(thing: RequestObject) -> tuple[str, str]:
    return (thing.creation_timestamp, thing.name)


def demand_of(thing: RequestObject) -> DemandRef:
    """The demand or Environment that the labels name."""
    if DEMAND in thing.labels:
        return DemandRef(name=thing.labels[DEMAND])
    return DemandRef(kind="Environment", name=thing.labels.get(ENVIRONMENT, ""))


def signalled(thing: RequestObject) -> str:
    """The reason of a trigger pod's condition PodScheduled; empty for other objects."""
    condition = condition_of(thing.conditions, "PodScheduled") if isinstance(thing, Pod) else None
    return condition.reason if condition is not None else ""
