"""Rows of queues: the tree in order, with amounts of GPUs."""

from collections.abc import Iterable
from dataclasses import dataclass

from plimsoll.cluster.queues import MILLI, NOTHING, QueueUsage, Resource
from plimsoll.ui.view.filter import Filter
from plimsoll.ui.view.nodes import NodeRow


@dataclass(frozen=True, slots=True)
class QueueRow:
    """Amounts in GPUs; None: unlimited."""

    name: str
    parent: str
    shard: str
    """KAI's node pool; empty for that of the scheduler without a shard."""
    depth: int
    leaf: bool
    priority: int
    quota: float | None
    limit: float | None
    fair_share: float
    allocated: float
    requested: float
    pending: float
    problem: str
    """Why it is not in the tree; empty if it is."""
    children: int

    @property
    def most(self) -> float:
        """The largest of its amounts: the length of its bar."""
        return max(self.quota or 0, self.limit or 0, self.fair_share, self.allocated, self.requested, 1)


def queue_rows(usage: QueueUsage, nodes: Iterable[NodeRow], wanted: Filter) -> tuple[QueueRow, ...]:
    """Each queue after its parent. With a filter, the parents of matching queues are shown, too. Namespaces and
    instance types are those of the queue's pods."""
    rows = [_row(usage, name, depth) for name, depth in usage.tree.nested()]
    users = _users(usage, nodes, wanted)
    found = {
        row.name
        for row in rows
        if wanted.matches_text(row.name) and wanted.queue in ("", row.name) and (users is None or row.name in users)
    }
    kept = {above for name in found for above in (name, *usage.tree.path_to_root(name))}
    return tuple(row for row in rows if row.name in kept)


def _users(usage: QueueUsage, nodes: Iterable[NodeRow], wanted: Filter) -> set[str] | None:
    """Queues with a pod of the namespace, on a node of the instance type; None: not restricted."""
    if not (wanted.namespace or wanted.type):
        return None
    named = {row.name for row in nodes if row.instance_type == wanted.type}
    return {
        each.queue
        for each in (*usage.running, *usage.pending)
        if wanted.namespace in ("", each.pod.namespace) and (not wanted.type or each.pod.node_name in named)
    }


def _row(usage: QueueUsage, name: str, depth: int) -> QueueRow:
    tree = usage.tree
    amounts = tree.amounts(name, Resource.GPU)
    allocated, pending = usage.allocated[name][Resource.GPU], usage.waiting[name][Resource.GPU]
    return QueueRow(
        name=name,
        parent=tree.queue(name).parent,
        shard=tree.shard_of(name),
        depth=depth,
        leaf=tree.is_leaf(name),
        priority=tree.priority(name),
        quota=None if amounts.quota is None else amounts.quota / MILLI,
        limit=None if amounts.limit is None else amounts.limit / MILLI,
        fair_share=float(usage.fair.get(name, NOTHING)[Resource.GPU]) / MILLI,
        allocated=float(allocated) / MILLI,
        requested=float(allocated + pending) / MILLI,
        pending=float(pending) / MILLI,
        problem=tree.broken_at(name),
        children=len(tree.children.get(name, ())),
    )
