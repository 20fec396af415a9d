"""Snapshot: what the cluster held at one moment, as far as capacity is planned on it."""

from collections.abc import Mapping

from pydantic import Field

from plimsoll.model.api import Environment, GPUDemand, Workspace, WorkspaceRef
from plimsoll.model.cluster import Autoscaler, DaemonSet, HostLoad, InstanceType, Node, Pod, Workload
from plimsoll.model.kai import PodGroup, Queue
from plimsoll.model.karpenter import CapacityBuffer, ClaimEvent, NodeClaim, NodePool, PodTemplate, ProvisioningRequest
from plimsoll.model.meta import Observed


class InvalidWorkspace(Observed):
    """A Workspace that cannot be read (made before its CRD forbade it, or from a file): refused by name."""

    ref: WorkspaceRef
    message: str
    deletion_timestamp: str | None = None
    finalizers: tuple[str, ...] = ()

    @property
    def deleting(self) -> bool:
        return self.deletion_timestamp is not None


class Snapshot(Observed):
    """Every tuple in any order: planning sorts what it needs."""

    environment: Environment
    workspaces: tuple[Workspace, ...] = ()
    invalid_workspaces: tuple[InvalidWorkspace, ...] = ()
    nodes: tuple[Node, ...] = ()
    node_claims: tuple[NodeClaim, ...] = ()
    node_pools: tuple[NodePool, ...] = ()
    claim_events: tuple[ClaimEvent, ...] = ()
    """What providers said of NodeClaims that they could not launch."""
    gone_claims: tuple[NodeClaim, ...] = ()
    """NodeClaims that were seen and are no more, the last ones."""
    pods: tuple[Pod, ...] = ()
    """Those that ask for devices or shares of them, our own, and those of rivals."""
    host_loads: Mapping[str, HostLoad] = Field(default_factory=dict)
    """What all other pods take of nodes, by name of the node."""
    daemon_sets: tuple[DaemonSet, ...] = ()
    queues: tuple[Queue, ...] = ()
    pod_groups: tuple[PodGroup, ...] = ()
    workloads: tuple[Workload, ...] = ()
    """Objects that carry our ownership labels, other than NodeClaims."""
    autoscalers: tuple[Autoscaler, ...] = ()
    gpu_demands: tuple[GPUDemand, ...] = ()
    pod_templates: tuple[PodTemplate, ...] = ()
    """Those that our stacks own, as the two that follow."""
    capacity_buffers: tuple[CapacityBuffer, ...] = ()
    provisioning_requests: tuple[ProvisioningRequest, ...] = ()
    gone: frozenset[str] = frozenset()
    """UIDs of the last objects, of kinds that a Plan creates, that were seen and are no more."""
    instance_types: tuple[InstanceType, ...] = ()
    """Instance types as the APIs of clouds tell them: more and newer than the built-in table."""
    missing_kinds: tuple[str, ...] = ()
    """Kinds that are planned with and that the cluster does not serve; empty where nobody knows."""
    warnings: tuple[str, ...] = ()
    """What observing found and left out, such as an object that cannot be read."""
