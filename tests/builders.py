"""Builders of the objects of a cluster. A test sets the fields that it is about; the rest have defaults."""

from collections.abc import Iterable, Mapping
from typing import Any

from plimsoll import labels
from plimsoll.model import Snapshot
from plimsoll.model.api import Environment, GPUDemand, KnownNodeProfile, Workspace, profile_name
from plimsoll.model.cluster import (
    Autoscaler,
    DaemonSet,
    HostLoad,
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    PlainPod,
    Pod,
    PodLoad,
    ResourceQuota,
    StorageClass,
    Workload,
)
from plimsoll.model.kai import PodGroup, Queue, SchedulingShard, Topology
from plimsoll.model.karpenter import AksNodeClass, Ec2NodeClass, NodeClaim, NodeOverlay, NodePool
from plimsoll.presets import ModelCatalog

A100 = "NVIDIA-A100-SXM4-80GB"
A100_MIB = 81920
V100 = "Tesla-V100-SXM2-32GB"
V100_MIB = 32768
NC24 = "Standard_NC24ads_A100_v4"
"""1 x A100 of 80 GiB, in the built-in catalog."""


def metadata(name: str, namespace: str = "", **fields: Any) -> dict[str, Any]:
    """Metadata without fields that are None or empty."""
    given = {"name": name, "namespace": namespace, **fields}
    return {key: value for key, value in given.items() if value}


def gpu_labels(
    product: str | None = A100, count: int | str | None = 1, memory: int | str | None = A100_MIB
) -> dict[str, str]:
    """GFD's labels; those that are None are left out."""
    values = {labels.GPU_PRODUCT: product, labels.GPU_COUNT: count, labels.GPU_MEMORY: memory}
    return {key: str(value) for key, value in values.items() if value is not None}


def a_node(
    name: str = "node",
    pool: str | None = "a",
    *,
    product: str | None = A100,
    count: int | str | None = 1,
    memory: int | str | None = A100_MIB,
    ready: bool | None = True,
    cordoned: bool = False,
    deleting: bool = False,
    allocatable: int | str | None = None,
    instance_type: str | None = None,
    provider_id: str = "",
    taints: Iterable[str] = (),
    more_labels: dict[str, str] | None = None,
) -> Node:
    """A node of the pool that a_workspace selects; `ready=None` leaves out every condition."""
    own = {"pool": pool, labels.INSTANCE_TYPE: instance_type}
    manifest = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata(
            name,
            labels={key: value for key, value in own.items() if value}
            | gpu_labels(product, count, memory)
            | (more_labels or {}),
            deletionTimestamp="2026-01-01T01:00:00Z" if deleting else None,
        ),
        "spec": {
            "unschedulable": cordoned,
            "providerID": provider_id,
            "taints": [{"key": key, "effect": "NoSchedule"} for key in taints],
        },
        "status": {
            **({} if ready is None else {"conditions": [{"type": "Ready", "status": str(ready)}]}),
            "allocatable": {} if allocatable is None else {labels.GPU_RESOURCE: str(allocatable)},
        },
    }
    return Node.read(manifest)


def a_gpu_node(
    name: str = "node",
    product: str = A100,
    *,
    gpus: int = 1,
    memory: int = 24576,
    cpu: str = "64",
    host_memory: str = "256Gi",
    storage: str = "1Ti",
    instance_type: str | None = None,
    taints: Iterable[str] = (),
    more_labels: dict[str, str] | None = None,
) -> Node:
    """A Ready node whose GPUs, CPU, memory and storage are allocatable; GFD spells products with dashes."""
    plain = a_node(
        name, None, product=product.replace(" ", "-"), count=gpus, memory=memory, allocatable=gpus,
        instance_type=instance_type, taints=taints, more_labels=more_labels,
    )  # fmt: skip
    host = {"cpu": cpu, "memory": host_memory, "ephemeral-storage": storage}
    return plain.model_copy(update={"allocatable": plain.allocatable | host})


def a_node_with(
    name: str,
    node_labels: Mapping[str, str],
    devices: Mapping[str, str],
    *,
    cpu: str = "64",
    host_memory: str = "256Gi",
) -> Node:
    """A Ready node with these labels and devices, and no others."""
    plain = a_gpu_node(name, gpus=0, cpu=cpu, host_memory=host_memory)
    amounts = {key: value for key, value in plain.allocatable.items() if key != labels.GPU_RESOURCE}
    return plain.model_copy(update={"labels": dict(node_labels), "allocatable": amounts | dict(devices)})


def a_workspace(
    name: str = "ws",
    *,
    namespace: str = "default",
    uid: str = "",
    created: str = "2026-01-01T00:00:00Z",
    deleting: bool = False,
    selector: dict[str, str] | None = None,
    expressions: Iterable[dict[str, Any]] = (),
    instance_type: str | None = None,
    instance_types: Iterable[str] = (),
    by_price: bool | None = None,
    capacity_type: str | None = None,
    capacity_types: Iterable[str] = (),
    count: int | None = None,
    preset: str | None = None,
    gpu_memory_gib: float | None = None,
    replicas: int | None = None,
    per_replica: int | None = None,
    template: dict[str, Any] | None = None,
    inference: bool = True,
    queue: str | None = None,
    partition: dict[str, Any] | None = None,
    worker_nodes: Iterable[str] = (),
) -> Workspace:
    """A Workspace that selects `pool=a` and runs a template, unless the arguments say otherwise."""
    asked: dict[str, Any] | None = None
    if inference:
        asked = {
            "preset": _a_preset(preset) if preset else None,
            "template": None if preset else template or a_template(),
            "gpuMemoryGiB": gpu_memory_gib,
            "replicas": replicas,
            "perReplicaNodeCount": per_replica,
        }
        asked = {key: value for key, value in asked.items() if value is not None}
    resource = {
        "labelSelector": {
            "matchLabels": {"pool": "a"} if selector is None else selector,
            "matchExpressions": list(expressions),
        },
        "instanceType": instance_type,
        "instanceTypes": list(instance_types) or None,
        "byPrice": by_price,
        "capacityType": capacity_type,
        "capacityTypes": list(capacity_types) or None,
        "count": count,
        "partition": partition,
    }
    manifest = {
        "apiVersion": labels.API_VERSION,
        "kind": "Workspace",
        "metadata": metadata(
            name,
            namespace,
            uid=uid,
            creationTimestamp=created,
            deletionTimestamp="2026-01-01T02:00:00Z" if deleting else None,
        ),
        "spec": {
            "resource": {key: value for key, value in resource.items() if value is not None},
            **({"inference": asked} if asked is not None else {}),
            **({"queue": queue} if queue else {}),
        },
        "status": {"workerNodes": list(worker_nodes)},
    }
    return Workspace.read(manifest)


def _a_preset(name: str) -> dict[str, Any]:
    """The preset, with a token Secret if its model is gated."""
    known = ModelCatalog.builtin().find(name)
    secret = {"presetOptions": {"modelAccessSecret": "token"}} if known is not None and known.gated else {}
    return {"name": name, **secret}


def a_template(**container: Any) -> dict[str, Any]:
    """A PodTemplateSpec of one container."""
    return {"spec": {"containers": [{"name": "server", "image": "example/server:1", **container}]}}


def a_claim(
    name: str,
    owner: Workspace | tuple[str, str] = ("default", "ws"),
    *,
    uid: str = "",
    ready: bool = False,
    deleting: bool = False,
    created: str = "2026-01-01T00:00:00Z",
    node: str = "",
    instance_type: str = NC24,
    gpus: int = 1,
) -> NodeClaim:
    """A NodeClaim of a Workspace, given as the Workspace or as (namespace, name)."""
    namespace, workspace = owner.key if isinstance(owner, Workspace) else owner
    owner_uid = owner.uid if isinstance(owner, Workspace) else uid
    owned = {
        labels.WORKSPACE: labels.as_label_value(workspace),
        labels.WORKSPACE_NAMESPACE: namespace,
        labels.WORKSPACE_UID: owner_uid,
    }
    manifest = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": metadata(
            name,
            labels={key: value for key, value in owned.items() if value},
            uid=f"uid-{name}",
            creationTimestamp=created,
            deletionTimestamp="2026-01-01T01:00:00Z" if deleting else None,
        ),
        "spec": {
            "requirements": [{"key": labels.INSTANCE_TYPE, "operator": "In", "values": [instance_type]}],
            "resources": {"requests": {labels.GPU_RESOURCE: str(gpus)}},
        },
        "status": {"conditions": [{"type": "Ready", "status": str(ready)}], "nodeName": node},
    }
    return NodeClaim.read(manifest)


def a_workload(manifest: dict[str, Any], *, deleting: bool = False, scaled_to: int | None = None) -> Workload:
    """The live workload after a plan's manifest has been applied. `scaled_to` is the number that an autoscaler has
    set."""
    name = manifest["metadata"]["name"]
    ours = scaled_to is None and "replicas" in manifest["spec"]
    fields = {
        "uid": f"uid-{manifest['kind']}-{name}",
        "deletionTimestamp": "x" if deleting else None,
        "managedFields": [{"manager": "plimsoll", "fieldsV1": {"f:spec": {"f:replicas": {}}}}] if ours else [],
    }
    spec = manifest["spec"] | ({"replicas": scaled_to} if scaled_to is not None else {})
    return Workload.read({**manifest, "metadata": {**manifest["metadata"], **fields}, "spec": spec})


def an_autoscaler(manifest: dict[str, Any]) -> Autoscaler:
    """A HorizontalPodAutoscaler of the workload that a plan's manifest declares."""
    target = {"apiVersion": manifest["apiVersion"], "kind": manifest["kind"], "name": manifest["metadata"]["name"]}
    return Autoscaler.read(
        {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": metadata("scaler", manifest["metadata"]["namespace"]),
            "spec": {"scaleTargetRef": target, "maxReplicas": 9},
        }
    )


def a_pod(
    name: str,
    owner: Workspace | None = None,
    node: str = "",
    *,
    devices: int = 0,
    resource: str = labels.GPU_RESOURCE,
    phase: str = "",
    annotations: dict[str, str] | None = None,
) -> Pod:
    """A pod, of a Workspace if one is given, on a node or not placed yet."""
    owned = {labels.WORKSPACE: owner.name, labels.WORKSPACE_NAMESPACE: owner.namespace} if owner else {}
    namespace = owner.namespace if owner else "others"
    asked = {"resources": {"limits": {resource: str(devices)}}} if devices else {}
    return Pod.read(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata(name, namespace, labels=owned, annotations=annotations),
            "spec": {"nodeName": node, "containers": [{"name": "server", **asked}]},
            "status": {"phase": phase},
        }
    )


def a_waiting_pod(
    name: str = "pod",
    *,
    gpus: int = 0,
    namespace: str = "team",
    uid: str | None = None,
    queue: str = "",
    scheduler: str = "kai-scheduler",
    priority: int = 0,
    selector: dict[str, str] | None = None,
    affinity: Iterable[dict[str, Any]] = (),
    tolerations: Iterable[dict[str, Any]] = (),
    cpu: str = "",
    memory: str = "",
    storage: str = "",
    node: str = "",
    reason: str | None = "Unschedulable",
    phase: str = "Pending",
    deleting: bool = False,
    more_labels: dict[str, str] | None = None,
    rules: Mapping[str, Any] | None = None,
    claims: Iterable[str] = (),
    **annotations: str,
) -> Pod:
    """A pod that a scheduler said fits nowhere, or one that a binder placed on a `node`, a share of it on a GPU of its
    own; annotations with underscores for dashes.

    `affinity` are the expressions of one required term; `gpus` whole devices; `rules` are podAffinity,
    podAntiAffinity and topologySpreadConstraints; `claims` are names of PersistentVolumeClaims.
    """
    spread = (rules or {}).get("topologySpreadConstraints", [])
    beside = {key: each for key, each in (rules or {}).items() if key != "topologySpreadConstraints"}
    host = {key: value for key, value in (("cpu", cpu), ("memory", memory), ("ephemeral-storage", storage)) if value}
    devices = {labels.GPU_RESOURCE: str(gpus)} if gpus else {}
    required = {"nodeSelectorTerms": [{"matchExpressions": list(affinity)}]} if affinity else None
    waiting = {"type": "PodScheduled", "status": "False", "reason": reason}
    made = Pod.read(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata(
                name,
                namespace,
                uid=f"uid-{name}" if uid is None else uid,
                labels=({labels.QUEUE: queue} if queue else {}) | (more_labels or {}),
                annotations={key.replace("_", "-"): value for key, value in annotations.items()},
                creationTimestamp="2026-01-01T00:00:00Z",
                deletionTimestamp="2026-01-01T01:00:00Z" if deleting else None,
            ),
            "spec": {
                "nodeName": node,
                "schedulerName": scheduler,
                "priority": priority,
                "nodeSelector": selector or {},
                "affinity": beside
                | ({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}} if required else {}),
                "topologySpreadConstraints": spread,
                "tolerations": list(tolerations),
                "volumes": [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in claims],
                "containers": [{"name": "main", "resources": {"requests": host | devices, "limits": devices}}],
            },
            "status": {"phase": phase, "conditions": [waiting] if reason and not node else []},
        }
    )
    return placed(made, node) if node and annotations else made


def placed(pod: Pod, node: str, *groups: str) -> Pod:
    """The pod after a binder has placed it on the GPUs of these groups, by default one of its own, and told it their
    UUIDs."""
    own = groups or (pod.labels.get(labels.GPU_GROUP, f"group-of-{pod.name}"),)
    grouped = (
        {f"{labels.GPU_GROUP_PREFIX}{group}": group for group in own} if len(own) > 1 else {labels.GPU_GROUP: own[0]}
    )
    told = {labels.VISIBLE_DEVICES: ",".join(f"GPU-{group}" for group in own)}
    update = {"labels": pod.labels | grouped, "annotations": pod.annotations | told, "node_name": node}
    return pod.model_copy(update=update)


def a_plain_pod(*names: str, **asked: str) -> PlainPod:
    """A pod that requests no GPU; the arguments are those of `a_plain_manifest`."""
    read = PlainPod.read(a_plain_manifest(*names, **asked))
    assert read is not None
    return read


def a_plain_manifest(
    name: str = "plain",
    node: str = "node",
    *,
    cpu: str = "",
    memory: str = "",
    storage: str = "",
    daemon_set: str = "",
    namespace: str = "kube-system",
) -> dict[str, Any]:
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": daemon_set, "uid": "u", "controller": True}
    asked = (("cpu", cpu), ("memory", memory), ("ephemeral-storage", storage))
    host = {key: value for key, value in asked if value}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata(name, namespace, ownerReferences=[owner] if daemon_set else None),
        "spec": {"nodeName": node, "containers": [{"name": "main", "resources": {"requests": host}}]},
        "status": {"phase": "Running"},
    }


def a_daemon_set(
    name: str = "agent",
    *,
    cpu: str = "",
    memory: str = "",
    storage: str = "",
    selector: dict[str, str] | None = None,
    affinity: Iterable[dict[str, Any]] = (),
    tolerations: Iterable[dict[str, Any]] = ({"operator": "Exists"},),
    gpus: int = 0,
    deleting: bool = False,
) -> DaemonSet:
    """One in kube-system that tolerates everything; `affinity` are the expressions of one required term."""
    asked = {"cpu": cpu, "memory": memory, "ephemeral-storage": storage, labels.GPU_RESOURCE: str(gpus or "")}
    required = {"nodeSelectorTerms": [{"matchExpressions": list(affinity)}]} if affinity else None
    spec = {
        "nodeSelector": selector or {},
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}} if required else {},
        "tolerations": list(tolerations),
        "containers": [
            {"name": "main", "resources": {"requests": {key: value for key, value in asked.items() if value}}}
        ],
    }
    return DaemonSet.read(
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": metadata(name, "kube-system", deletionTimestamp="2026-01-01T01:00:00Z" if deleting else None),
            "spec": {"template": {"spec": spec}},
        }
    )


def a_node_pool(
    name: str,
    instance_types: Iterable[str] = (),
    *,
    weight: int = 0,
    node_class: str = "pool",
    limits: Mapping[str, str | int] | None = None,
    used: Mapping[str, str | int] | None = None,
    requirements: Iterable[dict[str, Any]] = (),
    taints: Iterable[dict[str, str]] = (),
    more_labels: dict[str, str] | None = None,
    group: str = "example.com",
) -> NodePool:
    """A NodePool that allows these instance types; without any, it allows every type. `used` are the resources that
    Karpenter counts against its limits, `group` is the API group of the node class."""
    types = list(instance_types)
    by_type = [{"key": labels.INSTANCE_TYPE, "operator": "In", "values": types}] if types else []
    manifest = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {
            "weight": weight,
            "limits": limits or {},
            "template": {
                "metadata": {"labels": more_labels or {}},
                "spec": {
                    "requirements": [*by_type, *requirements],
                    "taints": list(taints),
                    "nodeClassRef": {"group": group, "kind": "ExampleNodeClass", "name": node_class},
                },
            },
        },
        "status": {"resources": used or {}},
    }
    return NodePool.read(manifest)


def a_node_profile(
    node_pool: str,
    instance_type: str,
    *,
    labels: Mapping[str, str] | None = None,
    allocatable: Mapping[str, str] | None = None,
    learned: Mapping[str, Any] | None = None,
) -> KnownNodeProfile:
    """A NodeProfile that declares labels and amounts; `learned` is that field of its status."""
    declared = {"labels": labels or {}, "allocatable": allocatable or {}}
    return KnownNodeProfile.read(
        {
            "metadata": {"name": profile_name(node_pool, instance_type)},
            "spec": {"nodePool": node_pool, "instanceType": instance_type, **declared},
            "status": {} if learned is None else {"learned": dict(learned)},
        }
    )


def a_queue(name: str, *, quota: float = -1, limit: float = -1, parent: str = "root") -> Queue:
    """A Queue of KAI. GPUs: -1 is unlimited. CPU and memory are unlimited."""
    host = {"quota": -1, "limit": -1}
    resources = {"gpu": {"quota": quota, "limit": limit}, "cpu": host, "memory": host}
    return Queue.read({"metadata": {"name": name}, "spec": {"parentQueue": parent, "resources": resources}})


def an_environment(nap: bool = False, **spec: Any) -> Environment:
    """An Environment; further fields of its spec are keyword arguments with their names in YAML."""
    spec["nodeAutoProvisioning"] = "enabled" if nap else "disabled"
    return Environment.read({"metadata": {"name": "test"}, "spec": spec})


def a_snapshot(*objects: Any, environment: Environment | None = None, nap: bool = False) -> Snapshot:
    """A snapshot of these objects, in the given order."""

    def of(kind: type[Any]) -> tuple[Any, ...]:
        return tuple(each for each in objects if isinstance(each, kind))

    plain: dict[str, list[PodLoad]] = {}
    for pod in of(PlainPod):
        plain.setdefault(pod.node, []).append(pod.load)
    return Snapshot(
        environment=environment or an_environment(nap),
        workspaces=of(Workspace),
        nodes=of(Node),
        node_claims=of(NodeClaim),
        node_pools=of(NodePool),
        node_overlays=of(NodeOverlay),
        node_classes=(*of(Ec2NodeClass), *of(AksNodeClass)),
        pods=of(Pod),
        host_loads={node: HostLoad.of(takes) for node, takes in plain.items()},
        daemon_sets=of(DaemonSet),
        namespaces=of(Namespace),
        resource_quotas=of(ResourceQuota),
        volume_claims=of(PersistentVolumeClaim) or None,
        volumes=of(PersistentVolume),
        storage_classes=of(StorageClass),
        pod_groups=of(PodGroup),
        topologies=of(Topology),
        scheduling_shards=of(SchedulingShard),
        queues=of(Queue),
        workloads=of(Workload),
        autoscalers=of(Autoscaler),
        gpu_demands=of(GPUDemand),
        node_profiles=of(KnownNodeProfile),
    )
