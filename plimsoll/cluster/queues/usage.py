"""Usage of queues: what their pods use and request, what the cluster has, and the queues' fair shares."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from plimsoll.cluster.pods import pod_changes
from plimsoll.cluster.queues.amount import NOTHING, Amount, Resource, total
from plimsoll.cluster.queues.capacity import QueueCapacity
from plimsoll.cluster.queues.fair_share import NO_USAGE, PastUsage, fair_shares
from plimsoll.cluster.queues.fields import faults
from plimsoll.cluster.queues.load import QueueLoad
from plimsoll.cluster.queues.queued import QueuedPod, QueuedPods
from plimsoll.cluster.queues.tree import QueueTree
from plimsoll.model import Snapshot
from plimsoll.model.cluster import Pod
from plimsoll.packing import Milli


@dataclass(frozen=True)
class QueueUsage:
    """Amounts by queue; a parent's include those of its descendants.

    CPU and memory are those of pods that request GPUs; other pods are not observed.
    """

    tree: QueueTree
    totals: Mapping[str, Amount]
    """Allocatable amounts of usable nodes, without what pods of no queue, or of another scheduler, use there; by KAI's
    node pool, as queues divide only their own."""
    running: tuple[QueuedPod, ...] = ()
    """Bound pods of existing queues."""
    pending: tuple[QueuedPod, ...] = ()
    """Pods of existing queues that are not bound."""
    allocated: Mapping[str, Amount] = field(default_factory=dict)
    non_preemptible: Mapping[str, Amount] = field(default_factory=dict)
    """The part of `allocated` that may not be reclaimed."""
    waiting: Mapping[str, Amount] = field(default_factory=dict)
    """Requests of pending pods."""
    loads: Mapping[str, QueueLoad] = field(default_factory=dict)
    """What the bound pods use, by the queue that they name."""
    fair: Mapping[str, Amount] = field(default_factory=dict)
    """The fair share; none for queues that reach no root."""
    warnings: tuple[str, ...] = ()

    def allocatable(self, name: str, resource: Resource) -> Milli | None:
        """The most that a queue has without being above its share; None: unlimited."""
        amounts = self.tree.amounts(name, resource)
        if amounts.quota is None:
            return amounts.limit
        share = max(amounts.quota, self.fair[name][resource])
        return share if amounts.limit is None else min(share, amounts.limit)

    @cached_property
    def total(self) -> Amount:
        """Of all node pools."""
        return total(self.totals.values())

    def total_of(self, name: str) -> Amount:
        """What the queue and the others of its node pool divide."""
        return self.totals.get(self.tree.shard_of(name), NOTHING)

    def free_gpu_milli(self, name: str) -> Milli:
        """What no pod uses of the node pool of the queue, in total rather than on one node."""
        shard = self.tree.shard_of(name)
        used = sum(load.allocated.gpu for each, load in self.loads.items() if self.tree.shard_of(each) == shard)
        return max(0, self.total_of(name).gpu - used)


class IncrementalUsage:
    """The usage of the newest of several snapshots, from the changes between them. Not thread-safe."""

    def __init__(self) -> None:
        self._pods = QueuedPods()
        self._capacity = QueueCapacity()
        self._last: tuple[Pod, ...] | None = None
        """The pods of the last snapshot."""

    def of(self, snapshot: Snapshot, past: PastUsage = NO_USAGE) -> QueueUsage:
        """`past` is what the queues used before, for time-based fair share."""
        tree, pods, capacity = QueueTree.of(snapshot), self._pods, self._capacity
        last, self._last = self._last, None  # nothing is known where this fails
        pods.update(snapshot, None if last is None else pod_changes(last, snapshot.pods))
        capacity.update(snapshot.nodes, snapshot.environment.spec)
        self._last = snapshot.pods
        queued = tuple(pods.in_order(snapshot.pods))
        own = [each for each in queued if each.queue in tree]
        others: dict[str, list[Amount]] = {}
        for each in queued:
            if each.queue not in tree and (shard := capacity.shard_of(each.node)) is not None:
                others.setdefault(shard, []).append(each.requests)
        totals = {shard: _less(amount, total(others.get(shard, ()))) for shard, amount in capacity.amounts.items()}
        loads = {name: load for name, load in pods.loads.items() if name in tree}
        used = {name: load.allocated for name, load in loads.items()}
        waiting = {name: amount for name, amount in pods.waiting.items() if name in tree}
        wanted = {name: used.get(name, NOTHING) + waiting.get(name, NOTHING) for name in (*used, *waiting)}
        return QueueUsage(
            tree=tree,
            totals=totals,
            running=tuple(each for each in own if each.node),
            pending=tuple(each for each in own if not each.node),
            allocated=tree.with_descendants(used),
            non_preemptible=tree.with_descendants({name: load.non_preemptible for name, load in loads.items()}),
            waiting=tree.with_descendants(waiting),
            loads=loads,
            fair=fair_shares(tree, totals, wanted, past),
            warnings=(
                *_misread(tree),
                *(f"not counted: {each.message}" for each in pods.refused(snapshot.pods)),
                *past.warnings,
            ),
        )


def _less(amount: Amount, used: Amount) -> Amount:
    left = amount - used
    return Amount(*(max(0, left[resource]) for resource in Resource))


def queue_usage(snapshot: Snapshot, past: PastUsage = NO_USAGE) -> QueueUsage:
    """The usage of the queues of one snapshot; `past` is what they used before, for time-based fair share."""
    return IncrementalUsage().of(snapshot, past)


def _misread(tree: QueueTree) -> Iterator[str]:
    """Amounts and priorities of queues that cannot be read as they stand, and what they count as instead."""
    for name in tree:
        for fault in faults(tree.queue(name).spec):
            if fault.rule not in ("queue-invalid-field", "queue-negative"):
                continue
            if fault.field.startswith("spec.resources"):
                yield f"Queue {name}: {fault.message}; it counts as 0"
            elif fault.field == "spec.priority":
                yield f"Queue {name}: {fault.message}; it counts as {tree.priority(name)}"
