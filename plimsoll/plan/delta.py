"""The delta of one round while it is put together."""

from datetime import datetime
from typing import Any

from plimsoll.model.plan import Creation, Deletion, ObjectKey, Update
from plimsoll.model.workload import Workload
from plimsoll.model.workspace import WorkspaceRef
from plimsoll.plan.ownership import Owned, owner_of

KARPENTER = "karpenter.sh/v1"


class Delta:
    """Operations, warnings, and the times at which they may change by themselves; in the order they were found."""

    def __init__(self) -> None:
        self.creations: list[Creation] = []
        self.updates: list[Update] = []
        self.deletions: list[Deletion] = []
        self.warnings: list[str] = []
        self.looks: list[datetime] = []

    def create(self, manifest: dict[str, Any], owner: WorkspaceRef, reason: str) -> None:
        self.creations.append(Creation(manifest=manifest, owner=owner, reason=reason))

    def update(self, manifest: dict[str, Any], owner: WorkspaceRef, reason: str) -> None:
        self.updates.append(Update(manifest=manifest, owner=owner, reason=reason))

    def delete(self, thing: Owned, reason: str) -> None:
        """Nothing where the object is being deleted already."""
        if not thing.deleting:
            self.deletions.append(Deletion(key=key_of(thing), uid=thing.uid, owner=owner_of(thing), reason=reason))


def key_of(thing: Owned) -> ObjectKey:
    if isinstance(thing, Workload):
        return ObjectKey(api_version=thing.api_version, kind=thing.kind, namespace=thing.namespace, name=thing.name)
    return ObjectKey(api_version=KARPENTER, kind=type(thing).__name__, namespace="", name=thing.name)
