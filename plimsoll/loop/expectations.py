"""Expectations: the controller's own writes that the watches have not shown yet.

A Plan from a snapshot without the result of the last Plan would request the same objects again (a stale cache once made
KAITO create 200 NodeClaims). Therefore nothing is planned until the snapshot shows the writes, or a deadline passes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import MappingProxyType

from plimsoll.model import Signal, Snapshot
from plimsoll.model.api import DemandReport
from plimsoll.plan.owned import Owned, RequestObject, request_objects, signalled

DEADLINE = timedelta(seconds=10)
"""How long a write may stay invisible. After that, a watch missed it, or something prevents the deletion."""


@dataclass(frozen=True)
class Expectations:
    """UIDs that must appear and UIDs that must disappear, until `deadline`."""

    created: frozenset[str] = frozenset()
    deleted: frozenset[str] = frozenset()
    signalled: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Condition reason by trigger pod name, checked while the pod exists."""
    failures: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """Failures by GPUDemand name: without them, a failed request would be repeated at once."""
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
        reasons = {signal.key.name: signal.reason.value for signal in signalled}
        failures = {each.name: each.status.failures for each in demands if each.status and each.status.failures}
        return cls(
            frozenset(created),
            frozenset(deleted),
            MappingProxyType(reasons),
            MappingProxyType(failures),
            now + DEADLINE,
        )

    def met_by(self, snapshot: Snapshot, now: datetime) -> bool:
        """Whether the snapshot shows every write, or the deadline has passed.

        An object that was created and is already gone counts as shown: Karpenter deletes a NodeClaim for lack of
        capacity within moments.
        """
        if self.deadline is None or now >= self.deadline:
            return True
        remembered = {each.name: each.status.failures for each in snapshot.gpu_demands}
        if any(remembered.get(name, 0) < failures for name, failures in self.failures.items()):
            return False
        if self.created or self.deleted:
            objs = created_kinds(snapshot)
            seen = snapshot.gone.union(obj.uid for obj in objs)
            alive = {obj.uid for obj in objs if not obj.deleting}
            if self.deleted & alive or not self.created <= seen:
                return False
        objects = request_objects(snapshot) if self.signalled else ()
        return all(signalled(obj) == self.signalled.get(obj.name, signalled(obj)) for obj in objects)


def created_kinds(snapshot: Snapshot) -> list[Owned | RequestObject]:
    """The observed objects of the kinds that a Plan creates."""
    made: list[Owned | RequestObject] = [*snapshot.node_claims, *snapshot.node_pools, *snapshot.workloads]
    return [*made, *snapshot.resource_claim_templates, *request_objects(snapshot)]
