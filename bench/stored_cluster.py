"""The cluster of large_cluster as pages of JSON from an apiserver, read into the observer's stores."""

import threading
import time
import uuid
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

import orjson

from bench.large_cluster import (
    GPUS,
    node_manifest,
    node_pool_manifest,
    running_manifest,
    running_pods,
    waiting_manifest,
)
from plimsoll.kube import CHUNK, Connection
from plimsoll.labels import API_VERSION, SHARD
from plimsoll.model import ObjectKey, Plan
from plimsoll.observe.cluster import Store, Stores

Raw = dict[str, Any]
"""A manifest."""
CREATED: Final = "2026-01-01T00:00:00Z"
ASKED: Final = "2026-01-01T00:00:30Z"
"""Creation time of objects that plans create."""
INSTANCE_TYPE: Final = "Standard_NC24ads_A100_v4"
UNSCHEDULABLE: Final = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
_BULK: Final = {
    "env": [{"name": f"SETTING_{number}", "value": f"value-{number}"} for number in range(20)],
    "volumeMounts": [{"name": "data", "mountPath": "/data"}, {"name": "kube-api-access", "mountPath": "/var/run"}],
    "image": "registry.example.com/team/trainer:1.0",
}
_MANAGED: Final[list[Raw]] = [
    {
        "manager": manager,
        "operation": "Update",
        "fieldsV1": {"f:metadata": {f"f:field-{number}": {} for number in range(40)}},
    }
    for manager in ("kube-controller-manager", "kai-binder", "kubelet")
]


class StoredCluster(Connection):
    """Objects in the observer's stores. Writes of the Reporter are shown by them, as by a watch."""

    def __init__(self) -> None:
        # No connection is opened; `request` is the apiserver.
        self.stores = Stores()
        self.bytes_read = 0
        self.read_seconds = 0.0
        self.writes = 0
        self._of: dict[str, Store[Any]] = {store.kind.name: store for store in self.stores}
        self._raw: dict[tuple[str, str, str], Raw] = {}
        self._version = 0
        self._guard = threading.Lock()

    def load(self, kind: str, manifests: Iterable[Raw]) -> None:
        """Loads a list in chunks, as text that the observer reads."""
        store = self._of[kind]
        entries = {}
        rest = iter(manifests)
        while piece := list(islice(rest, CHUNK)):
            text = orjson.dumps([self._complete(each) for each in piece])
            self.bytes_read += len(text)
            start = time.perf_counter()
            for raw in orjson.loads(text):
                key, entry = store.read(raw)
                entries[key] = entry
            self.read_seconds += time.perf_counter() - start
        store.replace({key: entry for key, entry in entries.items() if entry is not None})

    def put(self, kind: str, manifest: Raw) -> None:
        """Applies an event of a watch. Fields that the manifest lacks are kept."""
        with self._guard:
            metadata = manifest["metadata"]
            at = (kind, metadata.get("namespace", ""), metadata["name"])
            old = self._raw.get(at, {})
            merged = {**old, **manifest, "metadata": {**old.get("metadata", {}), **metadata}}
            self._raw[at] = self._complete(merged)
            key, entry = self._of[kind].read(orjson.loads(orjson.dumps(self._raw[at])))
            self._of[kind].put(key, entry)

    def delete(self, kind: str, namespace: str, name: str) -> None:
        self._of[kind].put((namespace, name), None)

    def take(self, plan: Plan) -> None:
        """Applies a plan's creations and signals, as an apiserver, Karpenter and kubelets would."""
        for each in plan.creations:
            if each.key.kind in self._of:
                self.put(each.key.kind, _grown(each.manifest))
            if each.key.kind == "NodeClaim":
                self.put("Node", _node_of(each.manifest))
        for signal in plan.signals:
            self.put(signal.key.kind, {**_identity(signal.key), "status": {"conditions": [UNSCHEDULABLE]}})

    def request(self, method: str, path: str, body: Any = None, **_: Any) -> Raw:
        """Handles writes of statuses and finalizers; other requests get an empty response."""
        self.writes += 1
        if method != "PATCH" or body.get("kind") not in self._of:
            return {}
        given = dict(body)
        given["metadata"] = {key: value for key, value in body["metadata"].items() if key != "resourceVersion"}
        self.put(body["kind"], given)
        return {"metadata": {"resourceVersion": str(self._version)}}

    def _complete(self, manifest: Raw) -> Raw:
        self._version += 1
        metadata = {
            "uid": str(uuid.UUID(int=self._version)),
            "creationTimestamp": CREATED,
            **manifest["metadata"],
            "resourceVersion": str(self._version),
        }
        return {**manifest, "metadata": metadata}


def a_stored_cluster(nodes: int, pods: int, waiting: int, classes: int, workspaces: int, teams: int) -> StoredCluster:
    """The stored cluster. Queues are a tree of departments with 6 teams each, with quotas and limits; the pods of every
    fourth team are gangs."""
    cluster = StoredCluster()
    cluster.put("Environment", _environment())
    cluster.load("NodePool", [node_pool_manifest()])
    for kind, manifests in cluster_manifests(nodes, pods, waiting, classes, teams).items():
        cluster.load(kind, manifests)
    for number in range(workspaces):
        cluster.put("Workspace", _workspace(number))
    return cluster


def cluster_manifests(nodes: int, pods: int, waiting: int, classes: int, teams: int) -> dict[str, Iterator[Raw]]:
    """Manifests of the size of those in real clusters, by kind."""
    running = running_pods(pods, waiting)
    return {
        "Queue": _queues(teams, nodes * GPUS),
        "Node": (_full(node_manifest(number), 40) for number in range(nodes)),
        "PodGroup": _pod_groups(running, waiting),
        "Pod": _pods(nodes, pods, waiting, classes),
    }


def stored_pod(manifest: Raw) -> Raw:
    """A pod of the size of those in real clusters, with the PodGroup that KAI's podgrouper creates."""
    name = manifest["metadata"]["name"]
    annotations = {**manifest["metadata"]["annotations"], "pod-group-name": f"pg-{name}"}
    metadata = {**manifest["metadata"], "annotations": annotations, "managedFields": _MANAGED}
    containers = [{**each, **_BULK} for each in manifest["spec"]["containers"]]
    status = {**manifest["status"], "containerStatuses": [{"name": each["name"], "ready": True} for each in containers]}
    return {"metadata": metadata, "spec": {**manifest["spec"], "containers": containers}, "status": status}


def pod_group(pod: str) -> Raw:
    return {"metadata": {"name": f"pg-{pod}", "namespace": "team"}, "spec": {"minMember": 1}}


def _pods(nodes: int, pods: int, waiting: int, classes: int) -> Iterator[Raw]:
    yield from (stored_pod(running_manifest(number, nodes, pods - waiting)) for number in range(pods - waiting))
    yield from (stored_pod(waiting_manifest(number, number % classes)) for number in range(waiting))


def _pod_groups(running: int, waiting: int) -> Iterator[Raw]:
    yield from (pod_group(f"running-{number}") for number in range(running))
    yield from (pod_group(f"waiting-{number}") for number in range(waiting))


def _queues(teams: int, gpus: int) -> Iterator[Raw]:
    departments = (teams + 5) // 6
    for department in range(departments):
        yield _queue(f"department-{department}", "", gpus // departments, gpus)
    for team in range(teams):
        yield _queue(f"team-{team:02}", f"department-{team // 6}", gpus // teams, gpus // 2)


_UNLIMITED = {"quota": -1, "limit": -1, "overQuotaWeight": 1}


def _queue(name: str, parent: str, quota: int, limit: int) -> Raw:
    gpu = {"quota": quota, "limit": limit, "overQuotaWeight": 1}
    resources = {"gpu": gpu, "cpu": _UNLIMITED, "memory": _UNLIMITED}
    return {"metadata": {"name": name}, "spec": {"parentQueue": parent, "resources": resources}}


def _environment() -> Raw:
    node_class = {"group": "karpenter.example.com", "kind": "NodeClass", "name": "default"}
    return {
        "apiVersion": API_VERSION,
        "kind": "Environment",
        "metadata": {"name": "production"},
        "spec": {
            "nodeAutoProvisioning": "enabled",
            "nodeClaims": {"nodeClassRef": node_class},
            "demand": {"provisioner": "trigger-pod"},
        },
    }


def _workspace(number: int) -> Raw:
    return {
        "apiVersion": API_VERSION,
        "kind": "Workspace",
        "metadata": {"name": f"model-{number:04}", "namespace": f"product-{number % 20:02}"},
        "spec": {
            "resource": {"instanceType": INSTANCE_TYPE},
            "inference": {"preset": {"name": "phi-4-mini-instruct"}, "replicas": 1 + number % 2},
        },
    }


def _full(node: Raw, labels: int) -> Raw:
    more = {f"node.example.com/label-{number}": f"value-{number}" for number in range(labels)}
    return {**node, "metadata": {**node["metadata"], "labels": {**node["metadata"]["labels"], **more}}}


def _grown(manifest: Raw) -> Raw:
    """A created object with the Applier's labels. A NodeClaim becomes a node at once."""
    metadata = manifest["metadata"]
    labels = {**metadata["labels"], SHARD: "0"}
    manifest = {**manifest, "metadata": {**metadata, "labels": labels, "creationTimestamp": ASKED}}
    if manifest["kind"] != "NodeClaim":
        return manifest
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": ASKED}
        for kind in ("Launched", "Registered", "Initialized", "Ready")
    ]
    return {**manifest, "status": {"nodeName": _node_name(manifest), "providerID": "made", "conditions": conditions}}


def _node_of(claim: Raw) -> Raw:
    labels = {"node.kubernetes.io/instance-type": INSTANCE_TYPE, "kubernetes.io/os": "linux"}
    return {
        "metadata": {"name": _node_name(claim), "labels": {**claim["metadata"]["labels"], **labels}},
        "status": {
            "allocatable": {"nvidia.com/gpu": "1", "cpu": "24", "memory": "220Gi"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _node_name(claim: Raw) -> str:
    return f"node-{claim['metadata']['name']}"


def _identity(key: ObjectKey) -> Raw:
    return {"metadata": {"name": key.name, "namespace": key.namespace}}
