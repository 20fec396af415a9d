"""The delta of one round while it is assembled."""

from datetime import datetime
from typing import Any, Final

from plimsoll.labels import ENVIRONMENT, MANAGED_BY, SHARD, SPEC_HASH, WORKSPACE, WORKSPACE_NAMESPACE, WORKSPACE_UID
from plimsoll.model import Change, Deletion, ObjectKey, Owner, Signal, SignalReason
from plimsoll.model.cluster import Pod, Workload
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
}


class Delta:
    """Operations, warnings and deadlines, in the order in which they were added."""

    def __init__(self) -> None:
        self.creations: list[Change] = []
        self.updates: list[Change] = []
        self.deletions: list[Deletion] = []
        self.signals: list[Signal] = []
        self.warnings: list[str] = []
        self.deadlines: list[datetime] = []

    def create(self, manifest: dict[str, Any], owner: Owner, reason: str) -> None:
        self.creations.append(Change(manifest=manifest, owner=owner, reason=reason))

    def update(self, manifest: dict[str, Any], owner: Owner, reason: str) -> None:
        self.updates.append(Change(manifest=manifest, owner=owner, reason=reason))

    def scale(self, thing: Workload | NodePool, replicas: int, owner: Owner) -> None:
        """Adds a change of the replicas alone. The hash changes too, so that the next whole declaration is one more."""
        key = key_of(thing)
        labels = {name: thing.labels[name] for name in _IDENTITY if name in thing.labels}
        metadata = {"name": key.name, "labels": labels, "annotations": {SPEC_HASH: f"replicas-{replicas}"}}
        if key.namespace:
            metadata["namespace"] = key.namespace
        spec = {"replicas": replicas}
        manifest = {"apiVersion": key.api_version, "kind": key.kind, "metadata": metadata, "spec": spec}
        reason = f"replicas {thing.replicas} -> {replicas}"
        self.updates.append(Change(manifest=manifest, owner=owner, reason=reason, partial=True))

    def delete(self, thing: Owned | RequestObject, reason: str) -> None:
        """Adds a deletion, unless the object is already being deleted."""
        if not thing.deleting:
            self.deletions.append(Deletion(key=key_of(thing), uid=thing.uid, owner=owner_of(thing), reason=reason))

    def signal(self, key: ObjectKey, uid: str, reason: SignalReason, message: str) -> None:
        self.signals.append(Signal(key=key, uid=uid, reason=reason, message=message))


def key_of(thing: Owned | RequestObject) -> ObjectKey:
    if isinstance(thing, Workload):
        return ObjectKey(api_version=thing.api_version, kind=thing.kind, namespace=thing.namespace, name=thing.name)
    kind = type(thing)
    return ObjectKey(api_version=_API_VERSIONS[kind], kind=kind.__name__, namespace=thing.namespace, name=thing.name)
