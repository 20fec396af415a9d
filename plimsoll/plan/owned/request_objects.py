"""What asks for the capacity of demand: trigger pods, CapacityBuffers, ProvisioningRequests and their PodTemplates.

Each carries the label of its demand, so that it is found again after a restart and asked for once.
"""

from typing import Final

from plimsoll.labels import DEMAND, ENVIRONMENT, HEADROOM, SHARD, as_label_value
from plimsoll.model import DemandRef, Snapshot
from plimsoll.model.cluster import Pod
from plimsoll.model.karpenter import CapacityBuffer, PodTemplate, ProvisioningRequest
from plimsoll.model.meta import condition_of
from plimsoll.plan.pods import marked_pods

RequestObject = Pod | PodTemplate | CapacityBuffer | ProvisioningRequest

KINDS: Final = (Pod, PodTemplate, CapacityBuffer, ProvisioningRequest)


def request_objects(snapshot: Snapshot) -> tuple[RequestObject, ...]:
    """Every object that the environment's stacks own for demand or headroom, those under deletion too; by age.

    Only the namespace that the settings name is looked at: whoever puts our labels on a pod elsewhere gets nothing.
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
        and SHARD in thing.labels
        and thing.labels.get(ENVIRONMENT) == environment
        and (DEMAND in thing.labels or HEADROOM in thing.labels)
    ]
    return tuple(sorted(found, key=by_age))


def by_age(thing: RequestObject) -> tuple[str, str]:
    return (thing.creation_timestamp, thing.name)


def demand_of(thing: RequestObject) -> DemandRef:
    """What the labels name."""
    if DEMAND in thing.labels:
        return DemandRef(name=thing.labels[DEMAND])
    return DemandRef(kind="Environment", name=thing.labels.get(ENVIRONMENT, ""))


def signalled(thing: RequestObject) -> str:
    """The reason in the condition PodScheduled of a trigger pod; empty for anything else."""
    condition = condition_of(thing.conditions, "PodScheduled") if isinstance(thing, Pod) else None
    return condition.reason if condition is not None else ""
