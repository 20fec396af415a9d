"""How the binder's steps become requests, and how it handles the responses."""

from collections.abc import Sequence
from typing import Any, cast

import pytest

from plimsoll.bind import (
    ClusterCache,
    KaiBinderError,
    StepWriter,
    groups_of_bind_requests,
    refuse_beside_kai,
)
from plimsoll.bind.planning import (
    Bind,
    BindStep,
    Claim,
    DeleteReservation,
    Evict,
    MarkUnknown,
    Reserve,
    SetUnscheduled,
    ShareAssignment,
    Unclaim,
    UnscheduledReason,
    reservation_manifest,
)
from plimsoll.kube import Connection, ConnectionFailedError, RequestError
from plimsoll.labels import RESERVED_GPU
from plimsoll.model.cluster import Pod
from tests.binding.cluster import SETTINGS, a_share

POD = a_share("a").model_copy(update={"resource_version": "7"})
PATH = "/api/v1/namespaces/team/pods/a"
RESERVATIONS = "/api/v1/namespaces/kai-resource-reservation/pods"
MADE = reservation_manifest(SETTINGS.reservation, "n1", "g")
RESERVATION = Pod.read({**MADE, "metadata": {**MADE["metadata"], "uid": "u", "resourceVersion": "3"}})
RESERVATION_PATH = f"{RESERVATIONS}/{RESERVATION.name}"
BIND_REQUESTS = "/apis/scheduling.run.ai/v1alpha2/bindrequests"
CONFIG_MAPS = "/api/v1/namespaces/team/configmaps"


class Apiserver:
    """Responds as the test says, else as if each request succeeded. Records the requests."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.requests: list[tuple[str, str, Any]] = []

    def request(self, method: str, path: str, body: Any = None, **_: Any) -> dict[str, Any]:
        self.requests.append((method, path, body))
        answer = self.answers.get(f"{method} {path}")
        if isinstance(answer, Exception):
            raise answer
        if answer is not None:
            return cast("dict[str, Any]", answer)
        made = body if isinstance(body, dict) else {}
        return {**made, "metadata": {**made.get("metadata", {}), "resourceVersion": "9"}}


class Notes:
    """The binder's view: records the writes that it is told."""

    def __init__(self, *present: Pod) -> None:
        self.pods_written: list[Pod] = []
        self._present = present

    def pods(self) -> list[Pod]:
        return list(self._present)

    def note(self, pod: Pod, *, new: bool = False) -> None:
        self.pods_written.append(pod)


def error(code: int, reason: str = "") -> RequestError:
    return RequestError(code, reason, f"answer {code}")


def carry_out(apiserver: Apiserver, *steps: BindStep, present: Sequence[Pod] = ()) -> tuple[Notes, list[str]]:
    """What the view was told; the nodes that refused a reservation and the UIDs of pods that cannot be bound."""
    notes, refused = Notes(*present), list[str]()
    writing = StepWriter(
        cast("Connection", apiserver),
        SETTINGS,
        cast("ClusterCache", notes),
        refused.append,
        refused.append,
    )
    try:
        writing.carry_out(steps)
    finally:
        writing.close()
    return notes, refused


def test_a_claim_is_written_with_the_uid_and_version_of_the_pod() -> None:
    apiserver = Apiserver()
    notes, _ = carry_out(apiserver, Claim(POD, ShareAssignment("n1", ("g",))))
    (request,) = apiserver.requests
    assert request == (
        "PATCH",
        PATH,
        {
            "metadata": {
                "uid": "uid-a",
                "resourceVersion": "7",
                "labels": {"runai-gpu-group": "g"},
                "annotations": {"plimsoll.dev/selected-node": "n1/uid-a"},
            }
        },
    )
    assert [(pod.labels["runai-gpu-group"], pod.resource_version) for pod in notes.pods_written] == [("g", "9")]


def test_removing_a_claim_removes_every_group_label() -> None:
    apiserver = Apiserver()
    pod = POD.model_copy(update={"labels": {"app": "x", "runai-gpu-group": "g", "runai-gpu-group/h": "h"}})
    carry_out(apiserver, Unclaim(pod, "why"))
    assert apiserver.requests[0][2]["metadata"]["labels"] == {"runai-gpu-group": None, "runai-gpu-group/h": None}


def test_the_binding_contains_the_gpus() -> None:
    apiserver = Apiserver()
    notes, _ = carry_out(apiserver, Bind(POD, "n1", ("GPU-1", "GPU-2"), "0.5"))
    ((method, path, body),) = apiserver.requests
    assert (method, path) == ("POST", f"{PATH}/binding")
    assert body["metadata"] == {
        "name": "a",
        "namespace": "team",
        "uid": "uid-a",
        "annotations": {"plimsoll.dev/visible-devices": "GPU-1,GPU-2", "plimsoll.dev/gpu-portion": "0.5"},
    }
    assert body["target"]["name"] == notes.pods_written[0].node_name == "n1"


def test_a_step_that_was_done_before_succeeds() -> None:
    apiserver = Apiserver(**{f"POST {PATH}/binding": error(409), f"POST {RESERVATIONS}": error(409, "AlreadyExists")})
    notes, refused = carry_out(apiserver, Bind(POD, "n1", ("GPU-1",), "0.5"), Reserve("n1", "g", POD))
    assert not notes.pods_written
    assert not refused


@pytest.mark.parametrize("code", [403, 404, 422])
def test_a_refused_reservation_pauses_its_node(code: int) -> None:
    _, refused = carry_out(Apiserver(**{f"POST {RESERVATIONS}": error(code)}), Reserve("n1", "g", POD))
    assert refused == ["n1"]


@pytest.mark.parametrize("code", [429, 500, 503])
def test_an_apiserver_that_is_busy_or_fails_pauses_no_node(code: int) -> None:
    _, refused = carry_out(Apiserver(**{f"POST {RESERVATIONS}": error(code)}), Reserve("n1", "g", POD))
    assert not refused


@pytest.mark.parametrize("code", [400, 403, 422])
def test_a_refused_binding_is_written_to_the_pod_which_is_left_alone(code: int) -> None:
    apiserver = Apiserver(**{f"POST {PATH}/binding": error(code)})
    _, refused = carry_out(apiserver, Bind(POD, "n1", ("GPU-1",), "0.5"))
    assert refused == ["uid-a"]
    (condition,) = apiserver.requests[-1][2]["status"]["conditions"]
    assert f"answer {code}" in condition["message"]


@pytest.mark.parametrize("code", [404, 409, 429, 503])
def test_a_binding_that_may_succeed_later_is_tried_again(code: int) -> None:
    _, refused = carry_out(Apiserver(**{f"POST {PATH}/binding": error(code)}), Bind(POD, "n1", ("GPU-1",), "0.5"))
    assert not refused


def test_deletions_name_uid_and_version() -> None:
    apiserver = Apiserver(**{f"GET {BIND_REQUESTS}": error(404)})
    carry_out(apiserver, DeleteReservation(RESERVATION, "empty"))
    assert apiserver.requests[1][:2] == ("DELETE", RESERVATION_PATH)
    assert apiserver.requests[1][2]["preconditions"] == {"uid": "u", "resourceVersion": "3"}


def test_a_bind_request_keeps_an_empty_reservation() -> None:
    requests = {"items": [{"spec": {"selectedGPUGroups": ["g"]}, "status": {"phase": "Pending"}}]}
    apiserver = Apiserver(**{f"GET {BIND_REQUESTS}": requests})
    carry_out(apiserver, DeleteReservation(RESERVATION, "empty"))
    assert [method for method, _, _ in apiserver.requests] == ["GET"]
    requests["items"][0]["status"] = {"phase": "Succeeded"}
    assert groups_of_bind_requests(cast("Connection", apiserver)) == set()


def test_marking_unknown_does_not_overwrite_the_uuid_of_the_probe() -> None:
    apiserver = Apiserver()
    carry_out(apiserver, MarkUnknown(RESERVATION))
    assert apiserver.requests[0][2] == {
        "metadata": {"uid": "u", "resourceVersion": "3", "annotations": {RESERVED_GPU: "-1"}}
    }


def test_evictions_respect_pod_disruption_budgets() -> None:
    apiserver = Apiserver(**{f"POST {PATH}/eviction": error(429)})
    carry_out(apiserver, Evict(POD, "lost"))
    ((method, path, body),) = apiserver.requests
    assert (method, path, body["deleteOptions"]) == ("POST", f"{PATH}/eviction", {"preconditions": {"uid": "uid-a"}})


def test_messages_are_conditions_of_the_pod() -> None:
    apiserver = Apiserver()
    carry_out(apiserver, SetUnscheduled(POD, UnscheduledReason.UNSCHEDULABLE, "0/1 nodes"))
    ((_, path, body),) = apiserver.requests
    (condition,) = body["status"]["conditions"]
    assert (path, body["metadata"]["uid"]) == (f"{PATH}/status", "uid-a")
    assert (condition["type"], condition["status"], condition["reason"]) == ("PodScheduled", "False", "Unschedulable")


def test_an_unreachable_apiserver_ends_the_round() -> None:
    gone = ConnectionFailedError("gone")
    with pytest.raises(ConnectionFailedError):
        carry_out(Apiserver(**{f"PATCH {PATH}/status": gone}), SetUnscheduled(POD, UnscheduledReason.REFUSED, "x"))


def with_config_map() -> Pod:
    return POD.model_copy(update={"annotations": {**POD.annotations, "runai/shared-gpu-configmap": "a-shared-gpu"}})


def test_config_maps_have_the_names_and_keys_of_kai() -> None:
    apiserver = Apiserver()
    carry_out(apiserver, Bind(with_config_map(), "n1", ("GPU-1", "GPU-2"), "0.5"))
    single, direct = (body for _, path, body in apiserver.requests if path == CONFIG_MAPS)
    assert (single["metadata"]["name"], direct["metadata"]["name"]) == ("a-shared-gpu-0", "a-shared-gpu-0-evar")
    assert single["metadata"]["ownerReferences"] == [{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "uid-a"}]
    assert single["data"] == {
        "NVIDIA_VISIBLE_DEVICES": "GPU-1,GPU-2",
        "RUNAI-VISIBLE-DEVICES": "GPU-1,GPU-2",
        "GPU_PORTION": "0.5",
        "RUNAI_NUM_OF_GPUS": "0.5",
    }
    assert "RUNAI-VISIBLE-DEVICES" not in direct["data"]


OTHER = POD.model_copy(update={"name": "b", "uid": "another"})


@pytest.mark.parametrize(
    ("owners", "foreign"),
    [
        ([{"kind": "Pod", "name": "a", "uid": "uid-a"}], False),
        ([{"kind": "Pod", "name": "b", "uid": "another"}], True),
        ([{"kind": "Pod", "name": "a", "uid": "that of a pod that is gone"}], False),
        ([{"kind": "Deployment", "name": "app", "uid": "d"}], True),
        ([], True),
    ],
    ids=["own", "of another pod", "of a former pod", "of a Deployment", "of nobody"],
)
def test_the_config_map_of_another_pod_is_not_changed(owners: list[dict[str, str]], foreign: bool) -> None:
    there = {"metadata": {"uid": "c", "resourceVersion": "1", "ownerReferences": owners}}
    answers: dict[str, Any] = {f"POST {CONFIG_MAPS}": error(409, "AlreadyExists")}
    answers |= {f"GET {CONFIG_MAPS}/a-shared-gpu-0{end}": there for end in ("", "-evar")}
    apiserver = Apiserver(**answers)
    if not foreign:
        carry_out(apiserver, Bind(with_config_map(), "n1", ("GPU-1",), "0.5"), present=[POD, OTHER])
        assert [method for method, _, _ in apiserver.requests].count("PATCH") == 2
        return
    notes, refused = carry_out(apiserver, Bind(with_config_map(), "n1", ("GPU-1",), "0.5"), present=[POD, OTHER])
    assert not notes.pods_written
    assert refused == ["uid-a"]
    assert apiserver.requests[-1][1] == f"{PATH}/status"


def a_deployment(image: str, replicas: int | None = None) -> dict[str, Any]:
    spec: dict[str, Any] = {"template": {"spec": {"containers": [{"image": image}]}}}
    return {"metadata": {"namespace": "kai"}, "spec": spec | ({} if replicas is None else {"replicas": replicas})}


@pytest.mark.parametrize(
    ("deployment", "refuses"),
    [
        (a_deployment("ghcr.io/nvidia/kai-scheduler/binder:v0.12.10"), True),
        (a_deployment("mirror.example/kai-scheduler/kai-scheduler/binder:v0.17.0", 2), True),
        (a_deployment("ghcr.io/nvidia/kai-scheduler/binder:v0.12.10", 0), False),
        (a_deployment("example/godel/binder:1"), False),
    ],
)
def test_kai_s_binder_is_detected_by_its_image(deployment: dict[str, Any], refuses: bool) -> None:
    apiserver = cast("Connection", Apiserver(**{"GET /apis/apps/v1/deployments": {"items": [deployment]}}))
    if not refuses:
        refuse_beside_kai(apiserver)
        return
    with pytest.raises(KaiBinderError, match="Deployment kai/binder"):
        refuse_beside_kai(apiserver)
