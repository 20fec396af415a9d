"""A Workspace has an instance type if nodes are provisioned, and none on existing nodes."""

from typing import Any

import pytest

from tests.policies.resources import (
    a_deployment,
    a_pod_template,
    a_workspace,
    an_environment,
    stack_violations,
    violations,
)

# The sentences of KAITO's webhook, so that a search for one finds both.
FORBIDDEN = "instanceType must be empty when node auto-provisioning is disabled (BYO scenario)"
REQUIRED = "instanceType is required when node auto-provisioning is enabled"

CASES = [
    ("disabled", "p5.48xlarge", FORBIDDEN),
    ("disabled", None, None),
    ("enabled", "p5.48xlarge", None),
    ("enabled", None, REQUIRED),
]


@pytest.mark.parametrize(("mode", "instance_type", "words"), CASES)
def test_mode_from_the_configuration(mode: str, instance_type: str | None, words: str | None) -> None:
    config = {"nodeAutoProvisioning": mode}
    found = violations("workspace-instance-type", a_workspace(instance_type), config=config)
    assert_message(found, words)


@pytest.mark.parametrize(("mode", "instance_type", "words"), CASES)
def test_mode_from_the_stacks_environment(mode: str, instance_type: str | None, words: str | None) -> None:
    found = stack_violations("workspace-instance-type", a_workspace(instance_type), an_environment(mode))
    assert_message(found, words)


def assert_message(found: list[str], words: str | None) -> None:
    if words is None:
        assert found == []
    else:
        assert len(found) == 1
        assert found[0].startswith("Workspace phi: ")
        assert words in found[0]


def test_an_environment_without_a_mode_uses_existing_nodes() -> None:
    found = stack_violations("workspace-instance-type", a_workspace("p5.48xlarge"), an_environment())
    assert_message(found, FORBIDDEN)


def test_the_configuration_comes_before_the_stacks_environment() -> None:
    given = (a_workspace("p5.48xlarge"), an_environment("disabled"))
    config = {"provisioner": "nodeclaim"}
    assert stack_violations("workspace-instance-type", *given, config=config) == []
    assert violations("workspace-instance-type", *given, config=config) == []


@pytest.mark.parametrize("config", [None, {}])
def test_without_a_mode_nothing_is_reported(config: Any) -> None:
    assert violations("workspace-instance-type", a_workspace("p5.48xlarge"), config=config) == []
    assert stack_violations("workspace-instance-type", a_workspace("p5.48xlarge"), config=config) == []


def test_other_kinds_are_ignored() -> None:
    config = {"nodeAutoProvisioning": "enabled"}
    assert violations("workspace-instance-type", a_deployment(a_pod_template()), config=config) == []


def test_every_wrong_workspace_is_named() -> None:
    given = (a_workspace("p5", name="a"), a_workspace(None, name="b"), a_workspace("p5", name="c"), an_environment())
    found = stack_violations("workspace-instance-type", *given)
    assert [text.split(":")[0] for text in found] == ["Workspace a", "Workspace c"]


@pytest.mark.parametrize(("mode", "words"), [("enabled", "partition must be absent"), ("disabled", None)])
def test_a_partition_is_for_existing_nodes(mode: str, words: str | None) -> None:
    kind, props = a_workspace("p5.48xlarge" if mode == "enabled" else None)
    props["spec"]["resource"]["partition"] = {"mode": "mig", "profile": "1g.10gb"}
    assert_message(stack_violations("workspace-partition", (kind, props), an_environment(mode)), words)
