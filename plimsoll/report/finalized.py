"""Which Workspaces have our finalizer: those with capacity, and those under deletion until their capacity is deleted.

A NodeClaim counts as capacity when its instance is launched. Before that, the deletion of its Workspace does not wait
for it, and the next Plan deletes the orphan.
"""

from collections.abc import Container, Iterator
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from plimsoll.labels import CAPACITY_FINALIZER, as_label_value
from plimsoll.model import ObjectKey, Plan, Snapshot
from plimsoll.model.api import WorkspaceRef
from plimsoll.model.karpenter import NodeClaim
from plimsoll.plan.owned import Owned, created_objects, parse_time

PATIENCE: Final = timedelta(minutes=10)
"""How long the deletion of a Workspace waits for objects that are already under deletion."""


class Finalizing(NamedTuple):
    """A Workspace whose finalizer must be added or removed."""

    ref: WorkspaceRef
    wanted: bool


def finalizing(snapshot: Snapshot, plan: Plan, failures: Container[ObjectKey], now: datetime) -> Iterator[Finalizing]:
    """The changes after the Plan is applied, except for the operations in `failures`.

    Only the existing capacity matters: a refused or invalid Workspace, or one in a cluster without Karpenter or without
    an Environment, is finalized like any other.
    """
    made = created_objects(snapshot)
    fresh = {
        creation.owner
        for creation in plan.creations
        if creation.key not in failures and creation.key.kind != NodeClaim.__name__
    }
    seen = [(each.ref, each.deletion_timestamp, each.finalizers) for each in snapshot.workspaces]
    seen += [(each.ref, each.deletion_timestamp, each.finalizers) for each in snapshot.invalid_workspaces]
    for ref, deleted, finalizers in seen:
        if not ref.uid:
            continue  # read from a file
        carries = CAPACITY_FINALIZER in finalizers
        own = _own(ref, made.get((as_label_value(ref.namespace), as_label_value(ref.name)), []))
        if deleted is None:
            wanted = ref in fresh or any(carries or _is_capacity(each) for each in own)
            if wanted != carries:
                yield Finalizing(ref, wanted)
        elif carries and _over(own, deleted, now):
            yield Finalizing(ref, False)


def _own(ref: WorkspaceRef, objs: list[Owned]) -> list[Owned]:
    """Without the objects of an earlier Workspace of the same name."""
    return [each for each in objs if each.owner[2] in ("", as_label_value(ref.uid))]


def _is_capacity(obj: Owned) -> bool:
    return not isinstance(obj, NodeClaim) or obj.launched


def _over(own: list[Owned], deleted: str, now: datetime) -> bool:
    """Whether nothing is left, or only objects whose deletion takes longer than PATIENCE."""
    if not own:
        return True
    since = parse_time(deleted)
    return all(each.deleting for each in own) and since is not None and now - since > PATIENCE
