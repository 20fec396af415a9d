"""The rule on `access` of the Environment agrees with the verdict."""

from typing import Any

import pytest

from plimsoll.plan import validate
from tests.builders import NC24, a_snapshot, a_template, a_workspace
from tests.builders import an_environment as an_observed_environment
from tests.policy_rules.manifests import Manifest, an_environment, broken, findings

ONLY = [{"namespaces": ["team"], "queues": ["team", "shared"], "instanceTypes": [NC24]}]
OTHERS = [*ONLY, {"namespaces": ["*"], "queues": []}]


def a_manifest(
    namespace: str = "team", queue: str = "team", instance_type: str = NC24, labels: dict[str, str] | None = None
) -> Manifest:
    template = {"metadata": {"labels": labels}, **a_template()}
    return {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "Workspace",
        "metadata": {"name": "ws", "namespace": namespace},
        "spec": {
            "queue": queue,
            "resource": {"instanceType": instance_type},
            "inference": {"preset": {"name": "phi-4"}} if labels is None else {"template": template},
        },
    }


@pytest.mark.parametrize(
    ("access", "fields", "field"),
    [
        (ONLY, {}, None),
        (ONLY, {"queue": "shared", "instance_type": NC24.upper()}, None),
        (ONLY, {"queue": "other"}, "spec.queue"),
        (ONLY, {"instance_type": "p5.48xlarge"}, "spec.resource.instanceType"),
        (ONLY, {"namespace": "else"}, "metadata.namespace"),
        (OTHERS, {"namespace": "else"}, "spec.queue"),
        (ONLY, {"queue": "", "labels": {"kai.scheduler/queue": "other"}}, "spec.inference.template.metadata.labels"),
        (ONLY, {"queue": "", "labels": {"project": "other"}}, "spec.inference.template.metadata.labels"),
        (ONLY, {"queue": "", "labels": {"project": "shared", "app": "a"}}, None),
        (ONLY, {"labels": {"kai.scheduler/queue": "other"}}, None),
        ([], {"namespace": "else", "queue": "any", "instance_type": "p5.48xlarge"}, None),
    ],
)
def test_the_rule_agrees_with_the_verdict(access: list[Any], fields: dict[str, Any], field: str | None) -> None:
    environment = an_environment(nodeAutoProvisioning="enabled", access=access)
    manifest = a_manifest(**fields)
    found = [each for each in findings(manifest, environment) if each.rule == "workspace-access"]
    assert [each.field for each in found] == ([] if field is None else [field])
    verdict_of = a_workspace(
        namespace=manifest["metadata"]["namespace"],
        queue=manifest["spec"]["queue"],
        instance_type=manifest["spec"]["resource"]["instanceType"],
        template=manifest["spec"]["inference"].get("template"),
        preset=manifest["spec"]["inference"].get("preset", {}).get("name"),
    )
    snapshot = a_snapshot(verdict_of, environment=an_observed_environment(nap=True, access=access))
    [verdict] = validate(snapshot)
    assert verdict.accepted is (field is None)
    assert all(verdict.message in each.message for each in found)


@pytest.mark.parametrize(("key", "accepted"), [("example.com/pool", True), ("kai.scheduler/node-pool", False)])
def test_the_node_pool_of_the_environment_names_the_queue_of_a_project(key: str, accepted: bool) -> None:
    access = [{"namespaces": ["team"], "queues": ["shared-a"]}]
    labels = {"project": "shared", "example.com/pool": "a", "kai.scheduler/node-pool": "b"}
    settings: dict[str, Any] = {"access": access, "nodePoolLabelKey": key}
    manifest = a_manifest(queue="", labels=labels)
    found = broken(manifest, an_environment(nodeAutoProvisioning="enabled", **settings))
    assert ("workspace-access" in [rule for rule, _ in found]) is not accepted
    workspace = a_workspace(
        namespace="team", queue="", instance_type=NC24, template=manifest["spec"]["inference"]["template"]
    )
    [verdict] = validate(a_snapshot(workspace, environment=an_observed_environment(nap=True, **settings)))
    assert verdict.accepted is accepted


def test_instance_types_are_checked_with_auto_provisioning_only() -> None:
    byo = an_environment(nodeAutoProvisioning="disabled", access=ONLY)
    assert "workspace-access" not in [rule for rule, _ in broken(a_manifest(instance_type=""), byo)]


def test_each_of_several_instance_types_must_be_allowed() -> None:
    environment = an_environment(nodeAutoProvisioning="enabled", access=ONLY)
    manifest = a_manifest()
    manifest["spec"]["resource"] = {"instanceTypes": [NC24, "p5.48xlarge"]}
    [found] = [each for each in findings(manifest, environment) if each.rule == "workspace-access"]
    assert "p5.48xlarge" in found.message
    manifest["spec"]["resource"] = {"instanceTypes": [NC24]}
    assert broken(manifest, environment) == []


def test_an_invalid_environment_causes_no_finding() -> None:
    odd = an_environment(nodeAutoProvisioning="enabled", access="everything")
    assert "workspace-access" not in [rule for rule, _ in broken(a_manifest(), odd)]


def test_instance_types_are_checked_where_they_narrow_the_choice_of_existing_nodes() -> None:
    environment = an_environment(nodeAutoProvisioning="disabled", byoInstanceType="narrow", access=ONLY)
    found = findings(a_manifest(instance_type="p5.48xlarge"), environment)
    assert [each.field for each in found if each.rule == "workspace-access"] == ["spec.resource.instanceType"]
