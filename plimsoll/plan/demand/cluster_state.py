"""The state of a cluster that plans and reports read, kept up to date by what changed from one snapshot to the next."""

from collections.abc import Mapping
from dataclasses import dataclass

from plimsoll.cluster.ledger import GpuAccount, SnapshotAccounts
from plimsoll.cluster.pods import pod_changes
from plimsoll.cluster.queues import QueuedPods, QueueLoad
from plimsoll.model import Snapshot
from plimsoll.model.kai import PodGroup
from plimsoll.plan.classes import Classes, NamespaceClasses, Refusal


@dataclass(frozen=True)
class ClusterState:
    """Read-only, for all that is planned and reported of one snapshot."""

    snapshot: Snapshot
    accounts: Mapping[str, GpuAccount]
    """By the name of the node."""
    waiting: Mapping[str, NamespaceClasses]
    """The pods that wait, by namespace."""
    groups: Mapping[tuple[str, str], PodGroup]
    """PodGroups by namespace and name."""
    without_volume: Mapping[str, Refusal]
    """Why pods cannot be placed before their claims are bound, by UID."""
    queue_loads: Mapping[str, QueueLoad]
    """What bound pods use, by queue; empty if the cluster has no queues."""
    queues_in_use: frozenset[str] = frozenset()
    """The Queues of pods that request GPUs, and of PodGroups."""
    sharded: bool = False
    """Whether anything of the cluster, pods apart, belongs to a node pool of KAI."""


class ClusterStates:
    """The states of consecutive snapshots. What did not change is the same value in both. Not thread-safe."""

    def __init__(self) -> None:
        self._last: ClusterState | None = None
        self._accounts = SnapshotAccounts()
        self._queued = QueuedPods()
        self._classes = Classes()

    def of(self, snapshot: Snapshot) -> ClusterState:
        last, self._last = self._last, None  # nothing is known where this fails
        if last is not None and last.snapshot is snapshot:
            self._last = last
            return last
        changes = None if last is None else pod_changes(last.snapshot.pods, snapshot.pods)
        if snapshot.queues:
            self._queued.update(snapshot, changes if last is not None and last.snapshot.queues else None)
        accounts, waiting = self._accounts.of(snapshot), self._classes.update(snapshot, changes)
        loads = self._queued.loads if snapshot.queues else {}
        in_use = self._queued.in_use.intersection(queue.name for queue in snapshot.queues)
        read = self._classes
        parts = (read.groups, dict(read.without_volume), loads, in_use, read.sharded)
        self._last = ClusterState(snapshot, accounts, waiting, *parts)
        return self._last
