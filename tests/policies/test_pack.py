"""The policy pack contains every rule with its configuration: options, exemptions, and the stack's Environment."""

import datetime
from typing import Any

import pytest
from pulumi_policy import EnforcementLevel, ResourceValidationPolicy, StackValidationPolicy

from plimsoll.policy import RULES
from plimsoll.policy_pack import IN_STACK, config_schema, policies
from tests.policies.resources import (
    TODAY,
    Resource,
    a_deployment,
    a_pod_template,
    a_workspace,
    an_environment,
    stack_violations,
    violations,
)

DAY = datetime.timedelta(days=1)


def test_every_rule_is_enforced_under_its_name() -> None:
    names = [policy.name for policy in policies()]
    assert len(set(names)) == len(names)
    assert {name.removesuffix(IN_STACK) for name in names} == set(RULES)


def test_rules_on_the_mode_use_the_configuration_and_the_stack() -> None:
    by_name = {policy.name: policy for policy in policies()}
    assert isinstance(by_name["workspace-instance-type"], ResourceValidationPolicy)
    assert isinstance(by_name["workspace-instance-type-in-stack"], StackValidationPolicy)
    assert isinstance(by_name["image-tag-pinned"], ResourceValidationPolicy)
    assert isinstance(by_name["queue-cycle"], StackValidationPolicy)


def test_warnings_are_advisory() -> None:
    by_name = {policy.name: policy for policy in policies()}
    assert by_name["node-pool-limit-remainder"].enforcement_level is EnforcementLevel.ADVISORY
    assert by_name["node-pool-limits-fit"].enforcement_level is EnforcementLevel.MANDATORY


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_each_option_has_one_type_in_the_schema(rule: Any) -> None:
    properties = config_schema(rule).properties
    assert set(properties) == {field.alias for field in rule.options.model_fields.values()} | {"exemptions"}
    assert all(isinstance(each["type"], str) for each in properties.values())


def unpinned() -> Resource:
    template = a_pod_template(queue="q")
    template["spec"]["containers"][0]["image"] = "own:latest"
    return a_deployment(template)


def exemption(until: datetime.date, **which: str) -> dict[str, Any]:
    return {"name": "own", "reason": "moves", "until": until.isoformat(), **which}


def test_a_resource_is_checked_with_options_and_exemptions() -> None:
    (found,) = violations("image-tag-pinned", unpinned())
    assert found.startswith("Deployment own: the image is 'own:latest'")
    assert violations("image-tag-pinned", unpinned(), config={"exemptions": [exemption(TODAY)]}) == []
    assert len(violations("image-tag-pinned", unpinned(), config={"exemptions": [exemption(TODAY - DAY)]})) == 1
    digests = {"required": True}
    pinned = a_deployment(a_pod_template(queue="q"))
    assert len(violations("image-digest", pinned, config=digests)) == 1
    assert violations("image-digest", pinned) == []


def test_a_stack_is_checked_with_the_settings_of_its_environment() -> None:
    kind, props = an_environment("disabled")
    ended = {**exemption(TODAY - DAY), "rule": "image-tag-pinned"}
    agreed = {**exemption(TODAY, name="phi"), "rule": "workspace-instance-type"}
    props["spec"]["policies"] = {"exemptions": [ended, agreed]}
    environment = (kind, props)
    assert stack_violations("workspace-instance-type", a_workspace("p5.48xlarge"), environment) == []
    assert len(stack_violations("workspace-instance-type", a_workspace("p5.48xlarge", name="b"), environment)) == 1
    (found,) = stack_violations("exemption-expired", environment)
    assert all(each in found for each in ("the exemption from image-tag-pinned ", "2026-06-30"))


UNRELATED = {"exemptions": [exemption(TODAY, name="another")]}


@pytest.mark.parametrize(
    ("config", "exceeded"),
    [
        ({}, ["Queue q"]),
        (UNRELATED, ["Queue q"]),
        ({"environment": 3}, ["Environment e", "Queue q"]),
        ({"queues": {"q": 4}}, []),
    ],
)
def test_a_configuration_keeps_the_options_of_the_environment(config: dict[str, Any], exceeded: list[str]) -> None:
    kind, props = an_environment("disabled")
    props["spec"]["policies"] = {"rules": {"gpu-budget": {"options": {"queues": {"q": 1}}}}}
    found = stack_violations("gpu-budget", (kind, props), a_deployment(a_pod_template(4, queue="q")), config=config)
    assert sorted(each.partition(": ")[0] for each in found) == exceeded


@pytest.mark.parametrize("config", [{}, UNRELATED, {"queues": {"q": 1}}])
def test_a_configuration_keeps_the_severity_of_the_environment(config: dict[str, Any]) -> None:
    kind, props = an_environment("disabled")
    props["spec"]["policies"] = {"rules": {"gpu-budget": {"severity": "off", "options": {"queues": {"q": 1}}}}}
    assert (
        stack_violations("gpu-budget", (kind, props), a_deployment(a_pod_template(4, queue="q")), config=config) == []
    )


def a_chart(version: str | None) -> Resource:
    return "kubernetes:helm.sh/v4:Chart", {"chart": "gpu-operator", "version": version}


def test_a_chart_without_arguments_is_not_checked() -> None:
    assert violations("chart-version-pinned", ("kubernetes:helm.sh/v3:Chart", {})) == []


@pytest.mark.parametrize(("version", "wrong"), [("v25.3.4", False), (">=1", True), (None, True)])
def test_charts_of_a_program_are_pinned(version: str | None, wrong: bool) -> None:
    assert len(violations("chart-version-pinned", a_chart(version))) == wrong


def test_replicas_count() -> None:
    kind, deployment = a_deployment(a_pod_template(1, queue="q"))
    deployment["spec"]["replicas"] = 8
    (found,) = stack_violations("gpu-budget", (kind, deployment), config={"environment": 4})
    assert "8 GPUs" in found


def test_a_severity_of_the_environment_applies(capsys: pytest.CaptureFixture[str]) -> None:
    kind, props = an_environment("disabled")
    props["spec"]["policies"] = {"rules": {"queue-unknown": {"severity": "warning"}}}
    assert stack_violations("queue-unknown", a_workspace(queue="nobody")) != []
    assert stack_violations("queue-unknown", a_workspace(queue="nobody"), (kind, props)) == []
    assert "Workspace phi names Queue nobody" in capsys.readouterr().out


def test_a_pod_of_the_core_api_group_is_checked() -> None:
    pod = {
        "metadata": {"name": "p", "annotations": {"gpu-fraction": "1.5"}},
        "spec": {"containers": [{"name": "main", "image": "own:1"}]},
    }
    assert len(violations("gpu-share-fraction", ("kubernetes:core/v1:Pod", pod))) == 1
