"""Whether KAI may take a pod's GPUs back: work that it may not must fit the quota of its queue."""

from typing import Final

from plimsoll.model.cluster import Pod

PREEMPTIBILITY: Final = "kai.scheduler/preemptibility"
"""Label of a pod or its owner: `preemptible`, `non-preemptible` or `semi-preemptible`."""
PRIORITY_CLASS: Final = "priorityClassName"
"""Label of a pod or its owner that KAI takes before the pod's own class."""

CLASSES: Final = {"train": 50, "build-preemptible": 75, "build": 100, "inference": 125}
"""KAI's PriorityClasses."""
NON_PREEMPTIBLE_FROM: Final = 100


def is_preemptible(pod: Pod) -> bool:
    """By the label of preemptibility, else by the priority: that of KAI's class where the label names one.

    What is preemptible in part counts as not: its core has to fit the quota.
    """
    said = pod.labels.get(PREEMPTIBILITY, "").lower()
    if said in ("preemptible", "non-preemptible", "semi-preemptible"):
        return said == "preemptible"
    return CLASSES.get(pod.labels.get(PRIORITY_CLASS, ""), pod.priority) < NON_PREEMPTIBLE_FROM
