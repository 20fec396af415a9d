"""Pods for the KAI Scheduler, alone and as their controllers make them, and what became of them."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from plimsoll.model.api import CAPACITY_GATE
from plimsoll.sandbox import Sandbox
from tests.awaiting import await_condition
from tests.e2e.cluster.kube import Kube, Manifest
from tests.e2e.demand.environment import API, ENVIRONMENT, TOLERATION, declare_demand, remove_added

NAMESPACE = "default"
QUEUE = ("scheduling.run.ai/v2", "Queue")
POD_GROUP = ("scheduling.run.ai/v2alpha2", "PodGroup")
RAY_CLUSTER = ("ray.io/v1", "RayCluster")
JOB_SET = ("jobset.x-k8s.io/v1alpha2", "JobSet")
DEFAULT_QUEUE = "default-queue"
RESERVATIONS = "kai-resource-reservation"
CASE = "sandbox.plimsoll.dev/case"
"""Label of nodes that a test created without Karpenter."""
CRD = "apiextensions.k8s.io/v1"


def share(
    name: str,
    fraction: str = "",
    *,
    memory: int = 0,
    devices: int = 0,
    gated: bool = False,
    queue: str = DEFAULT_QUEUE,
    group: str = "",
    labels: Mapping[str, str] | None = None,
    owner: Manifest | None = None,
    selector: Mapping[str, str] | None = None,
    beside: Mapping[str, Any] | None = None,
) -> Manifest:
    """A pod that requests a part of a GPU, or of each of several. `group` is a PodGroup that exists, `beside` its
    podAffinity or podAntiAffinity."""
    annotations = {"gpu-fraction": fraction} if fraction else {"gpu-memory": str(memory)}
    annotations |= {"gpu-fraction-num-devices": str(devices)} if devices else {}
    annotations |= {"pod-group-name": group} if group else {}
    metadata = {
        "name": name,
        "namespace": NAMESPACE,
        "annotations": annotations,
        "labels": {"test": "kai", "kai.scheduler/queue": queue, **(labels or {})},
        "ownerReferences": [] if owner is None else [_reference(owner)],
    }
    spec = pod_spec(gated=gated, selector=selector) | {"affinity": dict(beside or {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def pod_spec(*, gated: bool = False, selector: Mapping[str, str] | None = None) -> dict[str, Any]:
    resources = {"requests": {"cpu": "100m", "memory": "64Mi"}}
    return {
        "schedulerName": "kai-scheduler",
        "schedulingGates": [{"name": CAPACITY_GATE}] if gated else [],
        "nodeSelector": dict(selector or {}),
        "tolerations": [TOLERATION],
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "main", "image": "registry.k8s.io/pause:3.9", "resources": resources}],
    }


def _reference(owner: Manifest) -> dict[str, Any]:
    named = {"name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"], "controller": True}
    return {"apiVersion": owner["apiVersion"], "kind": owner["kind"], **named}


def pod_group(name: str, least: int, queue: str = DEFAULT_QUEUE) -> Manifest:
    metadata = {"name": name, "namespace": NAMESPACE, "labels": {"test": "kai"}}
    spec = {"minMember": least, "queue": queue, "priorityClassName": "train"}
    return {"apiVersion": POD_GROUP[0], "kind": POD_GROUP[1], "metadata": metadata, "spec": spec}


def a_queue(name: str, gpus: float = -1, quota: float | None = None, parent: str = "default-parent-queue") -> Manifest:
    """A queue with a limit of GPUs, and with the same quota."""
    unlimited = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    gpu = {"quota": gpus if quota is None else quota, "limit": gpus, "overQuotaWeight": 1}
    spec = {"parentQueue": parent, "resources": {"gpu": gpu, "cpu": unlimited, "memory": unlimited}}
    return {
        "apiVersion": QUEUE[0],
        "kind": QUEUE[1],
        "metadata": {"name": name, "labels": {"test": "kai"}},
        "spec": spec,
    }


def define(cluster: Kube, kind: tuple[str, str], plural: str) -> None:
    """A definition of a kind of others that has any fields."""
    group, version = kind[0].split("/")
    names = {"kind": kind[1], "plural": plural, "singular": kind[1].lower(), "listKind": f"{kind[1]}List"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    versions = [{"name": version, "served": True, "storage": True, "schema": schema}]
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": versions}
    cluster.apply(
        {
            "apiVersion": CRD,
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{group}"},
            "spec": spec,
        }
    )


def a_ray_cluster(name: str, workers: int, least: int) -> Manifest:
    group = {"groupName": "workers", "replicas": workers, "minReplicas": least, "maxReplicas": workers}
    spec = {"headGroupSpec": {"template": {}}, "workerGroupSpecs": [group]}
    metadata = {"name": name, "namespace": NAMESPACE, "labels": {"test": "kai"}}
    return {"apiVersion": RAY_CLUSTER[0], "kind": RAY_CLUSTER[1], "metadata": metadata, "spec": spec}


def a_job_set(name: str) -> Manifest:
    metadata = {"name": name, "namespace": NAMESPACE, "labels": {"test": "kai"}}
    return {"apiVersion": JOB_SET[0], "kind": JOB_SET[1], "metadata": metadata, "spec": {"replicatedJobs": []}}


def a_job(name: str, pods: int, fraction: str, job_set: Manifest, *, gated: bool) -> Manifest:
    """A Job of a JobSet, with the labels that its controller writes."""
    labels = {
        "test": "kai",
        "kai.scheduler/queue": DEFAULT_QUEUE,
        "jobset.sigs.k8s.io/jobset-name": job_set["metadata"]["name"],
    }
    annotations = {"gpu-fraction": fraction, "sandbox.plimsoll.dev/run-for": "1h"}
    template = {
        "metadata": {"labels": labels, "annotations": annotations},
        "spec": pod_spec(gated=gated) | {"restartPolicy": "Never"},
    }
    metadata = {"name": name, "namespace": NAMESPACE, "labels": labels, "ownerReferences": [_reference(job_set)]}
    spec = {"parallelism": pods, "completions": pods, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


@dataclass(frozen=True)
class Placed:
    """What a cluster looks like: the pods of a test, and the nodes of Karpenter."""

    pods: Mapping[str, str]
    """The node of each; empty while it has none."""
    groups: Mapping[str, frozenset[str]]
    """GPU groups of KAI on the nodes, with the pods of each."""
    nodes: frozenset[str]
    claims: int
    """NodeClaims."""

    @classmethod
    def of(cls, cluster: Kube) -> "Placed":
        pods = [pod for pod in cluster.list("v1", "Pod", NAMESPACE, "test=kai") if not _going(pod)]
        nodes = cluster.list("v1", "Node", selector="karpenter.sh/nodepool")
        return cls(
            pods={pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in pods},
            groups=_groups(pods),
            nodes=frozenset(node["metadata"]["name"] for node in nodes),
            claims=len(cluster.list("karpenter.sh/v1", "NodeClaim")),
        )

    @property
    def bound(self) -> frozenset[str]:
        return frozenset(name for name, node in self.pods.items() if node)

    @property
    def all_made(self) -> bool:
        """Whether each NodeClaim has its node. NodeClaims are read after the nodes."""
        return self.claims == len(self.nodes)

    @property
    def empty(self) -> frozenset[str]:
        """Nodes without a pod of the test."""
        return self.nodes - set(self.pods.values())


def bound_of(cluster: Kube, pods: Iterable[Manifest]) -> frozenset[str]:
    """Names of the bound pods of a test. Those of `pods` that are gone are created again, as a controller of theirs
    would: KAI evicts preemptible pods to place others together, by its consolidation, and places them anew."""
    placed = Placed.of(cluster)
    for pod in pods:
        name = pod["metadata"]["name"]
        if name not in placed.pods and cluster.get("v1", "Pod", name, NAMESPACE) is None:
            cluster.create(pod)
    return placed.bound


def _going(pod: Manifest) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def _groups(pods: Iterable[Manifest]) -> dict[str, frozenset[str]]:
    """By the labels that KAI writes: one group, or one for each device."""
    found: dict[str, set[str]] = {}
    for pod in pods:
        for key, value in pod["metadata"].get("labels", {}).items():
            if key == "runai-gpu-group":
                found.setdefault(value, set()).add(f"{NAMESPACE}/{pod['metadata']['name']}")
            elif key.startswith("runai-gpu-group/"):
                found.setdefault(key.partition("/")[2], set()).add(f"{NAMESPACE}/{pod['metadata']['name']}")
    return {group: frozenset(names) for group, names in found.items()}


def said_by(sandbox: Sandbox, command: str, codes: tuple[int, ...] = (0,)) -> dict[str, Any]:
    """The document of a command of plimsoll."""
    words = [sys.executable, "-m", "plimsoll", command, "--output", "json"]
    done = subprocess.run(words, env={**os.environ, **sandbox.environ()}, capture_output=True, text=True, check=False)
    assert done.returncode in codes, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def gpus_of(sandbox: Sandbox) -> dict[str, frozenset[str]]:
    """The GPU groups of `plimsoll gpus`, with the pods of each; asserts that it finds no discrepancy."""
    accounts: list[dict[str, Any]] = said_by(sandbox, "gpus")["nodes"]
    assert [each["discrepancies"] for each in accounts] == [[]] * len(accounts)
    return {group["name"]: frozenset(group["pods"]) for each in accounts for group in each["groups"]}


def prepare(cluster: Kube, **spec: Any) -> None:
    """An Environment in which KAI has the queues and in which much may be requested, with the kinds of workloads."""
    declare_demand(cluster, "trigger-pod")
    settings = {"queueScheduler": "kai-scheduler", "limits": {"nodes": 60, "gpus": 400}, **spec}
    cluster.patch(API, "Environment", ENVIRONMENT, {"spec": settings})
    define(cluster, RAY_CLUSTER, "rayclusters")
    define(cluster, JOB_SET, "jobsets")


def clear(cluster: Kube) -> None:
    """Deletes everything that a test created, and returns when it is gone. Nodes go with their NodePool."""
    for kind in (("batch/v1", "Job"), JOB_SET, RAY_CLUSTER, ("v1", "Pod"), POD_GROUP):
        for each in cluster.list(*kind, NAMESPACE, "test=kai" if kind != POD_GROUP else ""):
            cluster.delete(*kind, each["metadata"]["name"], NAMESPACE)
    remove_added(cluster, "GPUDemand")
    for each in cluster.list(*QUEUE, selector="test=kai"):
        cluster.delete(*QUEUE, each["metadata"]["name"])
    for node in cluster.list("v1", "Node", selector=CASE):
        if "karpenter.sh/nodepool" not in node["metadata"]["labels"]:
            cluster.delete("v1", "Node", node["metadata"]["name"])
    await_condition(lambda: not Placed.of(cluster).pods, 180, "the pods go")
    # KAI leaves a reservation where a binding failed, and Karpenter does not disrupt its node.
    for reservation in cluster.list("v1", "Pod", RESERVATIONS):
        cluster.delete("v1", "Pod", reservation["metadata"]["name"], RESERVATIONS)
    await_condition(lambda: _is_clear(cluster), 180, "everything goes")


def _is_clear(cluster: Kube) -> bool:
    found = Placed.of(cluster)
    return not (found.pods or found.nodes or found.claims or cluster.list("v1", "Pod", RESERVATIONS))


def assert_unschedulable(cluster: Kube, names: Iterable[str]) -> None:
    """Lets go pods with the capacity gate, and asserts that KAI finds no place for any of them."""
    names = set(names)
    for name in names:
        cluster.patch("v1", "Pod", name, {"spec": {"schedulingGates": None}})

    def judged() -> bool:
        pods = {pod["metadata"]["name"]: pod for pod in cluster.list("v1", "Pod", NAMESPACE, "test=kai")}
        return all(_is_unschedulable(pods[name]) or pods[name]["spec"].get("nodeName") for name in names)

    await_condition(judged, 120, "KAI judges them")
    assert names.isdisjoint(Placed.of(cluster).bound)


def _is_unschedulable(pod: Manifest) -> bool:
    return any(each.get("reason") == "Unschedulable" for each in pod["status"].get("conditions", ()))
