"""ValidatingAdmissionPolicies, which refuse requests without a webhook server."""

from typing import Any, TypedDict

import pulumi
import pulumi_kubernetes as k8s

from plimsoll.components.declaring import Component, metadata


class AdmissionPolicy(TypedDict):
    """`spec` of a ValidatingAdmissionPolicy and of its binding."""

    policy: dict[str, Any]
    binding: dict[str, Any]


def declare_policy(
    name: str, made: AdmissionPolicy, parent: Component, *after: pulumi.Resource
) -> list[pulumi.Resource]:
    """Declares the policy, once `after` are created, and then its binding."""
    policy = k8s.admissionregistration.v1.ValidatingAdmissionPolicy(
        parent.named(name),
        metadata=metadata(name),
        spec=made["policy"],
        opts=parent.child(*after, former_name=name),
    )
    binding = k8s.admissionregistration.v1.ValidatingAdmissionPolicyBinding(
        parent.named(name),
        metadata=metadata(name),
        spec={"policyName": name, **made["binding"]},
        opts=parent.child(policy, former_name=name),
    )
    return [policy, binding]
