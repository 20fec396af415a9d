import copy
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from plimsoll.errors import PlimsollError
from plimsoll.kube import Interruption, RequestError
from plimsoll.provider import (
    FIELD_MANAGER,
    INPUTS,
    UNKNOWN,
    Call,
    InitializationFailedError,
    Secret,
    create,
    delete,
    parse_property_path,
    read,
    update,
)
from tests.provider.apiserver import Apiserver
from tests.provider.conftest import Sessions

PATH = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
TOKEN = "kubernetes:core/v1:ConfigMap"


def a_config_map(name: str = "one", **data: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data}


def a_pod(**annotations: str) -> dict[str, Any]:
    metadata = {"name": "pod", "namespace": "default", "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {}}


def test_a_create_is_one_request_once_the_kind_is_known(call: Call, cluster: Apiserver) -> None:
    create(call, a_config_map("first"))
    cluster.requests.clear()
    state = create(call, a_config_map("second", a="1"))
    assert cluster.requests == [f"POST {PATH}"]
    assert state.id == "default/second"
    assert state.properties["data"] == {"a": "1"}
    assert state.properties[INPUTS] == a_config_map("second", a="1")


def test_an_update_is_one_request_once_the_fields_are_applied(call: Call, cluster: Apiserver) -> None:
    made = create(call, a_config_map(a="1"))
    applied = update(call, made.properties, a_config_map(a="2"), [])
    cluster.requests.clear()
    state = update(call, applied.properties, a_config_map(a="3"), [])
    assert cluster.requests == [f"PATCH {PATH}/one"]
    assert state.properties[FIELD_MANAGER] == made.properties[FIELD_MANAGER]


def test_a_changed_field_manager_takes_over_all_fields(call: Call, cluster: Apiserver) -> None:
    made = create(call, a_config_map(a="1"))
    cluster.requests.clear()
    pinned = a_config_map(a="2")
    pinned["metadata"]["annotations"] = {"pulumi.com/patchFieldManager": "plimsoll"}
    state = update(call, made.properties, pinned, [])
    assert state.properties[FIELD_MANAGER] == "plimsoll"
    assert cluster.applied_by == ["plimsoll", made.properties[FIELD_MANAGER]]


def test_an_update_retries_after_a_concurrent_change(call: Call, cluster: Apiserver) -> None:
    made = create(call, a_config_map(a="1"))
    cluster.fail("PATCH", (409, "the object has been modified; please apply your changes to the latest version"))
    assert update(call, made.properties, a_config_map(a="2"), []).properties["data"] == {"a": "2"}


def test_a_field_that_others_own_is_a_conflict_with_a_hint(call: Call, cluster: Apiserver) -> None:
    made = create(call, a_config_map(a="1"))
    made = update(call, made.properties, a_config_map(a="2"), [])
    cluster.fail("PATCH", (409, 'Apply failed with 1 conflict: conflict with "kubectl": .data.a'))
    with pytest.raises(RequestError, match=r"kubectl(.|\n)*patchForce"):
        update(call, made.properties, a_config_map(a="3"), [])


def test_an_object_that_was_created_again_is_updated(call: Call, cluster: Apiserver) -> None:
    made = create(call, a_config_map(a="1"))
    made = update(call, made.properties, a_config_map(a="2"), [])
    repacked = a_config_map(a="2")
    repacked["metadata"]["uid"] = "another"
    cluster.change(f"{PATH}/one", repacked)
    assert update(call, made.properties, a_config_map(a="3"), []).id == "default/one"


def test_managed_fields_that_are_ignored_are_not_applied(call: Call, cluster: Apiserver) -> None:
    made = create(call, a_config_map(a="1"))
    inputs = a_config_map(a="2")
    inputs["metadata"]["managedFields"] = [{"manager": "kubectl"}]
    applied = update(call, made.properties, inputs, [("metadata", "managedFields")])
    assert applied.properties["data"] == {"a": "2"}


@pytest.mark.parametrize(
    ("path", "applied"),
    [
        ("spec.containers[0].image", ["a:2", "b:1"]),
        ("spec.containers[*].image", ["a:2", "b:2"]),
        ("spec.containers[1]", ["a:1", "b:2"]),
        ("spec.containers", ["a:2", "b:2", "other:2"]),
        ("spec.containers[2].image", ["a:1", "b:1"]),
    ],
)
def test_ignored_changes_of_lists_keep_the_live_value(
    call: Call, cluster: Apiserver, path: str, applied: list[str]
) -> None:
    def containers(version: int, *names: str) -> dict[str, Any]:
        return {"containers": [{"name": name, "image": f"{name}:{version}"} for name in names]}

    inputs = a_pod(**{"pulumi.com/skipAwait": "true"})
    inputs["spec"] = containers(1, "a", "b")
    made = create(call, inputs)
    live = cluster.objects[f"{PODS}/pod"]
    cluster.change(f"{PODS}/pod", {**live, "spec": containers(2, "a", "b", "other")})
    updated = update(call, made.properties, inputs, [parse_property_path(path)])
    assert [container["image"] for container in updated.properties["spec"]["containers"]] == applied


def test_an_ignored_change_is_not_copied_from_an_element_of_another_name(call: Call, cluster: Apiserver) -> None:
    inputs = a_pod(**{"pulumi.com/skipAwait": "true"})
    inputs["spec"] = {"containers": [{"name": "a", "image": "a:1"}]}
    made = create(call, inputs)
    live = cluster.objects[f"{PODS}/pod"]
    injected = [{"name": "sidecar", "image": "s:1"}, {"name": "a", "image": "a:2"}]
    cluster.change(f"{PODS}/pod", {**live, "spec": {"containers": injected}})
    updated = update(call, made.properties, inputs, [("spec", "containers", 0, "image")])
    assert updated.properties["spec"] == inputs["spec"]


def test_an_update_does_not_create_a_deleted_object(call: Call, cluster: Apiserver) -> None:
    made = create(call, a_config_map(a="1"))
    made = update(call, made.properties, a_config_map(a="2"), [])
    cluster.change(f"{PATH}/one", None)
    with pytest.raises(RequestError, match="was deleted"):
        update(call, made.properties, a_config_map(a="3"), [])
    assert cluster.objects == {}


def test_a_secret_is_sent_in_plain_and_recorded_as_secret(call: Call, cluster: Apiserver) -> None:
    state = create(call, a_config_map(a=Secret("hush")))
    assert cluster.objects[f"{PATH}/one"]["data"] == {"a": "hush"}
    assert state.properties["data"] == {"a": Secret("hush")}
    assert state.properties[INPUTS]["data"] == {"a": Secret("hush")}


@pytest.mark.parametrize("failure", [429, 500, 503, "drop before"])
def test_a_create_that_did_not_happen_is_retried(call: Call, cluster: Apiserver, failure: Any) -> None:
    cluster.fail("POST", failure)
    assert create(call, a_config_map()).id == "default/one"


def test_a_create_with_a_lost_response_is_not_repeated(call: Call, cluster: Apiserver) -> None:
    cluster.fail("POST", "drop after")
    assert create(call, a_config_map()).id == "default/one"
    assert cluster.requests.count(f"POST {PATH}") == 1


def test_a_lost_response_is_remembered_while_the_object_cannot_be_looked_up(
    call: Call, cluster: Apiserver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenacity.nap.time", SimpleNamespace(sleep=lambda _: None))
    create(call, a_config_map("another"))
    cluster.requests.clear()
    cluster.fail("POST", "drop after")
    for _ in range(7):
        cluster.fail("GET", 503)
    assert create(call, a_config_map()).id == "default/one"
    assert cluster.requests.count(f"POST {PATH}") == 1
    assert not cluster.failures


def test_an_object_of_others_is_not_adopted_after_a_lost_response(call: Call, cluster: Apiserver) -> None:
    create(call, a_config_map(theirs="1"))
    cluster.fail("POST", "drop before")
    with pytest.raises(RequestError, match="already exists"):
        create(call, a_config_map(ours="1"))
    assert cluster.objects[f"{PATH}/one"]["data"] == {"theirs": "1"}


def test_an_upsert_applies_over_an_existing_object(sessions: Sessions, cluster: Apiserver) -> None:
    cluster.change(f"{PATH}/one", a_config_map(a="1"))
    upserting = Call(sessions(upsertExistingObjects="true"), Interruption())
    assert create(upserting, a_config_map(a="2")).id == "default/one"
    assert cluster.objects[f"{PATH}/one"]["data"] == {"a": "2"}


def test_an_object_that_is_being_deleted_is_awaited(call: Call, cluster: Apiserver) -> None:
    leaving = a_config_map(a="1")
    leaving["metadata"] |= {"uid": "old", "deletionTimestamp": "now", "finalizers": ["x"]}
    cluster.change(f"{PATH}/one", leaving)

    def leave() -> None:
        assert cluster.watched.wait(10)
        cluster.change(f"{PATH}/one", None)

    leaver = threading.Thread(target=leave)
    leaver.start()
    state = create(call, a_config_map(a="2"))
    leaver.join()
    assert state.properties["data"] == {"a": "2"}


def test_a_preview_changes_nothing(sessions: Sessions, cluster: Apiserver) -> None:
    preview = Call(sessions(), Interruption(), preview=True)
    assert create(preview, a_config_map(a="1")).id == ""
    unknown = create(preview, a_config_map(a=UNKNOWN))
    assert unknown.properties["data"] == {"a": UNKNOWN}
    absent = {"apiVersion": "nobody/v1", "kind": "Thing", "metadata": {"name": "x"}}
    assert create(preview, absent).properties == absent
    assert cluster.objects == {}


def test_a_pod_is_awaited_until_it_is_ready(call: Call, cluster: Apiserver) -> None:
    def become_ready() -> None:
        assert cluster.watched.wait(10)
        pod = cluster.objects[f"{PODS}/pod"]
        cluster.change(f"{PODS}/pod", {**pod, "status": {"conditions": [{"type": "Ready", "status": "True"}]}})

    kubelet = threading.Thread(target=become_ready)
    kubelet.start()
    state = create(call, a_pod())
    kubelet.join()
    assert state.properties["status"]["conditions"][0]["status"] == "True"


@pytest.mark.parametrize("preview", [True, False])
def test_an_invalid_condition_is_refused_before_anything_is_written(
    sessions: Sessions, cluster: Apiserver, preview: bool
) -> None:
    call = Call(sessions(), Interruption(), preview=preview)
    made = create(Call(call.session, Interruption()), a_config_map())
    written = copy.deepcopy(cluster.objects)
    for name in ("one", "two"):
        inputs = a_config_map(name, a="1")
        inputs["metadata"]["annotations"] = {"pulumi.com/waitFor": "Ready"}
        with pytest.raises(PlimsollError, match="waitFor"):
            update(call, made.properties, inputs, []) if name == "one" else create(call, inputs)
    assert cluster.objects == written


def test_skip_await_waits_for_nothing(call: Call, cluster: Apiserver) -> None:
    state = create(call, a_pod(**{"pulumi.com/skipAwait": "true"}))
    cluster.objects[f"{PODS}/pod"]["metadata"]["finalizers"] = ["x"]
    delete(call, "kubernetes:core/v1:Pod", "default/pod", state.properties)
    assert not any("GET" in request and request.endswith("pods") for request in cluster.requests)


def test_waiting_ends_at_the_timeout_and_the_state_is_kept(sessions: Sessions, cluster: Apiserver) -> None:
    with pytest.raises(InitializationFailedError, match="not Ready") as caught:
        create(Call(sessions(), Interruption(), seconds=0.05), a_pod())
    assert caught.value.state.id == "default/pod"
    assert caught.value.state.properties[INPUTS] == a_pod()


def test_cancel_ends_the_waiting(sessions: Sessions, cluster: Apiserver) -> None:
    session = sessions()

    def cancel() -> None:
        assert cluster.watched.wait(10)
        session.cancel()

    user = threading.Thread(target=cancel)
    user.start()
    with pytest.raises(InitializationFailedError, match="interrupted"):
        create(Call(session, session.interruption()), a_pod())
    user.join()


def test_deleting_waits_until_the_object_is_gone(call: Call, cluster: Apiserver) -> None:
    state = create(call, a_config_map())
    cluster.objects[f"{PATH}/one"]["metadata"]["finalizers"] = ["x"]

    def finalize() -> None:
        assert cluster.watched.wait(10)
        cluster.change(f"{PATH}/one", None)

    finalizer = threading.Thread(target=finalize)
    finalizer.start()
    delete(call, TOKEN, state.id, state.properties)
    finalizer.join()
    assert cluster.objects == {}


def test_deleting_a_missing_object_succeeds(call: Call) -> None:
    delete(call, TOKEN, "default/one", a_config_map())
    delete(call, "kubernetes:nobody/v1:Thing", "default/x", {"apiVersion": "nobody/v1", "kind": "Thing"})


def test_a_refresh_reads_the_declared_fields(call: Call, cluster: Apiserver) -> None:
    inputs = a_config_map(a=Secret("1"))
    made = create(call, inputs)
    live = cluster.objects[f"{PATH}/one"]
    cluster.change(f"{PATH}/one", {**live, "data": {"a": "2", "theirs": "3"}})
    state = read(call.session, TOKEN, made.id, inputs, made.properties)
    assert state.inputs["data"] == {"a": Secret("2")}
    assert state.properties["data"] == {"a": Secret("2"), "theirs": "3"}
    assert state.properties[FIELD_MANAGER] == made.properties[FIELD_MANAGER]


def test_a_refresh_removes_missing_objects(call: Call) -> None:
    assert read(call.session, TOKEN, "default/one", a_config_map(), {}).id == ""


def test_an_import_reads_all_fields_except_those_of_the_server(call: Call, cluster: Apiserver) -> None:
    live = a_config_map(a="1")
    live["metadata"] |= {"uid": "u", "creationTimestamp": "t"}
    cluster.change(f"{PATH}/one", live | {"status": {}})
    state = read(call.session, TOKEN, "default/one", {}, {})
    assert state.inputs == a_config_map(a="1")
    assert state.id == "default/one"
