"""The policy on Plimsoll's own labels, annotations and finalizers knows every kind that the controller lists."""

from collections.abc import Iterator
from typing import Any

import pytest

from plimsoll.components.admission import UNCHECKED, own_metadata_policy
from plimsoll.labels import DEMAND, GROUP, SHARD, SPEC_HASH, WORKSPACE, WORKSPACE_NAMESPACE, WORKSPACE_UID
from plimsoll.observe.cluster import DEFINITIONS, Kind, Stores

OF_THE_CLUSTER = {
    ("", "namespaces"),
    ("", "nodes"),
    ("", "persistentvolumes"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
    ("kai.scheduler", "schedulingshards"),
    ("kai.scheduler", "topologies"),
    ("karpenter.azure.com", "aksnodeclasses"),
    ("karpenter.k8s.aws", "ec2nodeclasses"),
    ("karpenter.sh", "nodeclaims"),
    ("karpenter.sh", "nodeoverlays"),
    ("karpenter.sh", "nodepools"),
    ("plimsoll.dev", "environments"),
    ("plimsoll.dev", "gpudemands"),
    ("plimsoll.dev", "nodeprofiles"),
    ("resource.k8s.io", "deviceclasses"),
    ("resource.k8s.io", "resourceslices"),
    ("scheduling.run.ai", "queues"),
    ("storage.k8s.io", "storageclasses"),
}
"""Objects outside namespaces, on which the roles `edit` and `admin` have no rights."""


def listed() -> Iterator[Kind[Any]]:
    yield from (store.kind for store in Stores())
    yield DEFINITIONS


def resource_of(kind: Kind[Any]) -> tuple[str, str]:
    """API group and plural."""
    version, slash, _ = kind.api_version.partition("/")
    return version if slash else "", kind.path.rpartition("/")[2]


def unchecked() -> set[tuple[str, str]]:
    return {(group, resource) for group, resources in UNCHECKED.items() for resource in resources}


def checked() -> set[tuple[str, str]]:
    rules = own_metadata_policy()["policy"]["matchConstraints"]["resourceRules"]
    return {(group, resource) for rule in rules for group in rule["apiGroups"] for resource in rule["resources"]}


def test_every_listed_kind_is_checked_or_excluded_by_name() -> None:
    found = {resource_of(kind) for kind in listed()}
    assert found >= unchecked() | OF_THE_CLUSTER, "an exclusion is of a kind that is listed"
    assert not (unchecked() | OF_THE_CLUSTER) & checked()
    assert found - checked() == unchecked() | OF_THE_CLUSTER


@pytest.mark.parametrize("resource", sorted(unchecked()), ids="/".join)
def test_nothing_reads_own_keys_of_an_excluded_kind(resource: tuple[str, str]) -> None:
    for kind in (each for each in listed() if resource_of(each) == resource):
        metadata = {"name": "a", "namespace": "team", "uid": "1"}
        keys = dict.fromkeys((DEMAND, SHARD, SPEC_HASH, WORKSPACE, WORKSPACE_NAMESPACE, WORKSPACE_UID), "forged")
        own = {"labels": keys, "annotations": keys, "finalizers": [f"{GROUP}/capacity"]}
        more = {"spec": {"hard": {"requests.nvidia.com/gpu": "1"}}} if resource[1] == "resourcequotas" else {}
        plain, forged = (kind.read({"metadata": each, **more}) for each in (metadata, metadata | own))
        assert plain == (forged and forged.model_copy(update={"labels": {}, "annotations": {}}))
        if resource[1] != "events":
            assert kind.quiet >= {"labels", "annotations"}, "a change of them starts no round, as nothing reads them"
