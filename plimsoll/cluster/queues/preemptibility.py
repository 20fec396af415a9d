"""The queue and node pool of a pod, and whether KAI may preempt it, as KAI's podgrouper determines them when it makes
the PodGroup.

A PodGroup says all. Without one, or before there is one, they follow from the pod; labels of the workload that made
the pod are not observed.
"""

from typing import Final

from plimsoll.labels import QUEUE
from plimsoll.model.api import EnvironmentSpec
from plimsoll.model.cluster import Pod
from plimsoll.model.kai import NodePoolLabel, PodGroup
from plimsoll.model.meta import Placement

PREEMPTIBILITY: Final = "kai.scheduler/preemptibility"
"""Label of a pod or its owner: `preemptible`, `non-preemptible` or `semi-preemptible`."""
PRIORITY_CLASS: Final = "priorityClassName"
"""Label of a pod or its owner that takes precedence over the pod's own priority class."""
CLASSES: Final = {"train": 50, "build-preemptible": 75, "build": 100, "inference": 125}
"""KAI's PriorityClasses."""
NON_PREEMPTIBLE_FROM: Final = 100
KNATIVE: Final = "serving.knative.dev/service"
NOTEBOOK: Final = "notebook-name"
"""Labels of pods of a Knative Service and of a Kubeflow Notebook."""
DEFAULT_QUEUE: Final = "default-queue"
DEFAULT_SCHEDULER: Final = "default-scheduler"


def queue_of(pod: Pod, environment: EnvironmentSpec, group: PodGroup | None = None) -> str:
    """The queue of a pod; empty for pods of other schedulers, as in KAI. That of a PodGroup never changes."""
    # Where queues go with the default scheduler, which does not know them, pods of every scheduler may name one.
    known = environment.queue_scheduler != DEFAULT_SCHEDULER
    if known and pod.scheduler_name != environment.queue_scheduler:
        return ""
    if group is not None and group.queue:
        return group.queue
    if not known:
        return pod.labels.get(QUEUE, "")
    return environment.node_pool_label.queue_in(pod.labels) or DEFAULT_QUEUE


def node_pool_of(pod: Pod, label: NodePoolLabel, group: PodGroup | None = None) -> str:
    """KAI's node pool of a pod; empty for that of the scheduler without a shard. That of a PodGroup counts."""
    return label.of((group or pod).labels)


def placed_in_shard(pod: Pod, group: PodGroup | None, environment: EnvironmentSpec, *, sharded: bool) -> Placement:
    """The placement of a pod, with the nodes that its scheduler sees if that is KAI's."""
    scheduler, label = environment.queue_scheduler, environment.node_pool_label
    if pod.scheduler_name != scheduler or scheduler == DEFAULT_SCHEDULER:
        return pod.placement
    node_pool = node_pool_of(pod, label, group)
    return pod.placement.on(label.requirement(node_pool)) if sharded or node_pool else pod.placement


def is_preemptible(pod: Pod, group: PodGroup | None = None) -> bool:
    """Whether KAI may preempt the pod: by its PodGroup's preemptibility, the label, or a priority below 100.

    Semi-preemptible counts as non-preemptible: its core must fit the quota.
    """
    declared = (group.preemptibility if group is not None else "") or pod.labels.get(PREEMPTIBILITY, "").lower()
    if declared in ("preemptible", "non-preemptible", "semi-preemptible"):
        return declared == "preemptible"
    return priority_of(pod, group) < NON_PREEMPTIBLE_FROM


def priority_of(pod: Pod, group: PodGroup | None = None) -> int:
    """The value of the first class that is known: of the PodGroup, the label and the pod; else by kind of workload."""
    for name in (
        group.priority_class if group is not None else "",
        pod.labels.get(PRIORITY_CLASS, ""),
        pod.priority_class,
    ):
        if name in CLASSES:
            return CLASSES[name]
        if name and name == pod.priority_class:
            return pod.priority
    if pod.priority:
        return pod.priority
    if pod.owner_kind in ("ReplicaSet", "Deployment") or KNATIVE in pod.labels:
        return CLASSES["inference"]
    return CLASSES["build" if pod.owner_kind == "Notebook" or NOTEBOOK in pod.labels else "train"]
