"""MutatingAdmissionPolicies (Kubernetes 1.36), which change pods at admission without a webhook server."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from plimsoll.components.declaring import Component, metadata
from plimsoll.kubernetes_sdk import k8s
from plimsoll.model.kai import GPU_FRACTION, GPU_MEMORY_SHARE

SHARED: Final = (
    "has(object.metadata.annotations) && "
    f"('{GPU_FRACTION}' in object.metadata.annotations || '{GPU_MEMORY_SHARE}' in object.metadata.annotations)"
)
"""CEL expression: the pod has an annotation that requests a share of a GPU."""


class MutationPolicy(NamedTuple):
    """`spec` of a MutatingAdmissionPolicy and of its binding, and how to check that it is in effect."""

    policy: dict[str, Any]
    binding: dict[str, Any]
    samples: tuple[dict[str, Any], ...]
    """Manifests of pods that the policy changes: one for each namespace, queue or scheduler that it names."""
    adds: str
    """Name of the gate or variable that the policy adds to such a pod."""


class Mutation(NamedTuple):
    """A declared policy with its binding. The apiserver applies it a moment later: pods that are created before then
    are not changed."""

    policy: MutationPolicy
    binding: Any


def declare_mutation(name: str, made: MutationPolicy, parent: Component) -> Mutation:
    """Declares the policy, and then its binding."""
    policy = k8s.admissionregistration.v1.MutatingAdmissionPolicy(
        parent.named(name), metadata=metadata(name), spec=made.policy, opts=parent.child(former_name=name)
    )
    binding = k8s.admissionregistration.v1.MutatingAdmissionPolicyBinding(
        parent.named(name), metadata=metadata(name), spec=made.binding, opts=parent.child(policy, former_name=name)
    )
    return Mutation(made, binding)


def sample_pod(namespace: str, scheduler_name: str, labels: Mapping[str, str]) -> dict[str, Any]:
    """A pod that shares a GPU. It is created as a dry run only, which shows whether admission changes it."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "plimsoll-sample",
            "namespace": namespace,
            "labels": dict(labels),
            "annotations": {GPU_FRACTION: "0.5"},
        },
        "spec": {"schedulerName": scheduler_name, "containers": [{"name": "main", "image": "sample"}]},
    }
