"""Pods that the capacity gate holds, or held until just now."""

from plimsoll.model.api import CAPACITY_GATE, GATE_REMOVED_REASON
from plimsoll.model.cluster import Pod
from tests.builders import a_waiting_pod


def held(pod: Pod, *gates: str) -> Pod:
    """The pod with the gate, or with these gates."""
    return _pod(pod, scheduling_gates=gates or (CAPACITY_GATE,))


def released(pod: Pod) -> Pod:
    """The pod once its gate was removed and before a scheduler has handled it."""
    return _pod(
        pod, scheduling_gates=(), annotations={**pod.annotations, GATE_REMOVED_REASON: "its GPUs are free on n"}
    )


def _pod(pod: Pod, **changes: object) -> Pod:
    waiting = a_waiting_pod(pod.name, reason="SchedulingGated")
    return pod.model_copy(update={"conditions": waiting.conditions, **changes})
