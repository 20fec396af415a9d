"""A foundation for some namespaces: what the controller may write of tenants is granted in these only."""

from typing import Any

import pytest

from plimsoll.components import (
    CONTROLLER,
    CONTROLLER_ELSEWHERE,
    CONTROLLER_FOR_WORKSPACES,
    Foundation,
    FoundationArgs,
)
from tests.components.declaring import declared

NAMESPACES = ["demand", "team"]
WRITES = {"create", "update", "patch", "delete", "deletecollection"}
TOLD = {"events", "workspaces/status", "environments/status", "gpudemands", "gpudemands/status"}
"""What the controller says to users, also to those of a namespace that is not served."""
OF_CLUSTER = {"nodepools", "nodeclaims", "nodeprofiles", "nodeprofiles/status"}

Right = tuple[str, str, str]


def rights(rules: list[dict[str, Any]]) -> set[Right]:
    return {
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


@pytest.fixture(scope="module", autouse=True)
def _without_definitions() -> Any:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("plimsoll.components.foundation.definitions", list)
        patched.setattr("plimsoll.components.foundation.rule_policies", dict)
        yield


def objects(kind: str, args: FoundationArgs) -> dict[tuple[str, str], dict[str, Any]]:
    """The declared objects of a kind, by namespace and name."""
    found = [each["inputs"] for each in declared(lambda: Foundation("plimsoll", args)) if each["type"].endswith(kind)]
    return {(each["metadata"].get("namespace", ""), each["metadata"]["name"]): each for each in found}


def test_both_parts_together_are_the_rights_in_all_namespaces() -> None:
    apart, elsewhere = rights(CONTROLLER_FOR_WORKSPACES), rights(CONTROLLER_ELSEWHERE)
    assert apart | elsewhere == rights(CONTROLLER)
    assert not apart & elsewhere


def test_outside_of_the_served_namespaces_it_writes_nothing_of_tenants() -> None:
    written = {resource for _, resource, verb in rights(CONTROLLER_ELSEWHERE) if verb in WRITES}
    assert written == TOLD | OF_CLUSTER


def test_each_served_namespace_has_its_binding() -> None:
    args: FoundationArgs = {"served_namespaces": NAMESPACES}
    roles, bindings = objects(":Role", args), objects(":RoleBinding", args)
    for namespace in NAMESPACES:
        key = (namespace, "plimsoll-controller")
        assert rights(roles[key]["rules"]) == rights(CONTROLLER_FOR_WORKSPACES)
        assert bindings[key]["roleRef"] == {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "Role",
            "name": "plimsoll-controller",
        }
        account = {"kind": "ServiceAccount", "name": "plimsoll", "namespace": "plimsoll-system"}
        assert bindings[key]["subjects"] == [account]
    everywhere = objects(":ClusterRole", args)["", "plimsoll-controller"]
    assert rights(everywhere["rules"]) == rights(CONTROLLER_ELSEWHERE)


def test_without_the_argument_all_rights_are_in_all_namespaces() -> None:
    everywhere = objects(":ClusterRole", {})["", "plimsoll-controller"]
    assert rights(everywhere["rules"]) == rights(CONTROLLER)
    assert not any("served" in name for _, name in objects(":ValidatingAdmissionPolicy", {}))
