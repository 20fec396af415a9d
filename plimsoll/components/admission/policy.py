"""ValidatingAdmissionPolicies, which refuse requests without a webhook server."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict

import pulumi

from plimsoll.components.declaring import Component, metadata
from plimsoll.kubernetes_sdk import k8s


class AdmissionPolicy(TypedDict):
    """`spec` of a ValidatingAdmissionPolicy and of its binding."""

    policy: dict[str, Any]
    binding: dict[str, Any]


def resource_rule(group: str, *resources: str, operations: Sequence[str] = ("CREATE", "UPDATE")) -> dict[str, Any]:
    """An entry of `matchConstraints.resourceRules`, for all versions of the group."""
    return {"apiGroups": [group], "apiVersions": ["*"], "operations": [*operations], "resources": [*resources]}


def denying(
    rules: Iterable[dict[str, Any]],
    *validations: tuple[str, str],
    variables: Mapping[str, str] | None = None,
    conditions: Mapping[str, str] | None = None,
    reason: str = "Forbidden",
    constraints: Mapping[str, Any] | None = None,
) -> AdmissionPolicy:
    """A policy that refuses what breaks a validation (an expression, and the expression of its message), and what it
    cannot evaluate. `constraints` are further fields of `matchConstraints`."""
    policy: dict[str, Any] = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": list(rules), **(constraints or {})},
        "validations": [
            {"expression": expression, "messageExpression": message, "reason": reason}
            for expression, message in validations
        ],
    }
    for field, expressions in (("matchConditions", conditions), ("variables", variables)):
        if expressions:
            policy[field] = [{"name": name, "expression": each} for name, each in expressions.items()]
    return {"policy": policy, "binding": {"validationActions": ["Deny"]}}


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
