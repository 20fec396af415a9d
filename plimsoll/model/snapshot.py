"""Snapshot: the state of the cluster at one moment, as far as planning needs it."""

from collections.abc import Mapping

from pydantic import Field

from plimsoll.model.api import DeclaredPreset, Environment, GPUDemand, KnownNodeProfile, Workspace, WorkspaceRef
from plimsoll.model.cluster import (
    Autoscaler,
    DaemonSet,
    HostLoad,
    InstanceType,
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    ResourceQuota,
    StorageClass,
    Workload,
)
from plimsoll.model.dra import DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from plimsoll.model.kai import PodGroup, Queue, SchedulingShard, Topology
from plimsoll.model.karpenter import (
    CapacityBuffer,
    ClaimEvent,
    NodeClaim,
    NodeClass,
    NodeOverlay,
    NodePool,
    PodTemplate,
    ProvisioningRequest,
    RequestEvent,
)
from plimsoll.model.meta import Observed
from plimsoll.model.refusal import Refusal


class InvalidObject(Observed):
    """An object that cannot be read (created before its CRD forbade it, or from a file): a Workspace is refused by
    name, others are skipped with a warning."""

    ref: WorkspaceRef
    """Identity of the object, of whichever kind."""
    message: str
    deletion_timestamp: str | None = None
    finalizers: tuple[str, ...] = ()
    replicas: int | None = None
    """`inference.replicas` of a Workspace, 1 if `inference` has none, None if it is no number; fewer replicas than run
    are applied."""
    per_replica_node_count: int | None = None
    """Nodes of one replica, by its status."""

    @property
    def deleting(self) -> bool:
        return self.deletion_timestamp is not None


class Snapshot(Observed):
    """The tuples are unordered."""

    environment: Environment
    workspaces: tuple[Workspace, ...] = ()
    invalid_workspaces: tuple[InvalidObject, ...] = ()
    nodes: tuple[Node, ...] = ()
    node_claims: tuple[NodeClaim, ...] = ()
    node_pools: tuple[NodePool, ...] = ()
    node_overlays: tuple[NodeOverlay, ...] = ()
    node_classes: tuple[NodeClass, ...] = ()
    claim_events: tuple[ClaimEvent, ...] = ()
    """Messages of providers on NodeClaims that they could not launch."""
    request_events: tuple[RequestEvent, ...] = ()
    """Answers of autoscalers to the objects that request nodes for demand. They are shown, and change no plan."""
    gone_claims: tuple[NodeClaim, ...] = ()
    """The last NodeClaims that were observed and no longer exist."""
    pods: tuple[Pod, ...] = ()
    """Pods that request devices or shares of them, Plimsoll's own, and those of controllers that compete with it."""
    host_loads: Mapping[str, HostLoad] = Field(default_factory=dict)
    """CPU and memory that all other pods use, and what rules about pods see of them, by node name."""
    daemon_sets: tuple[DaemonSet, ...] = ()
    namespaces: tuple[Namespace, ...] = ()
    resource_quotas: tuple[ResourceQuota, ...] = ()
    disruption_budgets: tuple[PodDisruptionBudget, ...] = ()
    """They are read into what the NodeClaims' `blocking` says."""
    volume_claims: tuple[PersistentVolumeClaim, ...] | None = None
    """None: not read, so that nothing is known of any."""
    volumes: tuple[PersistentVolume, ...] = ()
    storage_classes: tuple[StorageClass, ...] = ()
    queues: tuple[Queue, ...] = ()
    pod_groups: tuple[PodGroup, ...] = ()
    topologies: tuple[Topology, ...] = ()
    scheduling_shards: tuple[SchedulingShard, ...] = ()
    workloads: tuple[Workload, ...] = ()
    """Objects with Plimsoll's ownership labels, other than NodeClaims."""
    autoscalers: tuple[Autoscaler, ...] = ()
    gpu_demands: tuple[GPUDemand, ...] = ()
    node_profiles: tuple[KnownNodeProfile, ...] = ()
    resource_slices: tuple[ResourceSlice, ...] = ()
    device_classes: tuple[DeviceClass, ...] = ()
    resource_claims: tuple[ResourceClaim, ...] = ()
    resource_claim_templates: tuple[ResourceClaimTemplate, ...] = ()
    """These four are read into the nodes' `published` and the pods' `claimed`."""
    pod_templates: tuple[PodTemplate, ...] = ()
    """PodTemplates that the capacity stacks own; the next two fields also have only objects of the stacks."""
    capacity_buffers: tuple[CapacityBuffer, ...] = ()
    provisioning_requests: tuple[ProvisioningRequest, ...] = ()
    gone: frozenset[str] = frozenset()
    """UIDs of the last observed objects, of kinds that a Plan creates, that no longer exist."""
    recorded: frozenset[str] | None = None
    """UIDs of the objects in the states of the capacity stacks; None: the states were not read."""
    instance_types: tuple[InstanceType, ...] = ()
    """Instance types of the clouds' APIs; more and newer than the built-in table."""
    hub_models: tuple[DeclaredPreset, ...] = ()
    """Models that Workspaces name and the Environment's hub has."""
    hub_refusals: Mapping[str, str] = Field(default_factory=dict)
    """Why such a model cannot be read, by its name."""
    refused_workloads: Mapping[str, Refusal] = Field(default_factory=dict)
    """Why the apiserver does not accept the workload of a Workspace in a dry run, by the Workspace's UID; only of those
    for which nodes would be requested. Of a cluster that is only read: what the statuses say."""
    missing_kinds: tuple[str, ...] = ()
    """Kinds that planning needs and that the cluster does not serve; empty if not known."""
    skipped: int = 0
    """Objects in files that planning does not read; `warnings` has their kinds."""
    warnings: tuple[str, ...] = ()
    """Warnings of observing, such as on an object that cannot be read."""
    stale: tuple[str, ...] = ()
    """Why it may show an old state: those of the warnings about broken watches and a state that cannot be read."""
