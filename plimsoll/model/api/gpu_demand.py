"""GPUDemand: what GPU capacity workloads need and the cluster lacks (plimsoll.dev/v1alpha1, cluster-scoped).

One object for each class of pods that the same GPUs could serve. `spec` is empty; the engine alone writes `status`. It
names pods by UID only: who may read the object need not be allowed to read the pods.
"""

from enum import StrEnum
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from plimsoll.model.meta import Observed, ObservedObject

MAX_LISTED: Final = 500
"""Pods, patterns, places and objects that a status lists; the counts beside them are of all. Keeps it below 200 kB."""
MAX_HELD: Final = 5000
"""Shares in all places that a status lists."""


class _Written(BaseModel):
    """Read from and written to the cluster with camelCase fields; a newer version's fields are ignored."""

    model_config = ConfigDict(
        extra="ignore",
        frozen=True,
        alias_generator=to_camel,
        populate_by_name=True,
        use_attribute_docstrings=True,
    )


class DemandPhase(StrEnum):
    PENDING = "Pending"
    """Nothing has been asked for yet."""
    QUOTA_BLOCKED = "QuotaBlocked"
    """The queue would not admit the pods, so no capacity is asked for."""
    SCHEDULED = "Scheduled"
    """Capacity has been asked for."""
    NODE_READY = "NodeReady"
    """The GPUs are allocatable, and pods are still to be bound."""
    COMPLETED = "Completed"
    EXPIRED = "Expired"
    FAILED = "Failed"


class DemandPod(_Written):
    uid: str
    share: str
    """What it asks, for people, such as `0.5 of a GPU`."""


class DemandPattern(_Written):
    """GPUs that are to hold the same shares."""

    gpus: int = Field(ge=1)
    shares: tuple[int, ...]
    """Thousandths of each, the largest first."""
    kinds: tuple[str, ...] = ()
    """Kinds of GPU that can hold them; empty: every one."""


class DemandPlace(_Written):
    """What is to go to a node: one that is there, or each of several alike that are to come."""

    node: str = ""
    """Of the Node, or of the NodeClaim on its way; empty: it is to come."""
    node_pool: str = ""
    """Of one to come."""
    instance_type: str = ""
    """Of one to come."""
    nodes: int = Field(default=1, ge=1)
    """So many alike."""
    holds: tuple[tuple[int, ...], ...]
    """Of each GPU, what is to share it: numbers in `requests`, from 0; who asks for several GPUs stands on each."""


class DemandObject(_Written):
    """An object that was made to ask for the capacity."""

    api_version: str
    kind: str
    namespace: str = ""
    name: str
    uid: str = ""


class ClaimStage(StrEnum):
    """How far a NodeClaim has come."""

    CREATED = "Created"
    LAUNCHING = "Launching"
    REGISTERING = "Registering"
    READY = "Ready"
    FAILED = "Failed"


class DemandClaim(_Written):
    """A NodeClaim that an autoscaler made for what was asked."""

    name: str
    stage: ClaimStage
    message: str = ""


class BlockedType(_Written):
    """An instance type that did not come: it is not asked for again before a time."""

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
    gpus: int = 0
    """New GPUs that the pods need."""
    least_gpus: int = 0
    """New GPUs that no packing can do without; `gpus` above it is the gap."""
    lower_bound_milli: int = 0
    """The bound of the linear program over patterns, in thousandths of a GPU."""
    patterns: tuple[DemandPattern, ...] = ()
    """What the new GPUs are to hold, at most 500."""
    requests: tuple[str, ...] = ()
    """What pods ask that `places` tell of, each once, at most 500."""
    places: tuple[DemandPlace, ...] = ()
    """Which pods are to go where, by what they ask: at most 500, with at most 5000 shares. An engine that starts anew
    goes on from there."""
    object_count: int = 0
    objects: tuple[DemandObject, ...] = ()
    """At most 500."""
    deadline: str = ""
    """RFC 3339: until when the capacity is waited for; empty: not asked for yet."""
    reasons: tuple[str, ...] = ()
    """What stands in the way, with what to change."""
    since: str = ""
    """RFC 3339: when the phase began."""
    node_claims: tuple[DemandClaim, ...] = ()
    """At most 500."""
    failures: int = 0
    """How often in a row what was asked for did not come."""
    last_failure: str = ""
    """RFC 3339."""
    blocked: tuple[BlockedType, ...] = ()

    def as_manifest(self) -> dict[str, Any]:
        """`status` as it is written; equal demand gives an equal dict, so that it is written only when it changes."""
        return self.model_dump(mode="json", by_alias=True, exclude_defaults=True) | {"phase": self.phase.value}


class GPUDemand(ObservedObject):
    status: GPUDemandStatus = GPUDemandStatus()


class DemandReport(Observed):
    """The status that the GPUDemand of that name shall have; None: it is over, and its object goes."""

    name: str
    status: GPUDemandStatus | None
