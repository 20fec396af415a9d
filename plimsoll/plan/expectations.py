"""Expectations: own writes that the watches have not shown yet.

A plan made from a snapshot that lacks the last delta would ask for it again (the stale cache behind KAITO's 200
NodeClaims), so nothing is planned until the snapshot shows what was written, or a deadline has passed.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from plimsoll.model.plan import ObjectKey
from plimsoll.model.snapshot import Snapshot

DEADLINE = timedelta(seconds=10)
"""How long a write may stay unseen: past it something else removed or kept the object, and the plan says so anew."""


@dataclass(frozen=True)
class Expectations:
    """Keys that must appear and UIDs that must go, until `deadline`."""

    created: frozenset[ObjectKey] = frozenset()
    deleted_uids: frozenset[str] = frozenset()
    deadline: datetime | None = None

    @classmethod
    def of(cls, created: Iterable[ObjectKey], deleted_uids: Iterable[str], now: datetime) -> "Expectations":
        return cls(frozenset(created), frozenset(deleted_uids), now + DEADLINE)

    def met_by(self, snapshot: Snapshot, now: datetime) -> bool:
        """Whether the snapshot shows every write, or the deadline has passed."""
        if self.deadline is None or now >= self.deadline:
            return True
        seen: set[ObjectKey] = set()
        alive: set[str] = set()
        for claim in snapshot.node_claims:
            seen.add(ObjectKey(api_version="karpenter.sh/v1", kind="NodeClaim", namespace="", name=claim.name))
            if not claim.deleting:
                alive.add(claim.uid)
        for pool in snapshot.node_pools:
            seen.add(ObjectKey(api_version="karpenter.sh/v1", kind="NodePool", namespace="", name=pool.name))
            if not pool.deleting:
                alive.add(pool.uid)
        for workload in snapshot.workloads:
            seen.add(
                ObjectKey(
                    api_version=workload.api_version,
                    kind=workload.kind,
                    namespace=workload.namespace,
                    name=workload.name,
                )
            )
            if not workload.deleting:
                alive.add(workload.uid)
        return self.created <= seen and not (self.deleted_uids & alive)
