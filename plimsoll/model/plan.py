"""Plan: the immutable difference between the wanted and the current state of the cluster."""

from datetime import datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple

from plimsoll.model.api import DemandObject, DemandReport
from plimsoll.model.meta import Finding, Observed, identify
from plimsoll.model.owner import Owner
from plimsoll.model.verdict import Verdict

REQUEST_KINDS: Final = ("Pod", "CapacityBuffer", "ProvisioningRequest")
"""Kinds of objects in a Plan that request nodes from an autoscaler."""


class SignalReason(StrEnum):
    UNSCHEDULABLE = "Unschedulable"
    """The autoscaler creates a node for the pod."""
    CAPACITY_READY = "CapacityReady"
    """The node is ready, and the autoscaler must not create another one."""
    WITHDRAWN = "Withdrawn"
    """No pod needs the node any more. The pod is deleted by the update, which takes a second or more."""


class Change(Observed):
    """An object to create, or one of our objects to change in place; a NodeClaim is never changed.

    The name of a new object depends only on the snapshot, so a repeated plan creates nothing twice.
    """

    manifest: dict[str, Any]
    owner: Owner
    reason: str
    partial: bool = False
    """Of an update: whether the manifest has only the fields that change, and the others stay as they were declared."""

    @property
    def key(self) -> "ObjectKey":
        return ObjectKey.of(self.manifest)


class Deletion(Observed):
    """One of our objects to delete, identified by its UID."""

    key: "ObjectKey"
    uid: str
    owner: Owner
    reason: str


class RefusedOperation(NamedTuple):
    """An operation that the cluster refused, and that is not tried again until then."""

    operation: Change | Deletion
    until: datetime

    def blocks(self, planned: Change | Deletion) -> bool:
        """Whether a planned operation is this one: of the same object, with the same content."""
        refused = self.operation
        if isinstance(planned, Deletion) or isinstance(refused, Deletion):
            return isinstance(planned, Deletion) and isinstance(refused, Deletion) and planned.uid == refused.uid
        return (planned.manifest, planned.partial) == (refused.manifest, refused.partial)


class Signal(Observed):
    """The condition PodScheduled to write to a trigger pod; autoscalers read it.

    It is not part of a stack update, because a stack does not declare a status. Writing it is idempotent.
    """

    key: "ObjectKey"
    uid: str
    """Empty for a pod that the same Plan creates."""
    reason: SignalReason
    message: str


class GateRemoval(Observed):
    """A capacity gate to remove from a pod. It is not part of a stack update, because others declare the pods."""

    key: "ObjectKey"
    uid: str
    message: str
    """The reason."""


class ObjectKey(Observed):
    """Identifies an object of the cluster."""

    api_version: str
    kind: str
    namespace: str
    name: str

    @classmethod
    def of(cls, manifest: dict[str, Any]) -> "ObjectKey":
        metadata = manifest["metadata"]
        return cls(
            api_version=manifest["apiVersion"],
            kind=manifest["kind"],
            namespace=metadata.get("namespace") or "",
            name=metadata["name"],
        )

    @property
    def of_demand(self) -> DemandObject:
        """The object as the status of a GPUDemand lists it."""
        return DemandObject(api_version=self.api_version, kind=self.kind, namespace=self.namespace, name=self.name)

    def __str__(self) -> str:
        return identify({"kind": self.kind, "metadata": {"namespace": self.namespace, "name": self.name}})


class PreferredDeletion(Observed):
    """A pod on a node that is deleted: its workload, which scales down, should delete this pod first."""

    namespace: str
    name: str
    uid: str


class Withheld(Observed):
    """An object that a rule refuses: it is neither created nor changed; the rest of the Plan is applied."""

    key: "ObjectKey"
    owner: Owner
    findings: tuple[Finding, ...]

    def __str__(self) -> str:
        return f"{self.key} is not applied: " + "; ".join(f"{each.message} ({each.rule})" for each in self.findings)


class Plan(Observed):
    """Verdicts on every Workspace, and the operations of one round.

    `creations`, `updates` and `deletions` are sorted and disjoint by key.
    """

    verdicts: tuple[Verdict, ...] = ()
    creations: tuple[Change, ...] = ()
    updates: tuple[Change, ...] = ()
    deletions: tuple[Deletion, ...] = ()
    signals: tuple[Signal, ...] = ()
    """Written after the operations; signals alone cause no stack update."""
    preferred_deletions: tuple[PreferredDeletion, ...] = ()
    """Pods to mark before the operations."""
    gate_removals: tuple[GateRemoval, ...] = ()
    """Gates to remove after the operations."""
    dry_runs: tuple[Change, ...] = ()
    """Workloads that new nodes of the Plan are for, and that are created or changed now or once the nodes are Ready.
    The nodes may be requested only if the apiserver accepts them in a dry run."""
    demands: tuple[DemandReport, ...] = ()
    """Statuses to write to the GPUDemands after the operations; by name."""
    demand_least_gpus: int = 0
    """GPUs of new and requested nodes that the shares of all demands need at least."""
    withheld: tuple[Withheld, ...] = ()
    """Sorted by key."""
    waiting: tuple["ObjectKey", ...] = ()
    """Objects whose operation the cluster refused, and whose next attempt is not due; sorted."""
    warnings: tuple[str, ...] = ()
    next_deadline: datetime | None = None
    """When the plan may change although the cluster does not: a deadline passes, or a back-off ends."""

    @property
    def empty(self) -> bool:
        """Whether there is no operation on the cluster; there may be verdicts."""
        return not (self.creations or self.updates or self.deletions)

    @property
    def refusals(self) -> tuple[Verdict, ...]:
        return tuple(verdict for verdict in self.verdicts if not verdict.accepted)


Deletion.model_rebuild()
Signal.model_rebuild()
GateRemoval.model_rebuild()
Withheld.model_rebuild()
