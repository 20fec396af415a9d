"""Manifests of Queues and of objects that name them."""

from typing import Any

from plimsoll.labels import QUEUE

UNLIMITED = {"quota": -1, "limit": -1, "overQuotaWeight": 1}


def amounts(quota: float, limit: float = -1, weight: float = 1) -> dict[str, float]:
    return {"quota": quota, "limit": limit, "overQuotaWeight": weight}


def queue(name: str, parent: str | None = None, gpu: Any = None, deleting: bool = False, **spec: Any) -> dict[str, Any]:
    """A Queue with unlimited CPU and memory, and unlimited GPUs unless set."""
    resources = {"gpu": UNLIMITED if gpu is None else gpu, "cpu": UNLIMITED, "memory": UNLIMITED}
    return {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": name} | ({"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleting else {}),
        "spec": {"resources": resources} | ({"parentQueue": parent} if parent else {}) | spec,
    }


def pod(name: str, queue_name: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "research", "labels": {QUEUE: queue_name}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": []}}


def pod_group(name: str, queue_name: str) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "research"},
        "spec": {"queue": queue_name, "minMember": 1},
    }


def job_set(name: str, queue_name: str) -> dict[str, Any]:
    template = {"metadata": {"labels": {QUEUE: queue_name}}, "spec": {"containers": []}}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": name, "namespace": "research"},
        "spec": {"replicatedJobs": [{"name": "workers", "template": {"spec": {"template": template}}}]},
    }


def training_runtime(name: str, queue_name: str) -> dict[str, Any]:
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": name},
        "spec": {"podGroupPolicy": {"kaiScheduler": {"queue": queue_name}}},
    }
