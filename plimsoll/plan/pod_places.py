"""Where the pods of Workspaces are."""

from collections.abc import Container, Sequence
from functools import cached_property

from plimsoll.model.labels import WORKSPACE, WORKSPACE_NAMESPACE, as_label_value
from plimsoll.model.pod import Pod
from plimsoll.model.workspace import Workspace, WorkspaceRef


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
        """Names of the nodes on which the Workspace has pods."""
        return frozenset(pod.node_name for pod in self._of(workspace.ref))

    def on(self, nodes: Container[str], owner: WorkspaceRef) -> list[Pod]:
        """The Workspace's pods on these nodes, by name."""
        return sorted((pod for pod in self._of(owner) if pod.node_name in nodes), key=lambda pod: pod.name)

    def _of(self, owner: WorkspaceRef) -> list[Pod]:
        return self._by_owner.get((as_label_value(owner.namespace), as_label_value(owner.name)), [])
