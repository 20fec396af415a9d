"""The Plan: the immutable delta between what is wanted and what the cluster holds."""

from datetime import datetime
from enum import StrEnum
from typing import Any

from plimsoll.model.api import DemandReport
from plimsoll.model.meta import Finding, Observed, identify
from plimsoll.model.owner import Owner
from plimsoll.model.verdict import Verdict


class SignalReason(StrEnum):
    UNSCHEDULABLE = "Unschedulable"
    """Armed: the autoscaler makes a node for the pod."""
    CAPACITY_READY = "CapacityReady"
    """Disarmed: the node is there, and the autoscaler must not make another one."""
    WITHDRAWN = "Withdrawn"
    """Disarmed: nothing waits for the node any more. The pod goes with the update, which takes a second or more."""


class Creation(Observed):
    """An object to create. Its name is a function of the snapshot, so that a repeated plan creates nothing twice."""

    manifest: dict[str, Any]
    owner: Owner
    reason: str

    @property
    def key(self) -> "ObjectKey":
        return ObjectKey.of(self.manifest)


class Update(Observed):
    """An object of ours to change in place; never a NodeClaim, whose spec cannot change."""

    manifest: dict[str, Any]
    owner: Owner
    reason: str

    @property
    def key(self) -> "ObjectKey":
        return ObjectKey.of(self.manifest)


class Deletion(Observed):
    """An object of ours to delete, told apart by its UID."""

    key: "ObjectKey"
    uid: str
    owner: Owner
    reason: str


class Signal(Observed):
    """What the condition PodScheduled of a trigger pod is to say: an autoscaler goes by it.

    It is not part of a stack update: a status is nobody's declaration. Writing it again changes nothing.
    """

    key: "ObjectKey"
    uid: str
    """Empty for a pod that the same Plan creates."""
    reason: SignalReason
    message: str


class Lift(Observed):
    """A capacity gate to be taken off a pod. It is no stack update: nobody declares the pods of others."""

    key: "ObjectKey"
    uid: str
    message: str
    """Why, for people."""


class ObjectKey(Observed):
    """Names an object of the cluster."""

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

    def __str__(self) -> str:
        return identify({"kind": self.kind, "metadata": {"namespace": self.namespace, "name": self.name}})


class LeavingPod(Observed):
    """A pod whose node goes: of its workload, which shrinks, the first to end."""

    namespace: str
    name: str
    uid: str


class Withheld(Observed):
    """An object that a rule refuses: it is neither made nor changed, and the rest of the Plan goes on."""

    key: "ObjectKey"
    owner: Owner
    findings: tuple[Finding, ...]

    def __str__(self) -> str:
        return f"{self.key} is not applied: " + "; ".join(f"{each.message} ({each.rule})" for each in self.findings)


class Plan(Observed):
    """Verdicts on every Workspace, and the whole delta of one round.

    `creations`, `updates` and `deletions` are sorted and disjoint by key.
    """

    verdicts: tuple[Verdict, ...] = ()
    creations: tuple[Creation, ...] = ()
    updates: tuple[Update, ...] = ()
    deletions: tuple[Deletion, ...] = ()
    signals: tuple[Signal, ...] = ()
    """Written after the operations; they make no Plan worth an update by themselves."""
    leaving: tuple[LeavingPod, ...] = ()
    """Pods to mark before the operations are done."""
    lifts: tuple[Lift, ...] = ()
    """Written after them too."""
    demands: tuple[DemandReport, ...] = ()
    """What the GPUDemands are to say once the operations have been done; by name."""
    withheld: tuple[Withheld, ...] = ()
    """Sorted by key."""
    warnings: tuple[str, ...] = ()
    next_deadline: datetime | None = None
    """When the plan may change though the cluster does not: a deadline passes, or a back-off ends."""

    @property
    def empty(self) -> bool:
        """No operation on the cluster; verdicts may still be there."""
        return not (self.creations or self.updates or self.deletions)

    @property
    def refusals(self) -> tuple[Verdict, ...]:
        return tuple(verdict for verdict in self.verdicts if not verdict.accepted)


Deletion.model_rebuild()
Signal.model_rebuild()
Lift.model_rebuild()
Withheld.model_rebuild()
