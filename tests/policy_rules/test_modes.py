"""Workspaces of KAITO and of Plimsoll, and NodeClaims, in each provisioning mode."""

from typing import Any

import pytest

from tests.policy_rules.manifests import (
    Manifest,
    a_kaito_workspace,
    an_environment,
    an_inference_set,
    broken,
    findings,
    with_path,
)

BYO = an_environment(nodeAutoProvisioning="disabled")
NAP = an_environment(nodeAutoProvisioning="enabled")
TYPE = "Standard_NC24ads_A100_v4"


def a_workspace(instance_type: str | None = None) -> Manifest:
    workspace = a_kaito_workspace(instance_type)
    spec = {key: workspace.pop(key) for key in ("resource", "inference")}
    return {**workspace, "apiVersion": "plimsoll.dev/v1alpha1", "spec": spec}


@pytest.mark.parametrize(
    ("make", "path"), [(a_kaito_workspace, ""), (a_workspace, "spec."), (an_inference_set, "spec.template.")]
)
@pytest.mark.parametrize(
    ("environment", "instance_type", "wrong"),
    [(BYO, None, False), (BYO, TYPE, True), (NAP, TYPE, False), (NAP, None, True)],
)
def test_an_instance_type_fits_the_mode(
    make: Any, path: str, environment: Manifest | None, instance_type: str | None, wrong: bool
) -> None:
    given = [make(instance_type), *([environment] if environment else [])]
    assert broken(*given) == ([("workspace-instance-type", f"{path}resource.instanceType")] if wrong else [])


def test_the_environment_may_let_a_type_narrow_existing_nodes() -> None:
    narrowing = an_environment(nodeAutoProvisioning="disabled", byoInstanceType="narrow")
    assert broken(a_workspace(TYPE), narrowing) == []
    assert broken(a_workspace(), narrowing) == []
    assert broken(a_kaito_workspace(TYPE), narrowing) == [("workspace-instance-type", "resource.instanceType")]


def test_without_an_environment_workspaces_are_checked_as_plan_does() -> None:
    assert broken(a_workspace(TYPE)) == [("workspace-instance-type", "spec.resource.instanceType")]
    assert broken(a_kaito_workspace(TYPE)) == []


def test_the_mode_may_be_an_option_of_the_rule() -> None:
    rules = {"workspace-instance-type": {"options": {"nodeAutoProvisioning": "disabled"}}}
    assert broken(a_kaito_workspace(TYPE), rules=rules) == [("workspace-instance-type", "resource.instanceType")]


@pytest.mark.parametrize("environment", [BYO, None])
@pytest.mark.parametrize("selector", [{}, {"matchLabels": {}}, None])
def test_an_empty_selector_matches_every_node(environment: Manifest | None, selector: Any) -> None:
    workspace = a_kaito_workspace(resource__labelSelector=selector)
    given = [workspace, *([environment] if environment else [])]
    assert broken(*given) == [("workspace-selects-nodes", "resource.labelSelector")]


def test_provisioned_nodes_need_no_selector() -> None:
    assert broken(a_kaito_workspace(TYPE, resource__labelSelector={}), NAP) == []


def test_a_partition_is_for_existing_nodes() -> None:
    workspace = a_kaito_workspace(TYPE, resource__partition={"mode": "mig", "profile": "1g.10gb"})
    assert broken(workspace, NAP) == [("workspace-partition", "resource.partition")]
    assert broken(with_path(workspace, resource__instanceType=None), BYO) == []


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"resource__preferredNodes": ["a"]}, "resource.preferredNodes"),
        ({"resource__count": 3}, "resource.count"),
        ({"resource__count": 2, "inference": None, "tuning": {"preset": {"name": "a"}}}, "resource.count"),
    ],
)
def test_ignored_fields_are_a_warning(changes: dict[str, Any], field: str) -> None:
    (found,) = findings(a_kaito_workspace(**changes))
    assert (found.rule, found.severity, found.field) == ("workspace-ignored-field", "warning", field)


def test_reserved_labels_are_those_of_the_environment() -> None:
    workspace = a_kaito_workspace(resource__labelSelector={"matchLabels": {"kaito.sh/workspace": "a"}})
    assert broken(workspace) == [("workspace-reserved-labels", "resource.labelSelector")]
    assert broken(workspace, an_environment(reservedLabelPrefixes=["own/"])) == []


@pytest.mark.parametrize(
    ("selector", "settings", "wrong"),
    [
        ({"matchLabels": {"apps": "chat", "topology.kubernetes.io/zone": "a"}}, {}, False),
        ({"matchLabels": {"team.example/tier": "a"}}, {}, True),
        ({"matchLabels": {"team.example/tier": "a"}}, {"nodeLabelPrefixes": ["team.example"]}, False),
        ({"matchLabels": {"apps": "chat"}}, {"nodeLabelPrefixes": []}, True),
        ({"matchLabels": {"node-role.kubernetes.io/control-plane": ""}}, {}, True),
        ({"matchExpressions": [{"key": "nvidia.com/gpu.product", "operator": "Exists"}]}, {}, True),
        ({"matchLabels": {"nvidia.com/gpu.product": "a"}}, {"nodeLabelPrefixes": ["nvidia.com"]}, True),
    ],
)
def test_labels_of_provisioned_nodes_are_those_that_the_environment_allows(
    selector: Any, settings: dict[str, Any], wrong: bool
) -> None:
    workspace = with_path(a_workspace(TYPE), spec__resource__labelSelector=selector)
    environment = an_environment(nodeAutoProvisioning="enabled", **settings)
    expected = [("workspace-node-labels", "spec.resource.labelSelector")] if wrong else []
    assert broken(workspace, environment) == expected
    byo = an_environment(nodeAutoProvisioning="disabled", byoInstanceType="narrow", **settings)
    assert broken(workspace, byo) == []


CLAIM: Manifest = {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": "claim"}, "spec": {}}


@pytest.mark.parametrize(
    ("environment", "wrong"),
    [
        (an_environment(nodeAutoProvisioning="enabled", provisioner="static-nodepool"), True),
        (an_environment(nodeAutoProvisioning="enabled"), False),
        (BYO, True),
        (None, False),
    ],
)
def test_a_node_claim_fits_the_provisioner(environment: Manifest | None, wrong: bool) -> None:
    given = [CLAIM, *([environment] if environment else [])]
    assert broken(*given) == ([("node-claim-provisioner", "kind")] if wrong else [])


def test_node_claims_of_karpenter_are_ignored() -> None:
    owned = with_path(CLAIM, metadata__ownerReferences=[{"kind": "NodePool", "name": "gpu"}])
    assert broken(owned, BYO) == []
