"""The Deployment of the web pages: a read-only account, and who may connect."""

from typing import Any, Unpack

import pytest

from plimsoll.components import UI, Controller, ControllerArgs, InvalidArgumentError, UiArgs
from plimsoll.observe.cluster import DEFINITIONS, Store, Stores
from tests.components.declaring import declared, manifest

GIVEN: ControllerArgs = {"image": "a:1", "backend": "s3://states", "passphrase": {"name": "plimsoll"}}


def made(**ui: Unpack[UiArgs]) -> list[dict[str, Any]]:
    args: ControllerArgs = {**GIVEN, "ui": ui}
    return [each for each in declared(lambda: Controller("controller", args)) if "plimsoll-ui" in each["name"]]


def test_its_role_reads_every_observed_kind_and_writes_none() -> None:
    allowed = {(group, resource) for rule in UI for group in rule["apiGroups"] for resource in rule["resources"]}
    for store in (*Stores(), Store(DEFINITIONS)):
        group = store.kind.api_version.rpartition("/")[0]
        assert (group, store.kind.path.rpartition("/")[2]) in allowed
    assert {verb for rule in UI for verb in rule["verbs"]} <= {"get", "list", "watch"}
    assert not {"secrets", "configmaps", "*"} & {resource for _, resource in allowed}


def test_without_a_proxy_no_connection_is_admitted() -> None:
    policy = manifest(made(), "NetworkPolicy")["spec"]
    assert policy["ingress"] == []
    assert policy["policyTypes"] == ["Ingress", "Egress"]


def test_without_labels_all_pods_of_the_proxys_namespace_are_admitted() -> None:
    (rule,) = manifest(made(proxy={"namespace": "ingress"}), "NetworkPolicy")["spec"]["ingress"]
    assert rule["from"] == [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ingress"}}}]


def test_the_selectors_of_controller_and_pages_do_not_overlap() -> None:
    everything = declared(lambda: Controller("controller", {**GIVEN, "ui": {}}))
    selectors = [
        each["inputs"]["spec"]["selector"]["matchLabels"] for each in everything if each["type"].endswith(":Deployment")
    ]
    assert len(selectors) == 2
    assert selectors[0] != selectors[1]
    service = manifest(everything, "Service")["spec"]
    assert service["selector"] in selectors
    assert service["sessionAffinity"] == "ClientIP", "a page and its stream of changes come from the same replica"


def test_a_wrong_field_is_named() -> None:
    with pytest.raises(InvalidArgumentError, match=r"ui\.proxy\.namespace"):
        made(proxy={})  # type: ignore[arg-type]
