"""Claims: a share pod is annotated with its node and GPU groups before its reservations are created.

From then on the ledger counts the pod there, so that a restarted binder continues where the last one stopped.
"""

from typing import Any

from plimsoll.bind.planning.placement import ShareAssignment
from plimsoll.labels import GPU_GROUP, GPU_GROUP_PREFIX, SELECTED_NODE
from plimsoll.model.cluster import Pod


def claim_patch(pod: Pod, assignment: ShareAssignment) -> dict[str, Any]:
    """A merge patch of exactly this pod, with the group labels as KAI writes them and the node. It removes group labels
    that the pod was created with, such as a copy of another pod."""
    return _patch(
        pod, {**_no_groups(pod), **_group_labels(assignment.groups)}, {SELECTED_NODE: f"{assignment.node}/{pod.uid}"}
    )


def unclaim_patch(pod: Pod) -> dict[str, Any]:
    """A merge patch of exactly this pod that removes the claim."""
    return _patch(pod, _no_groups(pod), {SELECTED_NODE: None})


def claimed(pod: Pod, assignment: ShareAssignment) -> Pod:
    """The pod as the patch leaves it."""
    gone = _no_groups(pod)
    kept = {key: value for key, value in pod.labels.items() if key not in gone}
    return pod.model_copy(
        update={
            "labels": kept | _group_labels(assignment.groups),
            "annotations": {**pod.annotations, SELECTED_NODE: f"{assignment.node}/{pod.uid}"},
        }
    )


def _group_labels(groups: tuple[str, ...]) -> dict[str, str]:
    if len(groups) == 1:
        return {GPU_GROUP: groups[0]}
    return {f"{GPU_GROUP_PREFIX}{group}": group for group in groups}


def _no_groups(pod: Pod) -> dict[str, None]:
    return {key: None for key in pod.labels if key == GPU_GROUP or key.startswith(GPU_GROUP_PREFIX)}


def _patch(pod: Pod, labels: dict[str, Any], annotations: dict[str, Any]) -> dict[str, Any]:
    """A merge patch with the UID and resource version, so that it fails for another pod of that name, and for a pod
    that has changed."""
    return {
        "metadata": {
            "uid": pod.uid,
            "resourceVersion": pod.resource_version,
            "labels": labels,
            "annotations": annotations,
        }
    }
