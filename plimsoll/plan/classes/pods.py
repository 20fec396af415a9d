"""Which pods are demand, by their conditions, gates and requests."""

from collections.abc import Iterable
from dataclasses import dataclass

from plimsoll.labels import WORKSPACE
from plimsoll.model.api import CAPACITY_GATE, KAI_NAMESPACES, LIFTED, DemandSettings
from plimsoll.model.cluster import Pod
from plimsoll.model.meta import condition_of
from plimsoll.plan.pods import PodShare, ShareRefusal, UnreadableShareError, read_share, selected_node


def gated(pod: Pod) -> bool:
    """Whether our gate alone keeps the pod from its scheduler."""
    return pod.scheduling_gates == (CAPACITY_GATE,)


def just_lifted(pod: Pod) -> bool:
    """Whether its gate was lifted and no scheduler has looked at it since."""
    if LIFTED not in pod.annotations or pod.scheduling_gates or pod.node_name:
        return False
    condition = condition_of(pod.conditions, "PodScheduled")
    return condition is None or condition.reason == "SchedulingGated"


@dataclass(frozen=True, slots=True)
class DemandPods:
    """In the order of the pods that were given."""

    shares: tuple[PodShare, ...] = ()
    """Shares by annotation, which no autoscaler sees."""
    whole: tuple[PodShare, ...] = ()
    """Whole devices, which every autoscaler sees by itself."""
    refused: tuple[ShareRefusal, ...] = ()
    """Requests that cannot be read."""


def demand_pods(pods: Iterable[Pod], settings: DemandSettings, gpu_resource: str) -> DemandPods:
    """The pods among these that wait for GPUs of the cluster."""
    shares: list[PodShare] = []
    whole: list[PodShare] = []
    refused: list[ShareRefusal] = []
    for pod in pods:
        if not pod.node_name and waits(pod, settings):
            try:
                share = read_share(pod, gpu_resource)
            except UnreadableShareError as error:
                refused.append(ShareRefusal(pod, error.message, error.hint or ""))
                continue
            if share is not None:
                (whole if share.whole else shares).append(PodShare(pod, share))
    return DemandPods(tuple(shares), tuple(whole), tuple(refused))


def waits(pod: Pod, settings: DemandSettings) -> bool:
    """Whether a scheduler said that the pod fits nowhere, and its place is for us to provide.

    So it is with a pod that the capacity gate holds, or held until just now: no scheduler has looked at it.

    Not so for pods that end or go, those for which another is being preempted, those that are about to be bound, whose
    GPUs are taken already, those of schedulers that are not served, and our own: pods of Workspaces, and what asks for
    capacity itself.
    """
    return (
        (pod.unschedulable or gated(pod) or just_lifted(pod))
        and not pod.deleting
        and not pod.finished
        and not pod.nominated_node_name
        and not selected_node(pod)
        and pod.scheduler_name in settings.schedulers
        and not is_ours(pod, settings)
    )


def is_ours(pod: Pod, settings: DemandSettings) -> bool:
    """Whether the pod is one of a Workspace, or was made to ask for capacity: by us, or by KAI's adjuster."""
    return WORKSPACE in pod.labels or pod.namespace == settings.namespace or pod.namespace in KAI_NAMESPACES


def uid_of(pod: Pod) -> str:
    """What tells a pod from a later one of the same name; in a manifest from a file, its name."""
    return pod.uid or f"{pod.namespace}/{pod.name}"
