"""Mutation: what the cluster adds to pods at admission, without a webhook server (Kubernetes 1.36)."""

from typing import Any, Final, NamedTuple

import pulumi
from pulumi_kubernetes.admissionregistration.v1 import MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding

from components.declaration import child_of, metadata
from plimsoll.model.share import GPU_FRACTION, GPU_MEMORY_SHARE

SHARED: Final = (
    "has(object.metadata.annotations) && "
    f"('{GPU_FRACTION}' in object.metadata.annotations || '{GPU_MEMORY_SHARE}' in object.metadata.annotations)"
)
"""In CEL: the pod shares GPUs by annotation."""


class MutationPolicy(NamedTuple):
    """`spec` of a MutatingAdmissionPolicy and of its binding."""

    policy: dict[str, Any]
    binding: dict[str, Any]


def declare_mutation(
    name: str, made: MutationPolicy, parent: pulumi.ComponentResource, *after: pulumi.Resource
) -> None:
    """The policy, and then its binding."""
    policy = MutatingAdmissionPolicy(name, metadata=metadata(name), spec=made.policy, opts=child_of(parent, *after))
    MutatingAdmissionPolicyBinding(name, metadata=metadata(name), spec=made.binding, opts=child_of(parent, policy))
