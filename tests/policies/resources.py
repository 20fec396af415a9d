"""Resources as the engine passes them to a policy, and the violations of a rule."""

import datetime
from collections.abc import Mapping
from typing import Any

from google.protobuf import json_format, struct_pb2
from pulumi_policy import (
    PolicyCustomTimeouts,
    PolicyResource,
    PolicyResourceOptions,
    ReportViolation,
    ResourceValidationArgs,
    StackValidationArgs,
)
from pulumi_policy.proxy import unknown_checking_proxy

from plimsoll.labels import QUEUE
from plimsoll.policy import RULES
from plimsoll.policy_pack import check_resource, check_stack

OPTIONS = PolicyResourceOptions(False, [], False, [], PolicyCustomTimeouts(0, 0, 0), [])
WORKSPACE = "kubernetes:plimsoll.dev/v1alpha1:Workspace"
ENVIRONMENT = "kubernetes:plimsoll.dev/v1alpha1:Environment"
QUEUE_TYPE = "kubernetes:scheduling.run.ai/v2:Queue"
NODE_CLAIM = "kubernetes:karpenter.sh/v1:NodeClaim"
DEPLOYMENT = "kubernetes:apps/v1:Deployment"
TODAY = datetime.date(2026, 7, 1)

Resource = tuple[str, dict[str, Any]]
"""Type and inputs."""


def a_workspace(instance_type: str | None = None, queue: str | None = "inference", name: str = "phi") -> Resource:
    resource = {"instanceType": instance_type} if instance_type else {}
    spec: dict[str, Any] = {"resource": resource, "inference": {"preset": {"name": "phi-4"}}}
    return WORKSPACE, {"metadata": {"name": name}, "spec": spec | ({"queue": queue} if queue else {})}


def an_environment(auto_provisioning: str | None = None, provisioner: str | None = None) -> Resource:
    spec = {"nodeAutoProvisioning": auto_provisioning, "provisioner": provisioner}
    return ENVIRONMENT, {
        "metadata": {"name": "e"},
        "spec": {key: value for key, value in spec.items() if value is not None},
    }


def a_queue(name: str, parent: str | None = None) -> Resource:
    return QUEUE_TYPE, {"metadata": {"name": name}, "spec": {"parentQueue": parent} if parent else {}}


def a_node_claim(name: str = "claim") -> Resource:
    return NODE_CLAIM, {"metadata": {"name": name}, "spec": {}}


def a_pod_template(
    gpus: int | str = 1, queue: str | None = None, annotations: dict[str, str] | None = None, where: str = "limits"
) -> dict[str, Any]:
    return {
        "metadata": {"labels": {QUEUE: queue} if queue else {}, "annotations": annotations or {}},
        "spec": {"containers": [{"name": "main", "image": "own:1", "resources": {where: {"nvidia.com/gpu": gpus}}}]},
    }


def a_deployment(template: dict[str, Any], labels: dict[str, str] | None = None) -> Resource:
    return DEPLOYMENT, {"metadata": {"name": "own", "labels": labels or {}}, "spec": {"template": template}}


def as_engine_sends(props: Mapping[str, Any]) -> dict[str, Any]:
    """Inputs as a policy gets them: numbers are floating-point ones, and to read an unknown one is an error."""
    sent = struct_pb2.Struct()
    sent.update({name: value for name, value in props.items() if value is not None})
    return unknown_checking_proxy(json_format.MessageToDict(sent))


def violations(rule: str, *given: Resource, config: Mapping[str, Any] | None = None) -> list[str]:
    """The violations that a rule reports for one resource."""
    found: list[str] = []
    for number, (resource_type, props) in enumerate(given):
        read = as_engine_sends(props)
        args = ResourceValidationArgs(resource_type, read, f"urn:{number}", f"r{number}", OPTIONS, None, config)
        check_resource(RULES[rule], lambda: TODAY)(args, _noted_in(found))
    return found


def stack_violations(
    rule: str, *given: Resource, config: Mapping[str, Any] | None = None, found: list[str] | None = None
) -> list[str]:
    """The violations that a rule reports for a whole stack, in `found` as well."""
    found = [] if found is None else found
    resources = [
        PolicyResource(
            resource_type, as_engine_sends(props), f"urn:{number}", f"r{number}", OPTIONS, None, None, [], {}
        )
        for number, (resource_type, props) in enumerate(given)
    ]
    check_stack(RULES[rule], lambda: TODAY)(StackValidationArgs(resources, config), _noted_in(found))
    return found


def _noted_in(found: list[str]) -> ReportViolation:
    def report(message: str, urn: str | None = None) -> None:
        found.append(message)

    return report
