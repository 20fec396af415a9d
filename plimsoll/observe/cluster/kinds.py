"""The observed kinds: their paths, what is read of their objects, and which changes start no round."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Generic, TypeVar

from pydantic import Field
from pydantic.aliases import AliasPath

from plimsoll.errors import InvalidObjectError
from plimsoll.kube import JSON
from plimsoll.labels import API_VERSION, DO_NOT_DISRUPT, GROUP, SHARD, WORKSPACE
from plimsoll.model.api import Environment, GPUDemand, KnownNodeProfile, Workspace
from plimsoll.model.cluster import (
    Autoscaler,
    DaemonSet,
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    PodDisruptionBudget,
    ResourceQuota,
    StorageClass,
    Workload,
)
from plimsoll.model.dra import DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from plimsoll.model.kai import PodGroup, Queue, SchedulingShard, Topology
from plimsoll.model.karpenter import (
    AksNodeClass,
    CapacityBuffer,
    ClaimEvent,
    Ec2NodeClass,
    NodeClaim,
    NodeOverlay,
    NodePool,
    PodTemplate,
    ProvisioningRequest,
    RequestEvent,
)
from plimsoll.model.meta import ObservedObject
from plimsoll.observe.pods import read_pod

T = TypeVar("T", bound=ObservedObject)

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


@dataclass(frozen=True)
class Kind(Generic[T]):
    """One kind of objects in one version.

    `read` makes the stored value from an object: None for an object that is not needed; it raises InvalidObjectError
    for an invalid one. A change of the fields in `quiet` is stored but starts no round. If only the resource version
    changed, the old value is kept, unless the kind is `versioned` because its objects are written at that version.
    `definition` is the name of the CustomResourceDefinition, for kinds that a cluster may lack. `if_forbidden` says
    what does not work if the account may not list the kind, and what to change; if it is empty, nothing is planned
    without the kind. Objects of a `gathered` kind are created in groups that are planned together, so a round waits for
    the objects that follow the first.
    """

    name: str
    api_version: str
    path: str
    read: Callable[[dict[str, Any]], T | None]
    definition: str | None = None
    if_forbidden: str = ""
    selector: Mapping[str, str] = field(default_factory=dict)
    quiet: frozenset[str] = frozenset()
    versioned: bool = False
    gathered: bool = False
    accept_list: str = JSON
    accept_watch: str = JSON
    since: str = ""
    """For a kind that is Kubernetes' own: the release that serves it first. Older clusters have none of its objects."""

    def differ(self, old: T, new: T) -> bool:
        """Whether a relevant field changed. The resource version is never relevant."""
        return any(name not in self.quiet for name in _changed(old, new))

    def same(self, old: T, new: T) -> bool:
        """Whether both values are equal for all purposes, so that the old one can be kept."""
        if type(old) is not type(new) or (self.versioned and old.resource_version != new.resource_version):
            return False
        return next(_changed(old, new), None) is None

    def forbidden_warning(self, refusal: str) -> str:
        """The warning if the account may not list the kind and the controller can do without it."""
        return f"{self.name}: {refusal}; {self.if_forbidden}"


def _changed(old: ObservedObject, new: ObservedObject) -> Iterator[str]:
    """Names of the fields that differ, except the resource version."""
    before, after = vars(old), vars(new)
    return (name for name in after if name != "resource_version" and before.get(name) != after[name])


class Definition(ObservedObject):
    """A CustomResourceDefinition. Every change counts, because its metadata does not show whether it is established."""

    revision: str = Field(default="", validation_alias=AliasPath("metadata", "resourceVersion"))


def _read_node(raw: dict[str, Any]) -> Node:
    """Reads a Node without its annotations but the one that keeps it: agents write kilobytes of others frequently, and
    planning uses none."""
    notes = raw["metadata"].pop("annotations", None) or {}
    if DO_NOT_DISRUPT in notes:
        raw["metadata"]["annotations"] = {DO_NOT_DISRUPT: notes[DO_NOT_DISRUPT]}
    return Node.read(raw)


def _read_workspace(raw: dict[str, Any]) -> Workspace:
    """Reads a Workspace. An invalid status counts as missing: the controller writes it again, and the spec still
    counts."""
    try:
        return Workspace.read(raw)
    except InvalidObjectError:
        return Workspace.read({key: value for key, value in raw.items() if key != "status"})


def _read_request_event(raw: dict[str, Any]) -> RequestEvent | None:
    """Reads an answer of an autoscaler; other Events are not needed."""
    event = RequestEvent.read(raw)
    return None if event.phase is None else event


def _read_namespace(raw: dict[str, Any]) -> Namespace:
    """Reads a Namespace without its annotations, which are not used."""
    raw["metadata"].pop("annotations", None)
    return Namespace.read(raw)


def _read_quota(raw: dict[str, Any]) -> ResourceQuota | None:
    """Reads a ResourceQuota that limits pods or claims; nothing else of it is used."""
    quota = ResourceQuota.read(raw)
    return quota if quota.counts_pods or quota.counts_claims else None


def _workloads(name: str, plural: str) -> Kind[Workload]:
    return Kind(name, "apps/v1", f"/apis/apps/v1/{plural}", Workload.read, selector={"labelSelector": WORKSPACE})


def _of_volumes(
    name: str, api_version: str, path: str, read: Callable[[dict[str, Any]], T | None], *quiet: str
) -> Kind[T]:
    return Kind(
        name,
        api_version,
        path,
        read,
        if_forbidden="pods with PersistentVolumeClaims get no capacity: apply the foundation stack, which grants the "
        "right to list and watch claims, volumes and StorageClasses",
        quiet=frozenset(quiet),
    )


# The annotation that keeps a node is shown, and planning does not use it.
NODES: Final = Kind("Node", "v1", "/api/v1/nodes", _read_node, quiet=frozenset({"annotations"}))
PODS: Final = Kind(
    "Pod",
    "v1",
    "/api/v1/pods",
    read_pod,
    selector={"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"},
    quiet=frozenset({"started"}),
    gathered=True,
)
NODE_CLAIMS: Final = Kind(
    "NodeClaim", "karpenter.sh/v1", "/apis/karpenter.sh/v1/nodeclaims", NodeClaim.read, "nodeclaims.karpenter.sh"
)
NODE_POOLS: Final = Kind(
    "NodePool", "karpenter.sh/v1", "/apis/karpenter.sh/v1/nodepools", NodePool.read, "nodepools.karpenter.sh"
)
NODE_OVERLAYS: Final = Kind(
    "NodeOverlay",
    "karpenter.sh/v1alpha1",
    "/apis/karpenter.sh/v1alpha1/nodeoverlays",
    NodeOverlay.read,
    "nodeoverlays.karpenter.sh",
    if_forbidden="pods that request devices of a NodeOverlay are reported as refused: apply the foundation stack, "
    "which grants the right to list and watch NodeOverlays",
    quiet=frozenset({"labels", "annotations"}),
)
NODE_CLASSES: Final = Kind(
    "EC2NodeClass",
    "karpenter.k8s.aws/v1",
    "/apis/karpenter.k8s.aws/v1/ec2nodeclasses",
    Ec2NodeClass.read,
    "ec2nodeclasses.karpenter.k8s.aws",
    if_forbidden="reservations and disks of new nodes are not checked: apply the foundation stack, which grants the "
    "right to list and watch EC2NodeClasses",
    quiet=frozenset({"labels", "annotations"}),
)
AKS_NODE_CLASSES: Final = Kind(
    "AKSNodeClass",
    "karpenter.azure.com/v1beta1",
    "/apis/karpenter.azure.com/v1beta1/aksnodeclasses",
    AksNodeClass.read,
    "aksnodeclasses.karpenter.azure.com",
    if_forbidden="disks of new nodes are not checked: apply the foundation stack, which grants the right to list and "
    "watch AKSNodeClasses",
    quiet=frozenset({"labels", "annotations"}),
)
CLAIM_EVENTS: Final = Kind(
    "Event",
    "v1",
    # Events about cluster-scoped objects are in `default`. In other namespaces, tenants may write Events about them.
    "/api/v1/namespaces/default/events",
    ClaimEvent.read,
    selector={"fieldSelector": "involvedObject.kind=NodeClaim,reason=InsufficientCapacityError"},
)
_REQUEST_EVENTS: Final = Kind(
    # Not only "Event", which would be the name of two kinds in messages.
    "Event on requested capacity",
    "v1",
    "",
    _read_request_event,
    if_forbidden="what autoscalers say of requested capacity is not shown: grant the right to list and watch events in "
    "the namespace of `spec.demand.namespace`",
    # An autoscaler that repeats itself says nothing new.
    quiet=frozenset({"last_timestamp", "last_observed_time"}),
)


def request_events(namespace: str) -> Kind[RequestEvent]:
    """Events about the objects that request nodes: they are in the namespace of these objects, where only those may
    write Events whom an administrator gave the right."""
    return replace(_REQUEST_EVENTS, path=f"/api/v1/namespaces/{namespace}/events")


QUEUES: Final = Kind(
    "Queue",
    "scheduling.run.ai/v2",
    "/apis/scheduling.run.ai/v2/queues",
    Queue.read,
    "queues.scheduling.run.ai",
    quiet=frozenset({"status"}),
)
POD_GROUPS: Final = Kind(
    "PodGroup",
    "scheduling.run.ai/v2alpha2",
    "/apis/scheduling.run.ai/v2alpha2/podgroups",
    PodGroup.read,
    "podgroups.scheduling.run.ai",
    quiet=frozenset({"labels", "annotations"}),
    gathered=True,
)
TOPOLOGIES: Final = Kind(
    "Topology",
    "kai.scheduler/v1alpha1",
    "/apis/kai.scheduler/v1alpha1/topologies",
    Topology.read,
    "topologies.kai.scheduler",
    if_forbidden="levels that PodGroups require are taken for labels of nodes: apply the foundation stack, which "
    "grants the right to list and watch Topologies",
    quiet=frozenset({"labels", "annotations"}),
)
SCHEDULING_SHARDS: Final = Kind(
    "SchedulingShard",
    "kai.scheduler/v1",
    "/apis/kai.scheduler/v1/schedulingshards",
    SchedulingShard.read,
    "schedulingshards.kai.scheduler",
    if_forbidden="where KAI spreads pods is taken from demand.placement alone: apply the foundation stack, which "
    "grants the right to list and watch SchedulingShards",
    quiet=frozenset({"labels", "annotations"}),
)
WORKSPACES: Final = Kind(
    "Workspace",
    API_VERSION,
    f"/apis/{API_VERSION}/workspaces",
    _read_workspace,
    f"workspaces.{GROUP}",
    quiet=frozenset({"status", "finalizers"}),
    versioned=True,
)
ENVIRONMENTS: Final = Kind(
    "Environment",
    API_VERSION,
    f"/apis/{API_VERSION}/environments",
    Environment.read,
    f"environments.{GROUP}",
    quiet=frozenset({"status"}),
    versioned=True,
)
DEPLOYMENTS: Final = _workloads("Deployment", "deployments")
STATEFUL_SETS: Final = _workloads("StatefulSet", "statefulsets")
LEADER_WORKER_SETS: Final = Kind(
    "LeaderWorkerSet",
    "leaderworkerset.x-k8s.io/v1",
    "/apis/leaderworkerset.x-k8s.io/v1/leaderworkersets",
    Workload.read,
    "leaderworkersets.leaderworkerset.x-k8s.io",
    selector={"labelSelector": WORKSPACE},
)
SERVICES: Final = Kind(
    "Service",
    "v1",
    "/api/v1/services",
    Workload.read,
    if_forbidden="Workspaces get no Services: apply the foundation stack, which grants the right to them",
    selector={"labelSelector": WORKSPACE},
)
AUTOSCALERS: Final = Kind(
    "HorizontalPodAutoscaler",
    "autoscaling/v2",
    "/apis/autoscaling/v2/horizontalpodautoscalers",
    Autoscaler.read,
    quiet=frozenset({"labels", "annotations"}),
)
DAEMON_SETS: Final = Kind(
    "DaemonSet",
    "apps/v1",
    "/apis/apps/v1/daemonsets",
    DaemonSet.read,
    if_forbidden="what DaemonSets take of new nodes is not counted, so that pods may be planned onto nodes that are "
    "too small: apply the foundation stack, which grants the right to list and watch them",
    quiet=frozenset({"labels", "annotations"}),
)
NAMESPACES: Final = Kind(
    "Namespace",
    "v1",
    "/api/v1/namespaces",
    _read_namespace,
    if_forbidden="Pod Security of namespaces is not checked before nodes are provisioned: apply the foundation stack, "
    "which grants the right to list and watch them",
)
RESOURCE_QUOTAS: Final = Kind(
    "ResourceQuota",
    "v1",
    "/api/v1/resourcequotas",
    _read_quota,
    if_forbidden="ResourceQuotas bound no GPU shares and no nodes of Workspaces: apply the foundation stack, which "
    "grants the right to list and watch them",
    quiet=frozenset({"labels", "annotations"}),
)
DISRUPTION_BUDGETS: Final = Kind(
    "PodDisruptionBudget",
    "policy/v1",
    "/apis/policy/v1/poddisruptionbudgets",
    PodDisruptionBudget.read,
    if_forbidden="PodDisruptionBudgets that keep a node from being drained are not named: apply the foundation stack, "
    "which grants the right to list and watch them",
    # They are told, and change no plan.
    quiet=frozenset({"labels", "annotations", "selector", "evicts_unhealthy", "allowed"}),
)
VOLUME_CLAIMS: Final = _of_volumes(
    "PersistentVolumeClaim", "v1", "/api/v1/persistentvolumeclaims", PersistentVolumeClaim.read, "labels", "annotations"
)
VOLUMES: Final = _of_volumes(
    "PersistentVolume", "v1", "/api/v1/persistentvolumes", PersistentVolume.read, "annotations"
)
STORAGE_CLASSES: Final = _of_volumes(
    "StorageClass", "storage.k8s.io/v1", "/apis/storage.k8s.io/v1/storageclasses", StorageClass.read, "labels"
)
GPU_DEMANDS: Final = Kind(
    "GPUDemand",
    API_VERSION,
    f"/apis/{API_VERSION}/gpudemands",
    GPUDemand.read,
    f"gpudemands.{GROUP}",
)
NODE_PROFILES: Final = Kind(
    "NodeProfile",
    API_VERSION,
    f"/apis/{API_VERSION}/nodeprofiles",
    KnownNodeProfile.read,
    f"nodeprofiles.{GROUP}",
    if_forbidden="what nodes of empty NodePools offer is taken from the catalog alone: apply the foundation stack, "
    "which grants the right to list and watch them",
    quiet=frozenset({"labels", "annotations"}),
)
_RESOURCE: Final = "resource.k8s.io/v1"


def _of_dra(name: str, plural: str, read: Callable[[dict[str, Any]], T | None]) -> Kind[T]:
    """A kind of Dynamic Resource Allocation."""
    return Kind(
        name,
        _RESOURCE,
        f"/apis/{_RESOURCE}/{plural}",
        read,
        if_forbidden="devices that pods get by claims are not seen: apply the foundation stack, which grants the right "
        "to list and watch them",
        quiet=frozenset({"labels", "annotations"}),
        since="1.34",
    )


RESOURCE_SLICES: Final = _of_dra("ResourceSlice", "resourceslices", ResourceSlice.read)
DEVICE_CLASSES: Final = _of_dra("DeviceClass", "deviceclasses", DeviceClass.read)
RESOURCE_CLAIMS: Final = _of_dra("ResourceClaim", "resourceclaims", ResourceClaim.read)
RESOURCE_CLAIM_TEMPLATES: Final = _of_dra("ResourceClaimTemplate", "resourceclaimtemplates", ResourceClaimTemplate.read)
POD_TEMPLATES: Final = Kind(
    "PodTemplate", "v1", "/api/v1/podtemplates", PodTemplate.read, selector={"labelSelector": SHARD}
)
CAPACITY_BUFFERS: Final = Kind(
    "CapacityBuffer",
    "autoscaling.x-k8s.io/v1beta1",
    "/apis/autoscaling.x-k8s.io/v1beta1/capacitybuffers",
    CapacityBuffer.read,
    "capacitybuffers.autoscaling.x-k8s.io",
    selector={"labelSelector": SHARD},
)
PROVISIONING_REQUESTS: Final = Kind(
    "ProvisioningRequest",
    "autoscaling.x-k8s.io/v1",
    "/apis/autoscaling.x-k8s.io/v1/provisioningrequests",
    ProvisioningRequest.read,
    "provisioningrequests.autoscaling.x-k8s.io",
    selector={"labelSelector": SHARD},
)
CUSTOM: Final[frozenset[str | None]] = frozenset(
    kind.definition
    for kind in (
        NODE_CLAIMS,
        NODE_POOLS,
        NODE_OVERLAYS,
        NODE_CLASSES,
        AKS_NODE_CLASSES,
        QUEUES,
        POD_GROUPS,
        TOPOLOGIES,
        SCHEDULING_SHARDS,
        WORKSPACES,
        ENVIRONMENTS,
        LEADER_WORKER_SETS,
        GPU_DEMANDS,
        NODE_PROFILES,
        CAPACITY_BUFFERS,
        PROVISIONING_REQUESTS,
    )
)


def _read_definition(raw: dict[str, Any]) -> Definition | None:
    definition = Definition.read(raw)
    return definition if definition.name in CUSTOM else None


DEFINITIONS: Final = Kind(
    "CustomResourceDefinition",
    "apiextensions.k8s.io/v1",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    _read_definition,
    # The definitions of a cluster have megabytes of schemas, so only their metadata is requested.
    accept_list=f"{JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
    accept_watch=f"{JSON};as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
)
