"""Expectations: own writes that the watches have not shown yet.

A plan made from a snapshot that lacks the last delta would ask for it again (the stale cache behind KAITO's 200
NodeClaims), so nothing is planned until the snapshot shows what was written, or a deadline has passed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import MappingProxyType

from plimsoll.model import Signal, Snapshot
from plimsoll.model.api import DemandReport
from plimsoll.plan.owned import Owned, RequestObject, request_objects, signalled

DEADLINE = timedelta(seconds=10)
"""How long a write may stay unseen: past it a watch has missed it, or something kept the object."""


@dataclass(frozen=True)
class Expectations:
    """UIDs that must have appeared and UIDs that must go, until `deadline`."""

    created: frozenset[str] = frozenset()
    deleted: frozenset[str] = frozenset()
    signalled: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """What trigger pods must say, by name, as long as they are there."""
    failures: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """What GPUDemands must remember, by name: asked again without it, what failed would be tried at once."""
    deadline: datetime | None = None

    @classmethod
    def of(
        cls,
        created: Iterable[str],
        deleted: Iterable[str],
        now: datetime,
        signalled: Iterable[Signal] = (),
        demands: Iterable[DemandReport] = (),
    ) -> "Expectations":
        said = {signal.key.name: signal.reason.value for signal in signalled}
        failures = {each.name: each.status.failures for each in demands if each.status and each.status.failures}
        return cls(
            frozenset(created),
            frozenset(deleted),
            MappingProxyType(said),
            MappingProxyType(failures),
            now + DEADLINE,
        )

    def met_by(self, snapshot: Snapshot, now: datetime) -> bool:
        """Whether the snapshot shows every write, or the deadline has passed.

        What was made and is gone again has been shown: Karpenter deletes a NodeClaim without capacity within moments.
        """
        if self.deadline is None or now >= self.deadline:
            return True
        remembered = {each.name: each.status.failures for each in snapshot.gpu_demands}
        if any(remembered.get(name, 0) < failures for name, failures in self.failures.items()):
            return False
        objects = request_objects(snapshot)
        things: list[Owned | RequestObject] = [
            *snapshot.node_claims,
            *snapshot.node_pools,
            *snapshot.workloads,
            *objects,
        ]
        seen = snapshot.gone.union(thing.uid for thing in things)
        alive = {thing.uid for thing in things if not thing.deleting}
        if self.deleted & alive or not self.created <= seen:
            return False
        return all(signalled(thing) == self.signalled.get(thing.name, signalled(thing)) for thing in objects)
