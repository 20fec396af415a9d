"""What the capacity gate has done to a pod."""

from plimsoll.model.api import CAPACITY_GATE, LIFTED
from plimsoll.model.cluster import Pod
from plimsoll.model.meta import condition_of


def gated(pod: Pod) -> bool:
    """Whether our gate alone keeps the pod from its scheduler."""
    return pod.scheduling_gates == (CAPACITY_GATE,)


def just_lifted(pod: Pod) -> bool:
    """Whether its gate was lifted and no scheduler has looked at it since."""
    if LIFTED not in pod.annotations or pod.scheduling_gates or pod.node_name:
        return False
    condition = condition_of(pod.conditions, "PodScheduled")
    return condition is None or condition.reason == "SchedulingGated"
