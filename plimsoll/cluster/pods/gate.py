"""Pods that the capacity gate holds, or held until just now."""

from plimsoll.cluster.pods.group_labels import node_of
from plimsoll.labels import NODEPOOL
from plimsoll.model.api import CAPACITY_GATE, GATE_REMOVED_REASON, DemandSettings
from plimsoll.model.cluster import Pod
from plimsoll.model.meta import condition_of


def gated(pod: Pod) -> bool:
    """Whether the capacity gate is the pod's only scheduling gate."""
    return pod.scheduling_gates == (CAPACITY_GATE,)


def recently_ungated(pod: Pod) -> bool:
    """Whether the pod's gate was removed and no scheduler has handled it since."""
    if GATE_REMOVED_REASON not in pod.annotations or pod.scheduling_gates or pod.node_name:
        return False
    condition = condition_of(pod.conditions, "PodScheduled")
    return condition is None or condition.reason == "SchedulingGated"


def released(pod: Pod) -> bool:
    """Whether the pod's gate was removed and it is on no node yet: nothing keeps its scheduler from giving it what is
    free, whatever was seen of the pod since."""
    # First what few have: this is asked of every pod.
    if GATE_REMOVED_REASON not in pod.annotations:
        return False
    return not (pod.scheduling_gates or pod.deleting or pod.finished or node_of(pod))


def device_resources_of(pod: Pod, settings: DemandSettings, gpu_resource: str) -> tuple[str, ...]:
    """The extended resources whose devices are parts of GPUs if this pod requests them.

    Replicas that keep the name of whole GPUs are such devices for pods that require a NodePool with them, as long as
    the gate keeps the pod from the autoscaler, which takes each for a whole GPU.
    """
    resources = settings.device_resources
    if gpu_resource not in resources:
        return resources
    pools = {each.node_pool for each in settings.shared_devices if each.resource == gpu_resource}
    if (gated(pod) or recently_ungated(pod)) and pod.placement.requires(NODEPOOL, pools):
        return resources
    return tuple(each for each in resources if each != gpu_resource)
