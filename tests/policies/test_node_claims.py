"""NodeClaims are allowed only if the environment's provisioner creates them."""

import pytest

from tests.policies.resources import a_node_claim, a_workspace, an_environment, stack_violations, violations


@pytest.mark.parametrize(
    ("config", "refused"),
    [
        ({"provisioner": "trigger-pod"}, True),
        ({"provisioner": "byo"}, True),
        ({"nodeAutoProvisioning": "disabled"}, True),
        ({"provisioner": "nodeclaim"}, False),
        ({"nodeAutoProvisioning": "enabled"}, False),
        ({"nodeAutoProvisioning": "enabled", "provisioner": "trigger-pod"}, True),
        ({}, False),
    ],
)
def test_provisioner_from_the_configuration(config: dict[str, str], refused: bool) -> None:
    found = violations("node-claim-provisioner", a_node_claim(), a_workspace(), config=config)
    assert len(found) == refused
    assert all(text.startswith("NodeClaim claim: ") and "'nodeclaim'" in text for text in found)


@pytest.mark.parametrize(
    ("auto_provisioning", "provisioner", "refused"),
    [
        ("enabled", "trigger-pod", True),
        ("enabled", None, False),
        ("enabled", "nodeclaim", False),
        ("disabled", None, True),
    ],
)
def test_provisioner_from_the_stacks_environment(
    auto_provisioning: str, provisioner: str | None, refused: bool
) -> None:
    given = (a_node_claim("a"), a_node_claim("b"), an_environment(auto_provisioning, provisioner))
    found = stack_violations("node-claim-provisioner", *given)
    assert len(found) == 2 * refused


def test_a_stack_without_an_environment_needs_the_configuration() -> None:
    assert stack_violations("node-claim-provisioner", a_node_claim()) == []


def test_the_configuration_of_the_stacks_policy_replaces_the_environments_mode() -> None:
    given = (a_node_claim(), an_environment("disabled"))
    assert stack_violations("node-claim-provisioner", *given, config={"provisioner": "nodeclaim"}) == []
