"""Which Workspaces have our finalizer: those with capacity, and those under deletion until their capacity is deleted.

A NodeClaim counts as capacity when its instance is launched. Before that, the deletion of its Workspace does not wait
for it, and the next Plan deletes the orphan.
"""

from collections.abc import Container, Iterator
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from plimsoll.labels import CAPACITY_FINALIZER
from plimsoll.model import ObjectKey, Owner, Plan, Snapshot
from plimsoll.model.api import WorkspaceRef
from plimsoll.model.karpenter import NodeClaim
from plimsoll.plan.owned import Owned, parse_time
from plimsoll.plan.view import ClusterView

PATIENCE: Final = timedelta(minutes=10)
"""How long the deletion of a Workspace waits for objects that are already under deletion."""


class Finalizing(NamedTuple):
    """A Workspace whose finalizer must be added or removed."""

    ref: WorkspaceRef
    wanted: bool


def finalizing(
    observed: Snapshot | ClusterView, plan: Plan, failures: Container[ObjectKey], now: datetime
) -> Iterator[Finalizing]:
    """The changes after the Plan is applied, except for the operations in `failures`.

    Only the existing capacity matters: a refused or invalid Workspace, or one in a cluster without Karpenter or without
    an Environment, is finalized like any other.
    """
    view = ClusterView.of(observed)
    fresh = frozenset(
        creation.owner
        for creation in plan.creations
        if creation.key not in failures and creation.key.kind != NodeClaim.__name__
    )
    arguments = (view.observed.workspaces, view.observed.invalid_workspaces, view.created, fresh)
    changes = view.known.result("finalizers", arguments, lambda: tuple(_changes(view, fresh)))
    return (change for change, after in changes if after is None or now > after)


def _changes(view: ClusterView, fresh: Container[Owner]) -> Iterator[tuple[Finalizing, datetime | None]]:
    """Each change, with the time after which it is due; None: at once. `fresh` own what the Plan creates."""
    seen = view.observed
    workspaces = [(workspace.ref, workspace.deletion_timestamp, workspace.finalizers) for workspace in seen.workspaces]
    workspaces += [
        (workspace.ref, workspace.deletion_timestamp, workspace.finalizers) for workspace in seen.invalid_workspaces
    ]
    for ref, deleted, finalizers in workspaces:
        if not ref.uid:
            continue  # read from a file
        carries = CAPACITY_FINALIZER in finalizers
        created = view.created_for(ref)
        if deleted is None:
            wanted = ref in fresh or any(carries or _is_capacity(obj) for obj in created)
            if wanted != carries:
                yield Finalizing(ref, wanted), None
        elif carries and not created:
            yield Finalizing(ref, False), None
        elif carries and all(obj.deleting for obj in created) and (since := parse_time(deleted)) is not None:
            yield Finalizing(ref, False), since + PATIENCE


def _is_capacity(obj: Owned) -> bool:
    return not isinstance(obj, NodeClaim) or obj.launched
