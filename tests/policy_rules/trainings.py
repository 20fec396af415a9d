"""TrainJobs and the runtimes that they use."""

from typing import Any

from tests.policy_rules.manifests import GPU, Manifest


def a_job(labels: dict[str, str] | None = None, kind: str = "TrainingRuntime", **trainer: Any) -> Manifest:
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "segment", "namespace": "vision", "labels": labels or {}},
        "spec": {"runtimeRef": {"kind": kind, "name": "torch"}, "trainer": trainer},
    }


def a_runtime(kind: str = "TrainingRuntime", *, gpus: int = 8, nodes: int | None = 2, policy: Any = None) -> Manifest:
    def job(name: str, step: str, gpus: int) -> dict[str, Any]:
        container = {"name": "node", "image": "torch:1", "resources": {"limits": {GPU: gpus}}}
        pods = {"metadata": {"labels": {}}, "spec": {"containers": [container]}}
        labels = {"trainer.kubeflow.org/trainjob-ancestor-step": step}
        return {"name": name, "template": {"metadata": {"labels": labels}, "spec": {"template": pods}}}

    spec: dict[str, Any] = {
        "template": {"spec": {"replicatedJobs": [job("data", "dataset-initializer", 1), job("node", "trainer", gpus)]}}
    }
    if nodes is not None:
        spec["mlPolicy"] = {"numNodes": nodes}
    if policy is not None:
        spec["podGroupPolicy"] = policy
    metadata = {"name": "torch"} | ({"namespace": "vision"} if kind == "TrainingRuntime" else {})
    return {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}
