"""Which pods need capacity, by their conditions, scheduling gates and requests."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from plimsoll.cluster.pods import (
    PodShare,
    ShareRefusal,
    UnreadableShareError,
    check_declared,
    device_resources_of,
    gated,
    read_share,
    recently_ungated,
    selected_node,
)
from plimsoll.labels import WORKSPACE
from plimsoll.model.api import KAI_NAMESPACES, DemandSettings
from plimsoll.model.cluster import Pod


@dataclass(frozen=True, slots=True)
class DemandPods:
    """In the order of the given pods."""

    shares: tuple[PodShare, ...] = ()
    """Pods that request shares by annotation, which autoscalers ignore, or devices that are parts of GPUs."""
    whole: tuple[PodShare, ...] = ()
    """Pods that request whole devices, for which autoscalers provide nodes by themselves."""
    refused: tuple[ShareRefusal, ...] = ()
    """Pods whose request cannot be read, or is for parts of GPUs that are not declared."""


def demand_pods(
    pods: Iterable[Pod], settings: DemandSettings, gpu_resource: str, overlaid: Collection[str]
) -> DemandPods:
    """The pods that wait for GPUs. For those that request resources in `overlaid`, which NodeOverlays list, Karpenter
    provides nodes by itself."""
    shares: list[PodShare] = []
    whole: list[PodShare] = []
    refused: list[ShareRefusal] = []
    for pod in pods:
        if not pod.node_name and waits(pod, settings):
            try:
                share = read_share(pod, gpu_resource, device_resources_of(pod, settings, gpu_resource))
                if share is None and pod.unschedulable:
                    check_declared(pod, overlaid)
            except UnreadableShareError as error:
                refused.append(ShareRefusal(pod, error.message, error.hint or ""))
                continue
            if share is not None:
                (whole if share.whole else shares).append(PodShare(pod, share))
    return DemandPods(tuple(shares), tuple(whole), tuple(refused))


def waits(pod: Pod, settings: DemandSettings) -> bool:
    """Whether the pod needs capacity from us: a scheduler found no node for it, or the capacity gate holds it or held
    it until just now, so that no scheduler has handled it.

    Pods that do not count: those that are finished or being deleted, those for which a scheduler preempts others, those
    that are being bound (their GPUs count as allocated), those of other schedulers, pods of Workspaces, and pods that
    request capacity.
    """
    return (
        (pod.unschedulable or gated(pod) or recently_ungated(pod))
        and not pod.deleting
        and not pod.finished
        and not pod.nominated_node_name
        and not selected_node(pod)
        and pod.scheduler_name in settings.schedulers
        and not is_ours(pod, settings)
    )


def is_ours(pod: Pod, settings: DemandSettings) -> bool:
    """Whether the pod belongs to a Workspace, or requests capacity for Plimsoll or for KAI's node-scale-adjuster."""
    return WORKSPACE in pod.labels or pod.namespace == settings.namespace or pod.namespace in KAI_NAMESPACES


def uid_of(pod: Pod) -> str:
    """The pod's UID; its namespace and name in a manifest from a file."""
    return pod.uid or f"{pod.namespace}/{pod.name}"
