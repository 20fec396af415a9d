"""The kinds that are observed: where they are listed, what is read of them, what may change without waking anybody."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Generic, TypeVar

import orjson
from pydantic import Field
from pydantic.aliases import AliasPath

from plimsoll.connection import JSON
from plimsoll.model.autoscaler import Autoscaler
from plimsoll.model.base import ObservedObject
from plimsoll.model.capacity_buffer import CapacityBuffer
from plimsoll.model.claim_event import ClaimEvent
from plimsoll.model.environment import Environment
from plimsoll.model.errors import InvalidObjectError
from plimsoll.model.gpu_demand import GPUDemand
from plimsoll.model.gpu_group import RESERVED_GPU
from plimsoll.model.labels import API_VERSION, GROUP, SHARD, WORKSPACE
from plimsoll.model.node import Node
from plimsoll.model.node_claim import NodeClaim
from plimsoll.model.node_pool import NodePool
from plimsoll.model.pod import Pod
from plimsoll.model.pod_group import POD_GROUP_NAME, PodGroup
from plimsoll.model.provisioning_request import ProvisioningRequest
from plimsoll.model.queue import Queue
from plimsoll.model.share import GPU_FRACTION, GPU_FRACTION_DEVICES, GPU_MEMORY_SHARE
from plimsoll.model.template import PodTemplate
from plimsoll.model.workload import Workload
from plimsoll.model.workspace import Workspace
from plimsoll.plan.gangs import LWS_SIZE
from plimsoll.plan.rivals import is_rival
from plimsoll.plan.trigger_pod import ORIGINAL_REQUESTS

T = TypeVar("T", bound=ObservedObject)

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
SHARE_ANNOTATIONS: Final = (GPU_FRACTION, GPU_MEMORY_SHARE, GPU_FRACTION_DEVICES)
"""KAI's annotations of a pod that asks for a share of a GPU."""
PLANNED_ON: Final = frozenset({*SHARE_ANNOTATIONS, *ORIGINAL_REQUESTS, RESERVED_GPU, POD_GROUP_NAME, LWS_SIZE})
"""Annotations of pods that are planned on, beside our own; networks and meshes write kilobytes of others."""


@dataclass(frozen=True)
class Kind(Generic[T]):
    """One kind of objects in one version.

    `read` makes the value that is kept: None for an object of no interest, InvalidObjectError for one that does
    not fit. `quiet` names the fields whose change is kept but wakes nobody. Where no other field than the resource
    version changed, the old value is kept, unless it is `versioned`: written at that version. `definition` names the
    CustomResourceDefinition of a kind that a cluster may lack.
    """

    name: str
    api_version: str
    path: str
    read: Callable[[dict[str, Any]], T | None]
    definition: str | None = None
    selector: Mapping[str, str] = field(default_factory=dict)
    quiet: frozenset[str] = frozenset()
    versioned: bool = False
    accept_list: str = JSON
    accept_watch: str = JSON

    def differ(self, old: T, new: T) -> bool:
        """Whether a field that can matter changed; the resource version alone never does."""
        return any(name not in self.quiet for name in _changed(old, new))

    def same(self, old: T, new: T) -> bool:
        """Whether the old value says all that the new one does."""
        if type(old) is not type(new) or (self.versioned and old.resource_version != new.resource_version):
            return False
        return next(_changed(old, new), None) is None


def _changed(old: ObservedObject, new: ObservedObject) -> Iterator[str]:
    """Names of the fields that differ, without the resource version."""
    before, after = vars(old), vars(new)
    return (name for name in after if name != "resource_version" and before.get(name) != after[name])


class Definition(ObservedObject):
    """A CustomResourceDefinition. Whether it is established is not in its metadata: each change may have made it so."""

    revision: str = Field(default="", validation_alias=AliasPath("metadata", "resourceVersion"))


def _read_node(raw: dict[str, Any]) -> Node:
    """Without annotations: agents write kilobytes of them, again and again, and nothing is planned on them."""
    raw["metadata"].pop("annotations", None)
    return Node.read(raw)


def _read_pod(raw: dict[str, Any]) -> Pod | None:
    """Keeps pods that ask for devices or for a share of one, our own, and those of rivals; of a container what it asks
    for, and of the conditions the one that scheduling goes by.

    A pod asks for devices when it names an extended resource (one with a domain other than kubernetes.io): which
    of them are GPUs is the Environment's to say, and may change.
    """
    metadata = raw.get("metadata") or {}
    spec = raw.get("spec") or {}
    ours = any(str(key).startswith(f"{GROUP}/") for key in metadata.get("labels") or {})
    shares = any(key in (metadata.get("annotations") or {}) for key in SHARE_ANNOTATIONS)
    groups = {name: spec.get(name) or [] for name in ("containers", "initContainers")}
    rival = is_rival(str(metadata.get("name") or ""))
    if not (ours or shares or rival or any(_asks_devices(item) for items in groups.values() for item in items)):
        return None
    kept = {key: value for key, value in (metadata.get("annotations") or {}).items() if _is_planned_on(key)}
    return Pod.read(trimmed_pod({**raw, "metadata": {**metadata, "annotations": kept}}))


def _is_planned_on(annotation: str) -> bool:
    return annotation in PLANNED_ON or annotation.startswith(f"{GROUP}/")


def trimmed_pod(raw: dict[str, Any]) -> dict[str, Any]:
    """The manifest of a pod with what is kept of it."""
    spec, status = raw.get("spec") or {}, raw.get("status") or {}
    containers = {name: [_trimmed(item) for item in spec.get(name) or ()] for name in ("containers", "initContainers")}
    conditions = [item for item in status.get("conditions") or () if _says_unscheduled(item)]
    return {**raw, "spec": spec | containers, "status": status | {"conditions": conditions}}


def _says_unscheduled(condition: Any) -> bool:
    return isinstance(condition, dict) and condition.get("type") == "PodScheduled"


def _asks_devices(container: Any) -> bool:
    resources = container.get("resources") if isinstance(container, dict) else None
    return any(
        "/" in resource and not resource.partition("/")[0].endswith("kubernetes.io")
        for part in ("requests", "limits")
        for resource in (resources or {}).get(part) or {}
    )


def _trimmed(container: Any) -> Any:
    if not isinstance(container, dict):
        return container
    kept = {key: container[key] for key in ("name", "restartPolicy") if key in container}
    if container.get("resources"):
        kept["resources"] = _shared(orjson.dumps(container["resources"]))
    return kept


@lru_cache(maxsize=4096)
def _shared(text: bytes) -> Any:
    """One value for all that are alike: a hundred thousand pods ask for a few hundred different things."""
    return orjson.loads(text)


def _read_workspace(raw: dict[str, Any]) -> Workspace:
    """A status that does not fit is taken as absent: it is ours to write, and must not hide what people declare."""
    try:
        return Workspace.read(raw)
    except InvalidObjectError:
        return Workspace.read({key: value for key, value in raw.items() if key != "status"})


def _workloads(name: str, plural: str) -> Kind[Workload]:
    return Kind(name, "apps/v1", f"/apis/apps/v1/{plural}", Workload.read, selector={"labelSelector": WORKSPACE})


NODES: Final = Kind("Node", "v1", "/api/v1/nodes", _read_node)
PODS: Final = Kind(
    "Pod",
    "v1",
    "/api/v1/pods",
    _read_pod,
    selector={"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"},
)
NODE_CLAIMS: Final = Kind(
    "NodeClaim", "karpenter.sh/v1", "/apis/karpenter.sh/v1/nodeclaims", NodeClaim.read, "nodeclaims.karpenter.sh"
)
NODE_POOLS: Final = Kind(
    "NodePool", "karpenter.sh/v1", "/apis/karpenter.sh/v1/nodepools", NodePool.read, "nodepools.karpenter.sh"
)
CLAIM_EVENTS: Final = Kind(
    "Event",
    "v1",
    "/api/v1/events",
    ClaimEvent.read,
    selector={"fieldSelector": "involvedObject.kind=NodeClaim,reason=InsufficientCapacityError"},
)
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
AUTOSCALERS: Final = Kind(
    "HorizontalPodAutoscaler",
    "autoscaling/v2",
    "/apis/autoscaling/v2/horizontalpodautoscalers",
    Autoscaler.read,
    quiet=frozenset({"labels", "annotations"}),
)
GPU_DEMANDS: Final = Kind(
    "GPUDemand",
    API_VERSION,
    f"/apis/{API_VERSION}/gpudemands",
    GPUDemand.read,
    f"gpudemands.{GROUP}",
)
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
        QUEUES,
        POD_GROUPS,
        WORKSPACES,
        ENVIRONMENTS,
        LEADER_WORKER_SETS,
        GPU_DEMANDS,
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
    # The schemas of a cluster's definitions are megabytes, their metadata is not.
    accept_list=f"{JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
    accept_watch=f"{JSON};as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
)
