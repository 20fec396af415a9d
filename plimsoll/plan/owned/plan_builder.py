"""PlanBuilder: collects the operations of a Plan."""

from datetime import datetime
from typing import Any, Final, NamedTuple

from plimsoll.labels import ENVIRONMENT, MANAGED_BY, SHARD, SPEC_HASH, WORKSPACE, WORKSPACE_NAMESPACE, WORKSPACE_UID
from plimsoll.model import Change, Deletion, ObjectKey, Owner, Plan, Signal, SignalReason
from plimsoll.model.api import WorkspaceRef
from plimsoll.model.cluster import Pod, Workload
from plimsoll.model.dra import ResourceClaimTemplate
from plimsoll.model.karpenter import CapacityBuffer, NodeClaim, NodePool, PodTemplate, ProvisioningRequest
from plimsoll.model.meta import ObservedObject
from plimsoll.plan.owned.ownership import Owned, owner_of
from plimsoll.plan.owned.request_object import RequestObject

KARPENTER: Final = "karpenter.sh/v1"
_IDENTITY: Final = (WORKSPACE, WORKSPACE_NAMESPACE, WORKSPACE_UID, ENVIRONMENT, MANAGED_BY, SHARD)
"""Labels by which an object is known as ours."""
_API_VERSIONS: Final[dict[type[ObservedObject], str]] = {
    NodeClaim: KARPENTER,
    NodePool: KARPENTER,
    Pod: "v1",
    PodTemplate: "v1",
    CapacityBuffer: "autoscaling.x-k8s.io/v1beta1",
    ProvisioningRequest: "autoscaling.x-k8s.io/v1",
    ResourceClaimTemplate: "resource.k8s.io/v1",
}


class PlanPart(NamedTuple):
    """The operations, warnings and deadlines for one Workspace."""

    creations: tuple[Change, ...]
    updates: tuple[Change, ...]
    deletions: tuple[Deletion, ...]
    dry_runs: tuple[Change, ...]
    warnings: tuple[str, ...]
    deadlines: tuple[datetime, ...]
    own: bool
    """Whether it depends neither on the time nor on what other Workspaces leave of a limit."""

    def lasts(self) -> bool:
        """Whether it is the same in every round until the Workspace, its objects or the settings change. One with
        operations is made again, because manifests may be changed by whoever applies them."""
        return self.own and not (self.creations or self.updates or self.deletions)


class PlanBuilder:
    """Operations, warnings and deadlines, in the order in which they were added."""

    def __init__(self) -> None:
        self.own = True
        """See `PlanPart.own`."""
        self.creations: list[Change] = []
        self.updates: list[Change] = []
        self.deletions: list[Deletion] = []
        self.dry_runs: list[Change] = []
        self.signals: list[Signal] = []
        self.warnings: list[str] = []
        self.deadlines: list[datetime] = []

    def add(self, part: PlanPart) -> None:
        """Adds the part of one Workspace."""
        self.creations += part.creations
        self.updates += part.updates
        self.deletions += part.deletions
        self.dry_runs += part.dry_runs
        self.warnings += part.warnings
        self.deadlines += part.deadlines

    def part(self) -> PlanPart:
        """What was added for one Workspace."""
        operations = (tuple(self.creations), tuple(self.updates), tuple(self.deletions), tuple(self.dry_runs))
        return PlanPart(*operations, tuple(self.warnings), tuple(self.deadlines), self.own)

    def create(self, manifest: dict[str, Any], owner: Owner, reason: str) -> None:
        self.creations.append(Change(manifest=manifest, owner=owner, reason=reason))

    def dry_run(self, manifest: dict[str, Any], owner: Owner) -> None:
        self.dry_runs.append(Change(manifest=manifest, owner=owner, reason="new nodes are for it"))

    def update(self, manifest: dict[str, Any], owner: Owner, reason: str) -> None:
        self.updates.append(Change(manifest=manifest, owner=owner, reason=reason))

    def scale(self, obj: Workload | NodePool, replicas: int, owner: Owner) -> None:
        """Adds a change of the replicas alone. The annotation with the hash changes too, so that the next plan with a
        complete manifest updates the object."""
        key = key_of(obj)
        labels = {name: obj.labels[name] for name in _IDENTITY if name in obj.labels}
        metadata = {"name": key.name, "labels": labels, "annotations": {SPEC_HASH: f"replicas-{replicas}"}}
        if key.namespace:
            metadata["namespace"] = key.namespace
        spec = {"replicas": replicas}
        manifest = {"apiVersion": key.api_version, "kind": key.kind, "metadata": metadata, "spec": spec}
        reason = f"replicas {obj.replicas} -> {replicas}"
        self.updates.append(Change(manifest=manifest, owner=owner, reason=reason, partial=True))

    def delete(self, obj: Owned | RequestObject, reason: str) -> None:
        """Adds a deletion, unless the object is already being deleted."""
        if not obj.deleting:
            self.deletions.append(Deletion(key=key_of(obj), uid=obj.uid, owner=owner_of(obj), reason=reason))

    def warn(self, workspace: WorkspaceRef, warning: str) -> None:
        self.warnings.append(f"{_mark(workspace)}{warning}")

    def signal(self, key: ObjectKey, uid: str, reason: SignalReason, message: str) -> None:
        self.signals.append(Signal(key=key, uid=uid, reason=reason, message=message))


def warnings_of(plan: Plan, workspace: WorkspaceRef) -> tuple[str, ...]:
    """The warnings that were added for the Workspace."""
    mark = _mark(workspace)
    return tuple(text.removeprefix(mark) for text in plan.warnings if text.startswith(mark))


def _mark(workspace: WorkspaceRef) -> str:
    return f"Workspace {workspace}: "


def key_of(obj: Owned | RequestObject) -> ObjectKey:
    if isinstance(obj, Workload):
        return ObjectKey(api_version=obj.api_version, kind=obj.kind, namespace=obj.namespace, name=obj.name)
    kind = type(obj)
    return ObjectKey(api_version=_API_VERSIONS[kind], kind=kind.__name__, namespace=obj.namespace, name=obj.name)
