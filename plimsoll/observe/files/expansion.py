"""The pods of the workloads in files: of a Deployment, a Job, a JobSet, whatever a pull request or a chart contains.

Only an object without a UID is expanded: one with a UID comes from a cluster, and so do its pods.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from plimsoll.cluster.queues import PRIORITY_CLASS
from plimsoll.labels import QUEUE
from plimsoll.model.cluster import Autoscaler
from plimsoll.model.meta import section
from plimsoll.observe.files.documents import ManifestError
from plimsoll.policy import count_of, is_list, templates_of

_CONTROLLERS: Final = {
    ("apps", "Deployment"): "ReplicaSet",
    ("apps", "ReplicaSet"): "ReplicaSet",
    ("apps", "StatefulSet"): "StatefulSet",
    ("batch", "Job"): "Job",
    ("batch", "CronJob"): "Job",
    ("jobset.x-k8s.io", "JobSet"): "Job",
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): "StatefulSet",
    ("ray.io", "RayCluster"): "RayCluster",
    ("ray.io", "RayJob"): "RayCluster",
    ("ray.io", "RayService"): "RayCluster",
    ("kubeflow.org", "PyTorchJob"): "PyTorchJob",
    ("kubeflow.org", "MPIJob"): "MPIJob",
    ("trainer.kubeflow.org", "TrainJob"): "Job",
}
"""Group and kind of the workloads that are expanded, with the kind of what controls their pods."""
WORKLOADS: Final = tuple(_CONTROLLERS)
"""Their groups and kinds."""
RUNTIMES: Final = ("TrainingRuntime", "ClusterTrainingRuntime")
_TRAINER: Final = "trainer.kubeflow.org"
_NODES: Final = ("node", "trainer")
"""What the replicated Job of the training nodes is named in a TrainingRuntime: `node`, or by the ancestor label."""
_ANCESTOR: Final = "trainer.kubeflow.org/trainjob-ancestor-step"
MOST_PODS: Final = 20_000
"""Pods of one object."""

Manifest = Mapping[str, Any]
Runtimes = Mapping[tuple[str, str, str], Manifest]
"""By kind, namespace (empty for ClusterTrainingRuntimes) and name."""


def is_workload(manifest: Manifest) -> bool:
    return _group_kind(manifest) in _CONTROLLERS


def is_runtime(manifest: Manifest) -> bool:
    group, kind = _group_kind(manifest)
    return group == _TRAINER and kind in RUNTIMES


def why_not_expanded(manifest: Manifest, runtimes: Runtimes) -> str:
    """Why the workload stands for no pods; empty if it does."""
    if _text(section(manifest, "metadata"), "uid"):
        return "with a UID: its pods are in the cluster that it is from"
    if section(manifest, "spec").get("suspend") is True:
        return "suspended"
    if _group_kind(manifest)[0] == _TRAINER and _runtime_of(manifest, runtimes) is None:
        return "whose TrainingRuntime is not in the files"
    if _group_kind(manifest)[0] != _TRAINER and next(templates_of(manifest), None) is None:
        return "without a pod template"
    return ""


def scaled(manifest: Manifest, autoscalers: Mapping[tuple[str, str, str, str], Autoscaler]) -> dict[str, Any]:
    """The workload with as many replicas as its HorizontalPodAutoscaler leaves it at least; it leaves 0 as they are.
    `autoscalers` are by their targets."""
    spec, metadata = section(manifest, "spec"), section(manifest, "metadata")
    target = (*_group_kind(manifest), _text(metadata, "namespace"), _text(metadata, "name"))
    autoscaler, replicas = autoscalers.get(target), count_of(spec.get("replicas"), 1)
    if autoscaler is None or not replicas:
        return dict(manifest)
    least = autoscaler.min_replicas
    most = max(least, autoscaler.max_replicas or replicas)
    return {**manifest, "spec": {**spec, "replicas": min(max(replicas, least), most)}}


def pods_of(manifest: Manifest, runtimes: Runtimes) -> Iterator[dict[str, Any]]:
    """The manifests of its pods, as if no scheduler had found a node for them. The queue and the priority
    class of the workload's labels count before those of its template, as for KAI. Raises ManifestError if they are
    too many, or if their number is none."""
    replicas = section(manifest, "spec").get("replicas")
    if replicas is not None and count_of(replicas, -1) < 0:
        raise ManifestError(f"spec.replicas: must be a whole number of at least 0, not {replicas!r}")
    metadata = section(manifest, "metadata")
    controller = _CONTROLLERS[_group_kind(manifest)]
    name, number = _text(metadata, "name") or "unnamed", 0
    inherited = {key: metadata["labels"][key] for key in (QUEUE, PRIORITY_CLASS) if key in section(metadata, "labels")}
    source = _with_runtime(manifest, runtimes) if _group_kind(manifest)[0] == _TRAINER else manifest
    templates = list(templates_of(source))
    number_of_pods = sum(template.copies for template in templates)
    if number_of_pods > MOST_PODS:
        raise ManifestError(f"it stands for {number_of_pods} pods: at most {MOST_PODS} of one object are planned for")
    for template in templates:
        for _ in range(template.copies):
            yield {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": f"{name}-{number}",
                    "namespace": _text(metadata, "namespace"),
                    "labels": {**template.labels, **inherited},
                    "annotations": dict(template.annotations),
                    "ownerReferences": [{"kind": controller, "name": name, "controller": True}],
                },
                "spec": dict(template.spec),
                "status": {
                    "phase": "Pending",
                    "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
                },
            }
            number += 1


def _group_kind(manifest: Manifest) -> tuple[str, str]:
    version, kind = manifest.get("apiVersion"), manifest.get("kind")
    return str(version or "").partition("/")[0], str(kind or "")


def _runtime_of(manifest: Manifest, runtimes: Runtimes) -> Manifest | None:
    reference = section(manifest, "spec", "runtimeRef")
    kind, name = _text(reference, "kind") or "ClusterTrainingRuntime", _text(reference, "name")
    namespace = _text(section(manifest, "metadata"), "namespace") if kind == "TrainingRuntime" else ""
    return runtimes.get((kind, namespace, name))


def _with_runtime(job: Manifest, runtimes: Runtimes) -> dict[str, Any]:
    """The JobSet that Kubeflow Trainer makes of a TrainJob: its runtime's template, with the job's number of nodes and
    resources in the replicated Job of the training nodes."""
    runtime = _runtime_of(job, runtimes) or {}
    jobs = section(runtime, "spec", "template", "spec").get("replicatedJobs")
    trainer = section(job, "spec", "trainer")
    policy = section(runtime, "spec", "mlPolicy")
    nodes = count_of(trainer.get("numNodes"), count_of(policy.get("numNodes"), 1))
    found = [_replicated(each, trainer, nodes) for each in (jobs if is_list(jobs) else ()) if isinstance(each, Mapping)]
    return {"spec": {"replicatedJobs": found}}


def _replicated(job: Manifest, trainer: Manifest, nodes: int) -> dict[str, Any]:
    template = section(job, "template")
    labels = section(template, "metadata", "labels")
    if job.get("name") not in _NODES and labels.get(_ANCESTOR) != "trainer":
        return dict(job)
    spec = {**section(template, "spec"), "parallelism": nodes, "completions": nodes}
    resources = section(trainer, "resourcesPerNode")
    if resources:
        pod = section(spec, "template")
        containers = section(pod, "spec").get("containers")
        first, *rest = containers if is_list(containers) and containers else ({},)
        pod_spec = {**section(pod, "spec"), "containers": [{**first, "resources": resources}, *rest]}
        spec["template"] = {**pod, "spec": pod_spec}
    return {**job, "template": {**template, "spec": spec}}


def _text(value: Manifest, name: str) -> str:
    found = value.get(name)
    return found if isinstance(found, str) else ""
