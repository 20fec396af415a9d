"""Replicas that span nodes start whole or not at all, on nodes that Workspaces share.

A scheduler places pods one by one. On three nodes, two Workspaces whose replicas take two nodes each could end with one
pod too few each, forever. Therefore a replica starts only if every started Workspace still finds room for all of its
pods, whichever nodes the scheduler chooses for the pods that are not placed yet.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from plimsoll.model import Verdict
from plimsoll.model.api import Workspace
from plimsoll.plan.view import ClusterView
from plimsoll.plan.workspaces.workload import LEADER_WORKER_SET

Key = tuple[str, str]
"""(namespace, name)"""
Nodes = frozenset[str]


class Start(NamedTuple):
    """How many replicas of a Workspace may exist."""

    replicas: int
    per_replica: int
    free: int
    """Usable nodes for the Workspace without pods, before this round starts any replica."""


def whole_replicas(view: ClusterView, verdicts: Sequence[Verdict]) -> dict[Key, Start]:
    """The replicas that may exist, for each accepted Workspace on existing nodes whose replicas span several nodes.

    Never fewer than exist, never more than declared. Older Workspaces choose first; one that cannot start blocks no
    other.
    """
    accepted = {
        (verdict.workspace.namespace, verdict.workspace.name): verdict for verdict in verdicts if verdict.accepted
    }
    if not any((verdict.per_replica_node_count or 1) > 1 for verdict in accepted.values()):
        return {}
    room = _Room(view)
    spanning = []
    for workspace in view.by_age:
        verdict = accepted.get(workspace.key)
        workloads = [workload for workload in view.ownership.workloads_of(workspace) if not workload.deleting]
        running = sum(workload.replicas for workload in workloads)
        wanted = 0 if workspace.deleting or verdict is None or workspace.spec.inference is None else workspace.replicas
        per_replica = (verdict.per_replica_node_count or 1) if verdict is not None else 1
        nodes = room.nodes_of(workspace, verdict)
        if verdict is not None and wanted and per_replica > 1:
            groups = (workload.replicas for workload in workloads if workload.kind == LEADER_WORKER_SET)
            started = min(sum(groups), wanted)
            room.add_unplaced(workspace, nodes, started * per_replica)
            spanning.append((workspace, nodes, per_replica, started, startable(workspace, verdict, started)))
        else:
            # One pod per replica: created at once, except on nodes that other Workspaces have.
            more = startable(workspace, verdict, running) if wanted and verdict is not None else 0
            room.add_unplaced(workspace, nodes, max(running, more))
    starts = {}
    for workspace, nodes, per_replica, started, wanted in spanning:
        free = room.free(nodes)
        most = min(wanted - started, free // per_replica)
        more = next((n for n in range(most, 0, -1) if room.has_room(nodes, n * per_replica)), 0)
        room.add(nodes, more * per_replica)
        starts[workspace.key] = Start(started + more, per_replica, free)
    return starts


def startable(workspace: Workspace, verdict: Verdict, running: int) -> int:
    """The replicas that the allocated nodes allow: those that run, and as many as have nodes.

    Fewer than declared only where other Workspaces need the same nodes; otherwise pods may wait for nodes.
    """
    if verdict.startable_replicas is None:
        return workspace.replicas
    return min(workspace.replicas, max(running, verdict.startable_replicas))


class _Room:
    """Free nodes, and the number of pods that are not placed yet, by the set of nodes that they may use."""

    def __init__(self, view: ClusterView) -> None:
        self._index, self._usage = view.index, view.usage
        self._occupied = view.usage.occupied(view.settings.gpu_resource)
        self._free: dict[Nodes, int] = {}
        self._pending: Counter[Nodes] = Counter()
        self._sets: dict[tuple[str, ...], Nodes] = {}

    def nodes_of(self, workspace: Workspace, verdict: Verdict | None) -> Nodes:
        """Usable nodes on which the Workspace's pods may be placed."""
        if verdict is not None:
            names = verdict.node_names
        elif workspace.spec.resource.selector.empty:
            names = ()
        else:
            matching = self._index.matching(workspace.spec.resource.selector)
            names = tuple(node.name for node in matching if node.usable)
        known = self._sets.get(names)
        if known is None:
            known = self._sets[names] = frozenset(names)
        return known

    def add_unplaced(self, workspace: Workspace, nodes: Nodes, pods: int) -> None:
        """Counts the Workspace's pods that are not placed yet."""
        self.add(nodes, max(0, pods - sum(self._usage.own(workspace).values())))

    def add(self, nodes: Nodes, pods: int) -> None:
        """Counts pods that may be placed on these nodes."""
        if pods:
            self._pending[nodes] += pods

    def free(self, nodes: Nodes) -> int:
        if nodes not in self._free:
            self._free[nodes] = len(nodes - self._occupied)
        return self._free[nodes]

    def has_room(self, nodes: Nodes, pods: int) -> bool:
        """Whether every pod that is not placed yet still has room with `pods` more, wherever the others are placed."""
        pending = self._pending + Counter({nodes: pods})
        return all(
            self.free(some) >= sum(number for other, number in pending.items() if not other.isdisjoint(some))
            for some in pending
            if not some.isdisjoint(nodes)
        )
