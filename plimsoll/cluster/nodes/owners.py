"""For whom nodes were requested, by labels that tenants cannot write, and by the statuses of Workspaces."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from plimsoll.labels import (
    DEMAND,
    OWNER_NAMESPACE,
    OWNER_QUEUE,
    WORKSPACE,
    WORKSPACE_NAMESPACE,
    as_label_value,
)
from plimsoll.model import Snapshot

SEVERAL: Final = "Several"
"""Value of a label of an owner where several share the node: no namespace and no KAI queue has a capital letter."""


class NodeOwner(NamedTuple):
    """Each empty where it is not known, or there is none."""

    namespace: str = ""
    queue: str = ""
    workspace: str = ""
    demand: str = ""
    """Name of the GPUDemand."""

    def __str__(self) -> str:
        """Such as `GPUDemand a-l4-1f2e3d4c5b in namespace team-a, queue a`; empty if nothing is known."""
        what = f"Workspace {self.workspace}" if self.workspace else f"GPUDemand {self.demand}" if self.demand else ""
        where = f"namespace {self.namespace}" if self.namespace else ""
        found = " in ".join(filter(None, (what, where)))
        return ", ".join(filter(None, (found, f"queue {self.queue}" if self.queue else "")))


def owner_labels(namespaces: Iterable[str], queues: Iterable[str], demands: Iterable[str] = ()) -> dict[str, str]:
    """The labels of a node that was requested for these; none of what is empty."""
    values = {OWNER_NAMESPACE: namespaces, OWNER_QUEUE: queues, DEMAND: demands}
    found = {key: sorted(set(names) - {""}) for key, names in values.items()}
    return {key: as_label_value(names[0]) if len(names) == 1 else SEVERAL for key, names in found.items() if names}


def owner_in(labels: Mapping[str, str]) -> NodeOwner:
    """The owner that labels of a node or NodeClaim name."""
    return NodeOwner(
        namespace=labels.get(OWNER_NAMESPACE) or labels.get(WORKSPACE_NAMESPACE, ""),
        queue=labels.get(OWNER_QUEUE, ""),
        workspace=labels.get(WORKSPACE, ""),
        demand=labels.get(DEMAND, ""),
    )


def node_owners(snapshot: Snapshot) -> dict[str, NodeOwner]:
    """By node, of those whose owner is known: by the labels of the node and of its NodeClaim, which Karpenter copies to
    the node when it registers, else by the Workspace that lists it as one of its nodes."""
    found = {
        name: NodeOwner(workspace.namespace, workspace.spec.queue or "", workspace.name)
        for workspace in snapshot.workspaces
        for name in workspace.status.worker_nodes
    }
    claims = {claim.node_name: claim.labels for claim in snapshot.node_claims if claim.node_name}
    for node in snapshot.nodes:
        owner = owner_in({**claims.get(node.name, {}), **node.labels})
        if any(owner):
            found[node.name] = owner
    return found
