"""A role and its binding to one service account, in one namespace or in all of them."""

from collections.abc import Callable, Sequence
from typing import Any

import pulumi

from plimsoll.components.access import Rule
from plimsoll.kubernetes_sdk import k8s


def grant(
    resource: str,
    described: dict[str, Any],
    rules: list[Rule],
    account: tuple[str, str],
    options: Callable[..., pulumi.ResourceOptions],
    *,
    after: Sequence[pulumi.Resource] = (),
    account_after: Sequence[pulumi.Resource] = (),
) -> list[pulumi.Resource]:
    """Declares the role and its binding, both with the metadata `described`; in all namespaces if it has none.

    `account` is (name, namespace). The role depends on `after`, the binding on the role and `account_after`.
    """
    within = described.get("namespace") is not None
    role_type = k8s.rbac.v1.Role if within else k8s.rbac.v1.ClusterRole
    binding_type = k8s.rbac.v1.RoleBinding if within else k8s.rbac.v1.ClusterRoleBinding
    kind = "Role" if within else "ClusterRole"
    name, namespace = account
    role = role_type(resource, metadata=described, rules=rules, opts=options(*after))
    binding = binding_type(
        resource,
        metadata=described,
        role_ref={"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": described["name"]},
        subjects=[{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
        opts=options(role, *account_after),
    )
    return [role, binding]
