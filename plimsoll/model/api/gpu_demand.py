"""GPUDemand: GPU capacity that workloads need and the cluster lacks (plimsoll.dev/v1alpha1, cluster-scoped).

One object for each class of pods that the same GPUs could serve. `spec` is empty; the controller writes `status`. It
names pods by UID only, because readers of the object may have no access to the pods.
"""

from enum import StrEnum
from typing import Any, Final

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from plimsoll.model.meta import Observed, ObservedObject

MAX_REASONS: Final = 20
"""Reasons in the status of a GPUDemand; bounds its size."""
MAX_LISTED: Final = 500
"""Maximum number of pods and objects in a status; the counts are complete. Limits the status to 200 kB."""


class _Written(BaseModel):
    """Read from and written to the cluster with camelCase fields; unknown fields of newer versions are ignored."""

    model_config = ConfigDict(
        extra="ignore",
        frozen=True,
        alias_generator=to_camel,
        populate_by_name=True,
        use_attribute_docstrings=True,
    )


class DemandPhase(StrEnum):
    PENDING = "Pending"
    """No capacity has been requested yet."""
    QUOTA_BLOCKED = "QuotaBlocked"
    """The queue would not admit the pods, so no capacity is requested."""
    SCHEDULED = "Scheduled"
    """Capacity has been requested, and no autoscaler has answered yet."""
    REFUSED = "Refused"
    """The autoscaler or its provider refuses what is requested, and tries again by itself."""
    LAUNCHING = "Launching"
    """The autoscaler has announced the nodes, and their instances are not launched yet."""
    REGISTERING = "Registering"
    """The instances are launched, and the nodes are not in the cluster yet."""
    INITIALIZING = "Initializing"
    """The nodes are in the cluster, and their GPUs are not allocatable yet."""
    NODE_READY = "NodeReady"
    """The GPUs are allocatable, and not all pods are bound yet."""
    COMPLETED = "Completed"
    EXPIRED = "Expired"
    FAILED = "Failed"


class DemandPod(_Written):
    uid: str
    share: str
    """The request, such as `0.5 of a GPU`."""


class DemandObject(_Written):
    """An object that requests the capacity."""

    api_version: str
    kind: str
    namespace: str = ""
    name: str
    uid: str = ""


class ClaimStage(StrEnum):
    """The stage of a NodeClaim."""

    CREATED = "Created"
    LAUNCHING = "Launching"
    REGISTERING = "Registering"
    INITIALIZING = "Initializing"
    """Its node is in the cluster without allocatable GPUs."""
    READY = "Ready"
    FAILED = "Failed"


class DemandClaim(_Written):
    """A NodeClaim that an autoscaler created for the request."""

    name: str
    stage: ClaimStage
    message: str = ""


class BlockedType(_Written):
    """An instance type that recently failed to launch, and is skipped until a time."""

    node_pool: str = ""
    instance_type: str
    until: str
    """RFC 3339."""
    reason: str = ""


class GPUDemandStatus(_Written):
    phase: DemandPhase = DemandPhase.PENDING
    pod_count: int = 0
    pods: tuple[DemandPod, ...] = ()
    """By UID, at most 500."""
    free_pods: int = 0
    """Pods that fit free GPUs of existing nodes."""
    requested_pods: int = 0
    """Pods for which requested nodes that have not registered yet suffice."""
    new_pods: int = 0
    """Pods for which nodes are requested now."""
    grace_pods: int = 0
    """Pods within `graceSeconds` of the Environment, for which no node is requested yet."""
    refused_pods: int = 0
    """Pods for which no capacity is requested; `reasons` says why."""
    gpus: int = 0
    """This demand's share of the GPUs of new and requested nodes, rounded up. Nodes may serve several demands."""
    gpu_milli: int = 0
    """The same in thousandths of a GPU."""
    least_gpus: int = 0
    """Lower bound of the GPUs that its shares on these nodes need, were they alone."""
    object_count: int = 0
    objects: tuple[DemandObject, ...] = ()
    """At most 500."""
    deadline: str = ""
    """RFC 3339: when the next of the requested nodes is given up; empty: none is requested, or it is not known."""
    reasons: tuple[str, ...] = ()
    """Why capacity is missing, and what to change."""
    since: str = ""
    """RFC 3339: start of the phase."""
    node_claims: tuple[DemandClaim, ...] = ()
    """At most 500."""
    failures: int = 0
    """Number of consecutive requests that failed."""
    last_failure: str = ""
    """RFC 3339."""
    blocked: tuple[BlockedType, ...] = ()

    def as_manifest(self) -> dict[str, Any]:
        """`status` as it is written. Equal demand gives an equal dict, so it is written only when it changes."""
        return self.model_dump(mode="json", by_alias=True, exclude_defaults=True) | {"phase": self.phase.value}


class GPUDemand(ObservedObject):
    status: GPUDemandStatus = GPUDemandStatus()


class PodState(StrEnum):
    """Reason of an event on a pending pod."""

    REQUESTED = "CapacityRequested"
    REFUSED = "CapacityRefused"
    KEPT_OUT = "KeptOutByQueue"
    NOT_REQUESTED = "CapacityNotRequested"
    FITS_NOTHING = "FitsNoInstanceType"


class PodNote(Observed):
    """An event on a pending pod."""

    uid: str
    namespace: str
    name: str
    state: PodState
    note: str

    @classmethod
    def of(cls, uid: str, key: tuple[str, str], state: PodState, note: str) -> "PodNote":
        """`key` is the pod's namespace and name."""
        return cls.model_construct(uid=uid, namespace=key[0], name=key[1], state=state, note=note)


class DemandReport(Observed):
    """The status to write to the GPUDemand of that name; None: the demand is completed, and the object is deleted."""

    name: str
    status: GPUDemandStatus | None
    notes: tuple[PodNote, ...] = ()
    """For events on the pods."""
