"""Verdict: whether a Workspace is accepted, why, and what to change."""

from enum import StrEnum

from plimsoll.model.api import Alternative, WorkspaceRef
from plimsoll.model.meta import Observed
from plimsoll.model.serving import Serving


class Reason(StrEnum):
    """The closed list of reasons; conditions and `plan --output json` carry them."""

    ACCEPTED = "Accepted"
    # shape and mode
    INVALID_SPEC = "InvalidSpec"
    INSTANCE_TYPE_FORBIDDEN = "InstanceTypeForbidden"
    INSTANCE_TYPE_REQUIRED = "InstanceTypeRequired"
    UNSUPPORTED_INSTANCE_TYPE = "UnsupportedInstanceType"
    SELECTOR_RESERVED = "SelectorReserved"
    UNKNOWN_PRESET = "UnknownPreset"
    NOT_SUPPORTED = "NotSupported"
    # nodes
    NO_MATCHING_NODES = "NoMatchingNodes"
    NO_USABLE_NODES = "NoUsableNodes"
    NO_FREE_NODES = "NoFreeNodes"
    GPU_LABELS_INVALID = "GPULabelsInvalid"
    NON_UNIFORM_NODES = "NonUniformNodes"
    INSUFFICIENT_GPU_MEMORY = "InsufficientGPUMemory"
    # what the environment allows
    NOT_ALLOWED = "NotAllowed"
    LIMIT_EXCEEDED = "LimitExceeded"
    # a fault of Plimsoll itself, which is not the Workspace's
    INTERNAL_ERROR = "InternalError"


class Verdict(Observed):
    """The result of validating one Workspace against one snapshot."""

    workspace: WorkspaceRef
    accepted: bool
    reason: Reason
    message: str
    """What was found, with names and values; for a refusal also what to change."""
    deleting: bool = False
    """Whether the Workspace is being deleted: nothing is planned for it, and the message says what keeps it."""
    per_replica_node_count: int | None = None
    target_node_count: int | None = None
    node_names: tuple[str, ...] = ()
    """BYO: the usable nodes that the selector matches, sorted."""
    allocated_nodes: tuple[str, ...] = ()
    """BYO: the nodes of these that are allocated to this Workspace, sorted."""
    startable_replicas: int | None = None
    """BYO: replicas that may start, if more would use nodes of others or start in part; None: all of them."""
    surge: int | None = None
    """BYO: pods that a rollout may have more than replicas, for which nodes are free; None: not with this strategy."""
    node_labels: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """BYO: labels that the pods' nodes must have, each with its values; an empty value: or no such label."""
    alternative: Alternative | None = None
    """What was chosen for new nodes, where the Workspace names several instance types or ways to pay."""
    move_back_to: Alternative | None = None
    """The first of these, if its replicas run on another and move to it once all of its nodes are Ready."""
    gpus_per_node: int | None = None
    """Devices that a pod requests for a whole node, or for its part of one; None if they are not known."""
    device_resource: str | None = None
    """The extended resource of these devices; None: the Environment's."""
    serving: Serving | None = None
    """How the server of a preset runs one replica, and the context that it serves; None for a template."""
    warnings: tuple[str, ...] = ()
