"""What each Workspace has: NodeClaims, nodes, workloads."""

from collections.abc import Iterable, Mapping, Sequence

from plimsoll.model.snapshot import Snapshot
from plimsoll.model.verdict import Verdict
from plimsoll.model.workspace import Workspace
from plimsoll.plan.node_index import NodeIndex
from plimsoll.plan.ownership import Ownership
from plimsoll.plan.supply import brought_supply
from plimsoll.plan.whole_replicas import Start, whole_replicas


class Holdings:
    """Answers for the Workspaces of one snapshot."""

    def __init__(self, snapshot: Snapshot, verdicts: Sequence[Verdict]) -> None:
        self.auto_provisioning = snapshot.environment.spec.auto_provisioning
        self.ownership = Ownership(snapshot)
        nodes = NodeIndex(snapshot.nodes)
        self.nodes = nodes.by_name
        self._brought: Mapping[tuple[str, str], tuple[str, ...]] = {}
        self._starts: Mapping[tuple[str, str], Start] = {}
        if self.auto_provisioning:
            targets = {
                (verdict.workspace.namespace, verdict.workspace.name): verdict.target_node_count or 0
                for verdict in verdicts
                if verdict.accepted
            }
            self._brought = brought_supply(snapshot, nodes, targets)
        else:
            self._starts = whole_replicas(snapshot, verdicts, nodes, self.ownership)

    def brought(self, workspace: Workspace) -> tuple[str, ...]:
        """Nodes that were there before and count for the Workspace, where nodes are provisioned."""
        return self._brought.get(workspace.key, ())

    def start(self, workspace: Workspace) -> Start | None:
        """How many replicas may start, where they span brought nodes."""
        return self._starts.get(workspace.key)

    def ready_nodes(self, names: Iterable[str]) -> list[str]:
        """Those of the names that stand for a usable node, sorted."""
        return sorted(name for name in set(names) if name in self.nodes and self.nodes[name].usable)
