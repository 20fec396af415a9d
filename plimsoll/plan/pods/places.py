"""Where the pods of Workspaces are."""

from collections.abc import Container, Sequence
from functools import cached_property
from typing import Final

from plimsoll.labels import WORKSPACE, WORKSPACE_NAMESPACE, as_label_value
from plimsoll.model.api import Workspace, WorkspaceRef
from plimsoll.model.cluster import Pod

_REPLICA: Final = ("leaderworkerset.sigs.k8s.io/group-index", "apps.kubernetes.io/pod-index")
"""Labels of pods that have a number: a LeaderWorkerSet or a StatefulSet that shrinks ends the highest."""


class PodPlaces:
    """Pods of Workspaces that are on a node and stay there; sorted out when they are first asked for."""

    def __init__(self, pods: Sequence[Pod]) -> None:
        self._pods = pods

    @cached_property
    def _by_owner(self) -> dict[tuple[str, str], list[Pod]]:
        found: dict[tuple[str, str], list[Pod]] = {}
        for pod in self._pods:
            if pod.node_name and WORKSPACE in pod.labels and not (pod.finished or pod.deleting):
                owner = (pod.labels.get(WORKSPACE_NAMESPACE, ""), pod.labels[WORKSPACE])
                found.setdefault(owner, []).append(pod)
        return found

    def nodes_of(self, workspace: Workspace) -> frozenset[str]:
        """Names of the nodes on which the Workspace has pods, but for those of replicas that it does not want."""
        return frozenset(pod.node_name for pod in self._of(workspace.ref) if _replica(pod) < workspace.replicas)

    def on(self, nodes: Container[str], owner: WorkspaceRef) -> list[Pod]:
        """The Workspace's pods on these nodes, by name."""
        return sorted((pod for pod in self._of(owner) if pod.node_name in nodes), key=lambda pod: pod.name)

    def _of(self, owner: WorkspaceRef) -> list[Pod]:
        return self._by_owner.get((as_label_value(owner.namespace), as_label_value(owner.name)), [])


def _replica(pod: Pod) -> int:
    """The number of the pod's replica; -1 where replicas have none."""
    number = next((pod.labels[label] for label in _REPLICA if label in pod.labels), "")
    return int(number) if number.isdecimal() else -1
