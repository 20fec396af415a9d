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
    objs: list[RequestObject] = [
        *marked_pods(snapshot.pods),
        *snapshot.pod_templates,
        *snapshot.capacity_buffers,
        *snapshot.provisioning_requests,
    ]
    namespace = snapshot.environment.spec.demand.namespace
    environment = as_label_value(snapshot.environment.name)
    found = [
        obj
        for obj in objs
        if obj.namespace == namespace
        and obj.labels.get(ENVIRONMENT) == environment
        and (DEMAND in obj.labels or HEADROOM in obj.labels)
    ]
    return tuple(sorted(found, key=by_age))


def by_age(obj: RequestObject) -> tuple[str, str]:
    return (obj.creation_timestamp, obj.name)


def demand_of(obj: RequestObject) -> DemandRef:
    """The demand or Environment that the labels name."""
    if DEMAND in obj.labels:
        return DemandRef(name=obj.labels[DEMAND])
    return DemandRef(kind="Environment", name=obj.labels.get(ENVIRONMENT, ""))


def signalled(obj: RequestObject) -> str:
    """The reason of a trigger pod's condition PodScheduled; empty for other objects."""
    condition = condition_of(obj.conditions, "PodScheduled") if isinstance(obj, Pod) else None
    return condition.reason if condition is not None else ""
