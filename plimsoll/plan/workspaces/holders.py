"""Who has a node, or uses its GPUs, for people."""

from collections.abc import Sequence

from plimsoll.labels import WORKSPACE, WORKSPACE_NAMESPACE
from plimsoll.model import Verdict
from plimsoll.model.api import Workspace
from plimsoll.plan.view import ClusterView
from plimsoll.plan.workspaces.holdings import Holdings
from plimsoll.text import counted


class Holders:
    """Of the nodes of one snapshot."""

    def __init__(self, view: ClusterView, verdicts: Sequence[Verdict], holdings: Holdings) -> None:
        snapshot = view.observed
        self._resource = snapshot.environment.spec.gpu_resource
        self._usage = view.usage
        self._nodes = holdings.nodes
        self._by_node: dict[str, list[str]] = {}
        for verdict in verdicts:
            for name in verdict.allocated_nodes:
                self._by_node.setdefault(name, []).append(f"Workspace {verdict.workspace}")
        for workspace in snapshot.workspaces:
            for name in holdings.brought(workspace):
                self._by_node.setdefault(name, []).append(f"Workspace {workspace.ref}")

    def of(self, name: str, workspace: Workspace) -> tuple[str, ...]:
        """Workspaces that the node is given to or was made for, then pods of others than `workspace`; sorted."""
        labels = self._nodes[name].labels
        made_for = f"Workspace {labels.get(WORKSPACE_NAMESPACE, '')}/{labels[WORKSPACE]}" if WORKSPACE in labels else ""
        given = {*self._by_node.get(name, ()), *([made_for] if made_for else ())}
        pods = [
            f"pod {use.pod}" + (f" ({counted(use.devices, 'device')})" if use.devices else "")
            for use in self._usage.others(name, workspace, self._resource)
        ]
        return (*sorted(given), *pods)
