"""Manifests that violate no rule, the changes that tests make to them, and the findings."""

import copy
import datetime
from collections.abc import Mapping
from typing import Any

from plimsoll.model.api import PolicyConfig
from plimsoll.model.meta import Finding
from plimsoll.policy import Checker, context_of

Manifest = dict[str, Any]
TODAY = datetime.date(2026, 7, 1)
IMAGE = "registry.example/team/main:1.2.3"
GPU = "nvidia.com/gpu"
ASKED: dict[str, Any] = {"image-tag-pinned": {}, "node-pool-gpu-taint": {}}
"""Settings that enable the rules that are off by default."""


def with_path(manifest: Manifest, **changes: Any) -> Manifest:
    """A copy with values set at paths, whose parts are separated by two underscores; None removes a field."""
    changed = copy.deepcopy(manifest)
    for path, value in changes.items():
        *steps, last = path.split("__")
        at: Any = changed
        for step in steps:
            at = at[int(step)] if isinstance(at, list) else at.setdefault(step, {})
        if value is None:
            at.pop(last, None)
        else:
            at[last] = value
    return changed


def a_pod(
    annotations: Mapping[str, Any] | None = None,
    gpus: Any = None,
    labels: dict[str, str] | None = None,
    scheduler: str | None = "kai-scheduler",
    image: str = IMAGE,
    name: str = "train",
    namespace: str = "research",
) -> Manifest:
    container: Manifest = {"name": "main", "image": image}
    if gpus is not None:
        container["resources"] = {"limits": {GPU: gpus}}
    spec: Manifest = {"containers": [container]}
    if scheduler is not None:
        spec["schedulerName"] = scheduler
    metadata = {
        "name": name,
        "namespace": namespace,
        "labels": {"kai.scheduler/queue": "team"} if labels is None else labels,
        "annotations": annotations or {},
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def a_deployment(pod: Manifest, labels: dict[str, str] | None = None) -> Manifest:
    template = {"metadata": {key: pod["metadata"][key] for key in ("labels", "annotations")}, "spec": pod["spec"]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "serve", "namespace": "research", "labels": labels or {}},
        "spec": {"selector": {"matchLabels": {}}, "template": template},
    }


def a_trigger(**changes: Any) -> Manifest:
    pod = a_pod(gpus=8, scheduler="plimsoll-trigger", labels={"plimsoll.dev/trigger-type": "a100"}, name="trigger-a")
    return with_path(pod, **{"spec__activeDeadlineSeconds": 600, **changes})


def a_reservation(**changes: Any) -> Manifest:
    pod = a_pod(
        annotations={"karpenter.sh/do-not-disrupt": "true"},
        gpus=1,
        scheduler=None,
        labels={"app": "kai-resource-reservation", "runai-gpu-group": "group"},
        name="gpu-reservation-0123456789abcdef",
        namespace="kai-resource-reservation",
    )
    return with_path(pod, **{"spec__nodeName": "node-1", **changes})


def a_node_pool(*types: str, gpu_limit: Any = 16, **changes: Any) -> Manifest:
    names = types or ("p4d.24xlarge",)
    spec = {
        "template": {
            "metadata": {"labels": {"team": "research"}},
            "spec": {
                "requirements": [
                    {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": list(names)},
                ],
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                "taints": [{"key": GPU, "effect": "NoSchedule"}],
            },
        },
        "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "15m"},
        "limits": {GPU: gpu_limit},
    }
    pool = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "gpu"}, "spec": spec}
    return with_path(pool, **changes)


def a_kaito_workspace(instance_type: str | None = None, **changes: Any) -> Manifest:
    workspace = {
        "apiVersion": "kaito.sh/v1beta1",
        "kind": "Workspace",
        "metadata": {"name": "phi", "namespace": "default"},
        "resource": {"labelSelector": {"matchLabels": {"apps": "phi"}}},
        "inference": {"preset": {"name": "phi-4"}},
    }
    if instance_type is not None:
        changes["resource__instanceType"] = instance_type
    return with_path(workspace, **changes)


def an_inference_set(instance_type: str | None = None) -> Manifest:
    template: Manifest = {"resource": {}, "inference": {"preset": {"name": "phi-4"}}}
    if instance_type is not None:
        template["resource"]["instanceType"] = instance_type
    return {
        "apiVersion": "kaito.sh/v1beta1",
        "kind": "InferenceSet",
        "metadata": {"name": "set"},
        "spec": {"labelSelector": {"matchLabels": {"apps": "phi"}}, "replicas": 1, "template": template},
    }


def an_environment(**spec: Any) -> Manifest:
    return {"apiVersion": "plimsoll.dev/v1alpha1", "kind": "Environment", "metadata": {"name": "e"}, "spec": spec}


def a_queue(name: str, parent: str | None = None) -> Manifest:
    amounts = {"quota": 8, "limit": -1, "overQuotaWeight": 1}
    spec: Manifest = {"resources": dict.fromkeys(("gpu", "cpu", "memory"), amounts)}
    if parent is not None:
        spec["parentQueue"] = parent
        spec["resources"] = {each: {**amounts, "quota": 1} for each in ("gpu", "cpu", "memory")}
    return {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": name}, "spec": spec}


def findings(
    *manifests: Manifest, rules: Mapping[str, Any] | None = None, exemptions: list[Any] | None = None
) -> list[Finding]:
    """The findings on objects that are checked together."""
    config = PolicyConfig.model_validate({"rules": {**ASKED, **(rules or {})}, "exemptions": exemptions or []})
    report = Checker(context_of(manifests, config), config, TODAY).check(manifests)
    return [finding for _, finding in report.findings]


def broken(*manifests: Manifest, **settings: Any) -> list[tuple[str, str]]:
    """Rule and field of each finding."""
    return [(each.rule, each.field) for each in findings(*manifests, **settings)]
