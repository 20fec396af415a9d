"""GPU groups of pods, and reservation pods, by labels. Anyone may write labels."""

from collections.abc import Collection

from plimsoll.labels import GPU_GROUP, GPU_GROUP_PREFIX, SELECTED_NODE
from plimsoll.model.cluster import Pod
from plimsoll.model.tensor_fusion import GPU_IDS


def gpu_groups(pod: Pod) -> tuple[str, ...]:
    """Names of the pod's GPU groups, sorted, without duplicates; empty if it has none.

    TensorFusion has no groups: there they are the UUIDs of the pod's GPUs.
    """
    labels = pod.labels
    if chosen := {*pod.annotations.get(GPU_IDS, "").split(",")} - {""}:
        return tuple(sorted(chosen))
    single = labels.get(GPU_GROUP, "")
    for key in labels:
        if key.startswith(GPU_GROUP_PREFIX):
            break
    else:
        return (single,) if single else ()
    several = (
        name or key.removeprefix(GPU_GROUP_PREFIX) for key, name in labels.items() if key.startswith(GPU_GROUP_PREFIX)
    )
    return tuple(sorted({single, *several} - {""}))


def is_reservation(pod: Pod, namespaces: Collection[str]) -> bool:
    """Whether the pod holds a GPU for a group. Only pods in the reservation namespaces do."""
    return pod.namespace in namespaces and bool(pod.labels.get(GPU_GROUP))


def selected_node(pod: Pod) -> str:
    """The node that the pod is being bound to; empty if it has none, or the annotation is not the binder's: copied from
    another pod, or on a pod with scheduling gates, which are removed only before a pod is scheduled."""
    node, _, uid = pod.annotations.get(SELECTED_NODE, "").rpartition("/")
    return node if uid == pod.uid and not pod.scheduling_gates else ""


def node_of(pod: Pod) -> str:
    """The node that a pod is bound to, or is being bound to; empty if there is none."""
    return pod.node_name or selected_node(pod)
