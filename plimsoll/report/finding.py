"""What a condition of a Workspace finds, before it has times."""

from enum import StrEnum
from typing import NamedTuple

from plimsoll.plan.owned import Failed


class ConditionReason(StrEnum):
    """The closed list of reasons beside those of refusals, which stand on ResourceReady."""

    READY = "Ready"
    NOT_NEEDED = "NotNeeded"
    REFUSED = "Refused"
    NODE_CLAIMS_PENDING = "NodeClaimsPending"
    NODE_CLAIM_NOT_LAUNCHED = "NodeClaimNotLaunched"
    NODE_CLAIM_NOT_REGISTERED = "NodeClaimNotRegistered"
    NODE_CLAIM_NOT_INITIALIZED = "NodeClaimNotInitialized"
    NODE_CLAIM_NOT_READY = "NodeClaimNotReady"
    NODE_CLAIM_LATE = Failed.LATE.value
    NODE_CLAIM_LOST = Failed.LOST.value
    INSUFFICIENT_CAPACITY = Failed.INSUFFICIENT_CAPACITY.value
    NODES_NOT_READY = "NodesNotReady"
    WORKLOAD_PENDING = "WorkloadPending"
    WORKLOAD_NOT_READY = "WorkloadNotReady"


class Finding(NamedTuple):
    """One condition before it has times."""

    ready: bool
    reason: str
    message: str
