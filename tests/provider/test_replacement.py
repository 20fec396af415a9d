from typing import Any

import pytest

from plimsoll.provider import INPUTS, Diff, diff
from tests.provider.conftest import Sessions


def an_object(api_version: str, kind: str, name: str = "one", **fields: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "default"}, **fields}


def compared(sessions: Sessions, old: dict[str, Any], new: dict[str, Any], **settings: str) -> Diff:
    live = {**old, "metadata": {**old["metadata"], "uid": "u", "resourceVersion": "1"}, INPUTS: old}
    return diff(sessions(**settings), live, new, [])


def replaces(found: Diff) -> bool:
    return bool(found.replaced)


@pytest.mark.parametrize(
    ("api_version", "kind", "old", "new", "replaced"),
    [
        ("karpenter.sh/v1", "NodeClaim", {"spec": {"a": [1]}}, {"spec": {"a": [2]}}, True),
        ("karpenter.sh/v1", "NodePool", {"spec": {"a": 1}}, {"spec": {"a": 2}}, False),
        ("apps/v1", "Deployment", {"spec": {"replicas": 1}}, {"spec": {"replicas": 2}}, False),
        ("apps/v1", "Deployment", {"spec": {"selector": {"a": {"b": "1"}}}}, {"spec": {"selector": {}}}, True),
        ("apps/v1", "StatefulSet", {"spec": {"serviceName": "a"}}, {"spec": {"serviceName": "b"}}, True),
        ("apps/v1", "StatefulSet", {"spec": {"replicas": 1}}, {"spec": {"replicas": 2}}, False),
        ("batch/v1", "Job", {"spec": {"template": {"a": 1}}}, {"spec": {"template": {"a": 2}}}, True),
        ("batch/v1", "Job", {"spec": {"suspend": True}}, {"spec": {"suspend": False}}, False),
        ("v1", "Pod", {"spec": {"containers": [{"image": "a"}]}}, {"spec": {"containers": [{"image": "b"}]}}, True),
        ("v1", "Pod", {"spec": {"tolerations": []}}, {"spec": {"tolerations": [{"key": "a"}]}}, False),
        ("v1", "Pod", {"spec": {}}, {"spec": {"nodeName": "n"}}, True),
        ("v1", "Service", {"spec": {"clusterIP": "1"}}, {"spec": {"clusterIP": "2"}}, True),
        ("v1", "PersistentVolume", {"spec": {"capacity": "1"}}, {"spec": {"capacity": "2"}}, False),
        ("v1", "PersistentVolume", {"spec": {"nfs": {"path": "1"}}}, {"spec": {"nfs": {"path": "2"}}}, True),
        ("rbac.authorization.k8s.io/v1", "RoleBinding", {"roleRef": {"name": "a"}}, {"roleRef": {"name": "b"}}, True),
        ("v1", "ConfigMap", {"data": {"a": "1"}}, {"data": {"a": "2"}}, True),
        ("v1", "Secret", {"type": "a"}, {"type": "b"}, True),
    ],
)  # fmt: skip
def test_immutable_fields_replace_the_object(
    sessions: Sessions, api_version: str, kind: str, old: Any, new: Any, replaced: bool
) -> None:
    found = compared(sessions, an_object(api_version, kind, **old), an_object(api_version, kind, **new))
    assert found.changed
    assert replaces(found) is replaced


@pytest.mark.parametrize(
    ("kind", "setting"), [("ConfigMap", "enableConfigMapMutable"), ("Secret", "enableSecretMutable")]
)
def test_data_changes_in_place_only_where_the_provider_says_so(sessions: Sessions, kind: str, setting: str) -> None:
    old, new = an_object("v1", kind, data={"a": "1"}), an_object("v1", kind, data={"a": "2"})
    assert replaces(compared(sessions, old, new))
    assert not replaces(compared(sessions, old, new, **{setting: "true"}))
    assert replaces(compared(sessions, old, new | {"immutable": True}, **{setting: "true"}))


def test_a_new_name_or_namespace_replaces_and_the_old_object_may_stay_until_then(sessions: Sessions) -> None:
    old = an_object("v1", "ConfigMap")
    renamed = compared(sessions, old, an_object("v1", "ConfigMap", "two"))
    moved = compared(sessions, old, {**old, "metadata": {"name": "one", "namespace": "other"}})
    for found in (renamed, moved):
        assert replaces(found)
        assert not found.deletes_first


def test_a_replacement_by_the_same_explicit_name_deletes_first(sessions: Sessions) -> None:
    old, new = an_object("v1", "ConfigMap", data={"a": "1"}), an_object("v1", "ConfigMap", data={"a": "2"})
    assert compared(sessions, old, new).deletes_first
    for obj in (old, new):
        obj["metadata"]["annotations"] = {"pulumi.com/autonamed": "true"}
    assert not compared(sessions, old, new).deletes_first


def test_the_namespace_that_is_default_anyway_is_no_change(sessions: Sessions) -> None:
    old, new = an_object("v1", "ConfigMap"), an_object("v1", "ConfigMap")
    del new["metadata"]["namespace"]
    assert not compared(sessions, old, new).changed


def test_a_namespace_on_a_cluster_scoped_kind_is_no_change(sessions: Sessions) -> None:
    new = an_object("v1", "Namespace")
    old = {**new, "metadata": {"name": "one"}}
    assert not compared(sessions, old, new).changed


def test_ignored_paths_are_no_changes(sessions: Sessions) -> None:
    old, new = (an_object("v1", "ConfigMap", data={"a": n, "b": n}) for n in ("1", "2"))
    found = diff(sessions(), {**old, INPUTS: old}, new, [("data", "a")])
    assert [change.path for change in found.changed] == [("data", "b")]


def test_drift_of_the_live_object_is_a_change(sessions: Sessions) -> None:
    wanted = an_object("apps/v1", "Deployment", spec={"replicas": 1})
    live = an_object("apps/v1", "Deployment", spec={"replicas": 5, "paused": False})
    found = diff(sessions(), {**live, INPUTS: wanted}, wanted, [])
    assert [change.path for change in found.changed] == [("spec", "replicas")]
