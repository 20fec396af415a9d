"""Writes to pods besides stack updates. A failed write does not delay the others."""

from typing import Any

import pytest
from kubernetes import client

from plimsoll.apply import PodWriter
from plimsoll.errors import PlimsollError
from plimsoll.kube import MERGE_PATCH, STRATEGIC_MERGE_PATCH, Connection, ConnectionFailedError, RequestError
from plimsoll.model import GateRemoval, ObjectKey, PreferredDeletion
from plimsoll.model.api import CAPACITY_GATE, GATE_REMOVED_REASON

PODS = [PreferredDeletion(namespace="team", name=name, uid=f"uid-{name}") for name in ("a", "b")]


class Recording(Connection):
    def __init__(self, error: PlimsollError | None = None) -> None:
        super().__init__(client.Configuration())
        self.calls: list[tuple[str, str, Any, str | None]] = []
        self._error = error

    def request(self, method: str, path: str, body: Any = None, **options: Any) -> dict[str, Any]:
        self.calls.append((method, path, body, options.get("content_type")))
        if self._error is not None:
            raise self._error
        return {}


def test_the_deletion_cost_is_set_with_the_uid_of_the_pod() -> None:
    connection = Recording()
    PodWriter(connection).set_deletion_cost(PODS)
    assert [call[1] for call in connection.calls] == [f"/api/v1/namespaces/team/pods/{name}" for name in "ab"]
    method, _, body, content_type = connection.calls[0]
    assert (method, content_type) == ("PATCH", MERGE_PATCH)
    cost = {"controller.kubernetes.io/pod-deletion-cost": "-1000"}
    assert body == {"metadata": {"uid": "uid-a", "annotations": cost}}


@pytest.mark.parametrize(
    ("error", "asked"),
    [
        (RequestError(409, "Conflict", "another UID"), 2),
        (RequestError(403, "Forbidden", "no"), 2),
        (ConnectionFailedError("nobody there"), 1),
    ],
)
def test_a_pod_that_cannot_be_patched_is_not_an_error(error: PlimsollError, asked: int) -> None:
    connection = Recording(error)
    PodWriter(connection).set_deletion_cost(PODS)
    assert len(connection.calls) == asked


def test_only_our_gate_of_that_pod_is_removed() -> None:
    connection = Recording()
    key = ObjectKey(api_version="v1", kind="Pod", namespace="team", name="p")
    assert PodWriter(connection).remove_gates([GateRemoval(key=key, uid="uid-p", message="its GPUs are free")]) == 1
    assert connection.calls == [
        (
            "PATCH",
            "/api/v1/namespaces/team/pods/p",
            {
                "metadata": {"uid": "uid-p", "annotations": {GATE_REMOVED_REASON: "its GPUs are free"}},
                "spec": {"schedulingGates": [{"$patch": "delete", "name": CAPACITY_GATE}]},
            },
            STRATEGIC_MERGE_PATCH,
        )
    ]


def test_a_gate_that_the_cluster_refuses_to_remove_is_asked_for_once_in_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Anyone may create gated pods in a namespace in which the controller has no rights."""
    now = 0.0
    monkeypatch.setattr("plimsoll.apply.pods.monotonic", lambda: now)
    connection = Recording(RequestError(403, "Forbidden", "no"))
    writer = PodWriter(connection)
    removals = [
        GateRemoval(key=ObjectKey(api_version="v1", kind="Pod", namespace="team", name=name), uid=name, message="free")
        for name in "ab"
    ]
    for _ in range(5):
        assert writer.remove_gates(removals) == 0
    assert len(connection.calls) == 2
    assert writer.remove_gates([removals[0]]) == 0
    assert len(connection.calls) == 2
    assert writer.remove_gates(removals) == 0
    assert len(connection.calls) == 3, "what was not asked for meanwhile is forgotten"
    now = 3600.0
    assert writer.remove_gates(removals) == 0
    assert len(connection.calls) == 5


@pytest.mark.parametrize("error", [RequestError(409, "Conflict", "another UID"), ConnectionFailedError("nobody there")])
def test_a_gate_that_cannot_be_removed_is_not_an_error(error: PlimsollError) -> None:
    connection = Recording(error)
    removals = [
        GateRemoval(key=ObjectKey(api_version="v1", kind="Pod", namespace="team", name=name), uid="", message="free")
        for name in "ab"
    ]
    assert PodWriter(connection).remove_gates(removals) == 0
    assert sorted(path for _, path, *_ in connection.calls) == [f"/api/v1/namespaces/team/pods/{name}" for name in "ab"]
