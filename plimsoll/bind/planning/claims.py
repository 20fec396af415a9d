"""A claim: what is written on a share pod once its place is chosen, before anything is made for it.

From then on the ledger counts it there, so a binder that is killed goes on where it was.
"""

from typing import Any

from plimsoll.bind.planning.placement import ShareSpot
from plimsoll.labels import GPU_GROUP, GPU_GROUP_PREFIX, SELECTED_NODE
from plimsoll.model.cluster import Pod


def claim_patch(pod: Pod, spot: ShareSpot) -> dict[str, Any]:
    """A merge patch of this very pod: the group labels as KAI writes them, and the node. Labels of groups that the
    pod brought along, as a copy of another one does, go."""
    return _patch(pod, {**_no_groups(pod), **_group_labels(spot.groups)}, {SELECTED_NODE: f"{spot.node}/{pod.uid}"})


def unclaim_patch(pod: Pod) -> dict[str, Any]:
    """A merge patch of this very pod that takes the claim off."""
    return _patch(pod, _no_groups(pod), {SELECTED_NODE: None})


def claimed(pod: Pod, spot: ShareSpot) -> Pod:
    """The pod as the patch leaves it."""
    return pod.model_copy(
        update={
            "labels": without_groups(pod).labels | _group_labels(spot.groups),
            "annotations": {**pod.annotations, SELECTED_NODE: f"{spot.node}/{pod.uid}"},
        }
    )


def without_groups(pod: Pod) -> Pod:
    """The pod in no group."""
    gone = _no_groups(pod)
    return pod.model_copy(update={"labels": {key: value for key, value in pod.labels.items() if key not in gone}})


def _group_labels(groups: tuple[str, ...]) -> dict[str, str]:
    if len(groups) == 1:
        return {GPU_GROUP: groups[0]}
    return {f"{GPU_GROUP_PREFIX}{group}": group for group in groups}


def _no_groups(pod: Pod) -> dict[str, None]:
    return {key: None for key in pod.labels if key == GPU_GROUP or key.startswith(GPU_GROUP_PREFIX)}


def _patch(pod: Pod, labels: dict[str, Any], annotations: dict[str, Any]) -> dict[str, Any]:
    """The UID and the version make it fail on another pod of the name, and on one that has changed."""
    return {
        "metadata": {
            "uid": pod.uid,
            "resourceVersion": pod.resource_version,
            "labels": labels,
            "annotations": annotations,
        }
    }
