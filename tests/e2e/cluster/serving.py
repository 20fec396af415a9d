"""How many pods of a Workspace serve, at every moment of a time."""

from itertools import dropwhile

from tests.e2e.cluster.conditions import is_ready
from tests.e2e.cluster.kube import Kube

READY_AFTER = "sandbox.plimsoll.dev/ready-after"
"""Annotation of a pod: how long it takes until it is Ready, as a server that loads a model."""


def serving_since(cluster: Kube, revision: int, namespace: str, workspace: str, least: int = 1) -> list[int]:
    """The number of its pods that are Ready and not being deleted, after each change of a pod, from the moment on at
    which the `least` serve: by a watch of all changes since `revision`, before which it had none. It leaves no state
    out."""
    serving, numbers = set[str](), list[int]()
    for event in cluster.changes_since(revision, "v1", "Pod", namespace, f"plimsoll.dev/workspace={workspace}"):
        pod = event["object"]
        serves = event["type"] != "DELETED" and is_ready(pod) and "deletionTimestamp" not in pod["metadata"]
        (serving.add if serves else serving.discard)(pod["metadata"]["name"])
        numbers.append(len(serving))
    return list(dropwhile(least.__gt__, numbers))
