"""Guards: ConfigMaps whose deletion the cluster refuses while capacity exists, so that their stack cannot be destroyed.

A guard depends on everything else in its stack, so a destroy deletes it first and stops there. A
ValidatingAdmissionPolicy of the foundation refuses the deletion, from kubectl as well as from Pulumi.
"""

from collections.abc import Sequence
from typing import Any, Final

import pulumi

from plimsoll.components.access import NAMESPACE
from plimsoll.components.admission.policy import AdmissionPolicy, denying, resource_rule
from plimsoll.components.args import GuardArgs
from plimsoll.components.declaring import Component, checked, fields_of, metadata, name_of
from plimsoll.components.specs import GuardSpec, Layer
from plimsoll.kubernetes_sdk import k8s
from plimsoll.labels import API_VERSION, ENVIRONMENT, GROUP, NAMESPACE_NAME

GUARD_LABEL: Final = f"{GROUP}/guard"
_OF_ANOTHER: Final = (
    f"has(oldObject.metadata.annotations) && '{ENVIRONMENT}' in oldObject.metadata.annotations"
    f" && oldObject.metadata.annotations['{ENVIRONMENT}'] != params.metadata.name"
)
"""CEL: the guard is that of another Environment than `params`, as after one was renamed."""


def guarded(layer: Layer) -> dict[str, str]:
    """The label of objects that cannot be deleted while an Environment, or its capacity, exists."""
    return {GUARD_LABEL: layer}


FOUNDATION_GUARD: Final[GuardArgs] = {
    "layer": "foundation",
    "explanation": "Cannot be deleted while an Environment exists: run `plimsoll destroy`.",
}
"""Arguments of the guards of a Foundation, and of the stack that declares one with a Controller."""


class Guard(Component):
    """The ConfigMap in plimsoll-system, `config_map`. `depends_on` of its options names everything that it guards.

    Raises InvalidArgumentError if an argument is invalid.
    """

    guard_name: pulumi.Output[str]
    """Name of the ConfigMap."""

    def __init__(self, name: str, args: GuardArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("Guard", name, args, opts)
        depends_on = opts.depends_on if opts is not None else None
        given: Any = checked(GuardSpec, "Guard", name, fields_of(args, "name"), GuardSpec.manifest)
        self.config_map = k8s.core.v1.ConfigMap(
            name,
            metadata=metadata(
                self.given("name", name),
                NAMESPACE,
                {GUARD_LABEL: given["layer"]},
                # Not data, because a ConfigMap whose data changes is replaced, and its deletion refused.
                annotations={ENVIRONMENT: given["environment"]} if "environment" in given else None,
            ),
            data={"explanation": given["explanation"]},
            opts=pulumi.ResourceOptions(parent=self, depends_on=depends_on, aliases=_known_as(args)),
        )
        self.guard_name = name_of(self.config_map, args.get("name"))
        self.register_outputs({"guardName": self.guard_name})


def _known_as(args: GuardArgs) -> list[pulumi.Alias]:
    """In release 0.1 the resource of a foundation's ConfigMap had the ConfigMap's name."""
    name = args.get("name")
    return [pulumi.Alias(name=name)] if isinstance(name, str) else []


def admission_policies() -> dict[str, AdmissionPolicy]:
    """By name: the admission policies that deny deletions."""
    living = "(has({0}.status) && has({0}.status.{1}) ? {0}.status.{1} : 0)"

    def environment(of: str) -> tuple[str, str]:
        claims, workloads = living.format(of, "nodeClaims"), living.format(of, "workloads")
        pools = living.format(of, "nodePools")
        return (
            f"{claims} == 0 && {pools} == 0 && {workloads} == 0",
            f"'Environment ' + {of}.metadata.name + ' still has ' + string({claims}) + ' NodeClaims, '"
            f" + string({pools}) + ' NodePools and ' + string({workloads}) + ' workloads: run `plimsoll destroy`,"
            " which drains them first'",
        )

    without_capacity, message = environment("params")
    return {
        "plimsoll-foundation": _policy(
            [
                resource_rule("", "configmaps", operations=("DELETE",)),
                resource_rule("apiextensions.k8s.io", "customresourcedefinitions", operations=("DELETE",)),
            ],
            "false",
            "'Environment ' + params.metadata.name + ' still exists: run `plimsoll destroy`, which drains its capacity,"
            " then removes the environment, then the foundation'",
            for_each_environment=True,
            only_guards_of="foundation",
        ),
        "plimsoll-environment-stack": _policy(
            [resource_rule("", "configmaps", operations=("DELETE",))],
            f"({_OF_ANOTHER}) || ({without_capacity})",
            message,
            for_each_environment=True,
            only_guards_of="environment",
        ),
        "plimsoll-environment": _policy(
            [resource_rule(GROUP, "environments", operations=("DELETE",))], *environment("oldObject")
        ),
    }


def _policy(
    resource_rules: Sequence[dict[str, Any]],
    expression: str,
    message: str,
    *,
    for_each_environment: bool = False,
    only_guards_of: Layer | None = None,
) -> AdmissionPolicy:
    made = denying(resource_rules, (expression, message))
    policy, binding = made["policy"], made["binding"]
    if for_each_environment:
        policy["paramKind"] = {"apiVersion": API_VERSION, "kind": "Environment"}
        binding["paramRef"] = {"selector": {}, "parameterNotFoundAction": "Allow"}
    if only_guards_of is not None:
        policy["matchConstraints"] |= {
            "namespaceSelector": {"matchLabels": {NAMESPACE_NAME: NAMESPACE}},
            "objectSelector": {"matchLabels": guarded(only_guards_of)},
        }
    return made
