"""Statuses are written when they change, and failed writes never stop the controller."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from kubernetes import client

from plimsoll.errors import PlimsollError
from plimsoll.kube import Connection, ConnectionFailedError, RequestError
from plimsoll.model import InvalidObject, Plan, Reason, Snapshot, Verdict
from plimsoll.model.api import Environment, EnvironmentStatus, Workspace, WorkspaceRef, WorkspaceStatus
from plimsoll.report import Reporter
from tests.builders import a_claim, a_node, a_snapshot, a_workspace, an_environment

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
STATUS = "/apis/plimsoll.dev/v1alpha1/namespaces/default/workspaces/{}/status"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"


class Recording(Connection):
    """Records the requests, and responds as the test says."""

    def __init__(self) -> None:
        super().__init__(client.Configuration())
        self.calls: list[tuple[str, str, Any]] = []
        self.errors: dict[str, PlimsollError] = {}
        self.answers: dict[str, dict[str, Any]] = {}
        self.gate = threading.Event()
        """While it is closed, no request gets a response."""
        self.gate.set()

    def request(self, method: str, path: str, body: Any = None, **options: Any) -> dict[str, Any]:
        self.calls.append((method, path, body))
        self.gate.wait(120)
        key = f"{method} {path}"
        if key in self.errors:
            raise self.errors[key]
        return self.answers.get(key, {"metadata": {"resourceVersion": "9"}})

    def statuses(self) -> dict[str, Any]:
        """The written statuses by name; clears the recorded calls."""
        found = {body["metadata"]["name"]: body for method, path, body in self.calls if path.endswith("/status")}
        self.calls = [call for call in self.calls if not call[1].endswith("/status")]
        return found

    def event_notes(self) -> list[str]:
        return [body["note"] for method, path, body in self.calls if method == "POST" and path == EVENTS]


@pytest.fixture
def connection() -> Recording:
    return Recording()


@pytest.fixture
def reporter(connection: Recording) -> Iterator[Reporter]:
    reporter = Reporter(connection)
    yield reporter
    reporter.close()


def a_seen(name: str, version: str = "1") -> Workspace:
    return a_workspace(name, uid=f"uid-{name}").model_copy(update={"resource_version": version, "generation": 1})


def verdicts(*workspaces: Workspace, accepted: bool = True, message: str = "fits") -> Plan:
    return Plan(
        verdicts=tuple(
            Verdict(
                workspace=workspace.ref,
                accepted=accepted,
                reason=Reason.ACCEPTED if accepted else Reason.NO_MATCHING_NODES,
                message=message,
                target_node_count=1 if accepted else None,
                node_names=("n",) if accepted else (),
            )
            for workspace in workspaces
        )
    )


def seen(*workspaces: Workspace) -> Snapshot:
    return a_snapshot(*workspaces, a_node("n"))


def with_status(workspace: Workspace, written: dict[str, Any], version: str) -> Workspace:
    status = WorkspaceStatus.model_validate(written["status"])
    return workspace.model_copy(update={"status": status, "resource_version": version})


def test_a_status_is_written_with_the_observed_version(connection: Recording, reporter: Reporter) -> None:
    ws = a_seen("ws")
    reporter.report(seen(ws), verdicts(ws), NOW)
    reporter.flush()
    ((_, body),) = connection.statuses().items()
    assert body["metadata"] == {"namespace": "default", "name": "ws", "resourceVersion": "1"}
    assert body["status"]["observedGeneration"] == 1
    assert "spec" not in body


def test_an_unchanged_status_is_not_written_again(connection: Recording, reporter: Reporter) -> None:
    ws = a_seen("ws")
    reporter.report(seen(ws), verdicts(ws), NOW)
    reporter.flush()
    written = connection.statuses()["ws"]
    reporter.report(seen(ws), verdicts(ws), NOW + timedelta(seconds=1))
    reporter.flush()
    assert not connection.statuses(), "the watch has not shown the write yet"
    shown = with_status(ws, written, "2")
    reporter.report(seen(shown), verdicts(ws), NOW + timedelta(minutes=1))
    reporter.flush()
    assert not connection.statuses()


def test_a_restart_writes_no_unchanged_status(connection: Recording, reporter: Reporter) -> None:
    ws = a_seen("ws")
    reporter.report(seen(ws), verdicts(ws), NOW)
    reporter.flush()
    shown = with_status(ws, connection.statuses()["ws"], "2")
    reporter.close()
    connection.calls.clear()
    again = Reporter(connection)
    again.report(seen(shown), verdicts(shown), NOW + timedelta(hours=1))
    again.flush()
    again.close()
    assert connection.calls == []


def test_a_status_that_others_changed_is_restored(connection: Recording, reporter: Reporter) -> None:
    ws = a_seen("ws")
    reporter.report(seen(ws), verdicts(ws), NOW)
    reporter.flush()
    connection.statuses()
    reporter.report(seen(a_seen("ws", version="3")), verdicts(ws), NOW)
    reporter.flush()
    assert list(connection.statuses()) == ["ws"]


@pytest.mark.parametrize(
    "error",
    [
        RequestError(404, "NotFound", "gone"),
        RequestError(500, "InternalError", "broken"),
        RequestError(403, "Forbidden", "not allowed"),
    ],
)
def test_a_failed_write_does_not_block_others(connection: Recording, reporter: Reporter, error: PlimsollError) -> None:
    bad, good = a_seen("bad"), a_seen("good")
    connection.errors["PATCH " + STATUS.format("bad")] = error
    reporter.report(seen(bad, good), verdicts(bad, good), NOW)
    reporter.flush()
    assert set(connection.statuses()) == {"bad", "good"}
    connection.errors.clear()
    reporter.report(seen(bad, good), verdicts(bad, good), NOW)
    reporter.flush()
    assert set(connection.statuses()) == {"bad"}, "tried again, the other one not"


def test_after_a_conflict_the_status_is_written_to_the_same_object(connection: Recording, reporter: Reporter) -> None:
    same, other = a_seen("same"), a_seen("other")
    for ws, uid in ((same, "uid-same"), (other, "uid-of-another")):
        path = STATUS.format(ws.name).removesuffix("/status")
        connection.answers[f"GET {path}"] = {"metadata": {"uid": uid, "resourceVersion": "5"}}
        connection.errors[f"PATCH {path}/status"] = RequestError(409, "Conflict", "changed")
    reporter.report(seen(same, other), verdicts(same, other), NOW)
    reporter.flush()
    tried = [
        (body["metadata"]["name"], body["metadata"]["resourceVersion"])
        for _, _, body in connection.calls
        if body and "status" in body
    ]
    assert sorted(tried) == [("other", "1"), ("same", "1"), ("same", "5")]


def test_an_unreachable_cluster_is_not_requested_for_each_object(connection: Recording, reporter: Reporter) -> None:
    workspaces = [a_seen(f"ws{number}") for number in range(1000)]
    for ws in workspaces:
        connection.errors["PATCH " + STATUS.format(ws.name)] = ConnectionFailedError("nobody there")
    reporter.report(seen(*workspaces), verdicts(*workspaces), NOW)
    reporter.flush()
    assert len(connection.statuses()) < 100


def test_a_verdict_is_one_event(connection: Recording, reporter: Reporter) -> None:
    ws = a_seen("ws")
    refusal = verdicts(ws, accepted=False, message="no node matches")
    reporter.report(seen(ws), refusal, NOW)
    reporter.flush()
    reporter.report(seen(ws), refusal, NOW + timedelta(seconds=1))
    reporter.flush()
    reporter.close()
    assert connection.event_notes() == ["NoMatchingNodes: no node matches"]


def test_the_count_of_an_existing_event_increases(connection: Recording, reporter: Reporter) -> None:
    ws = a_seen("ws")
    connection.errors["POST " + EVENTS] = RequestError(409, "AlreadyExists", "there")
    reporter.report(seen(ws), verdicts(ws), NOW)
    reporter.flush()
    reporter.close()
    ((_, _, body),) = [call for call in connection.calls if call[0] == "PATCH" and "/events/" in call[1]]
    assert body == {"series": {"count": 2, "lastObservedTime": "2026-01-01T12:00:00.000000Z"}}


def test_an_invalid_workspace_is_refused_in_its_status(connection: Recording, reporter: Reporter) -> None:
    ref = WorkspaceRef(namespace="default", name="bad", uid="uid-bad")
    snapshot = a_snapshot().model_copy(update={"invalid_workspaces": (InvalidObject(ref=ref, message="spec: x"),)})
    verdict = Verdict(workspace=ref, accepted=False, reason=Reason.INVALID_SPEC, message="spec: x")
    reporter.report(snapshot, Plan(verdicts=(verdict,)), NOW)
    reporter.flush()
    (written,) = connection.statuses().values()
    assert written["status"]["conditions"][0]["reason"] == "InvalidSpec"
    scale = {key: written["status"][key] for key in ("replicas", "selector")}
    assert scale == {"replicas": 0, "selector": "plimsoll.dev/workspace=bad,plimsoll.dev/workspace-namespace=default"}
    reporter.report(snapshot, Plan(verdicts=(verdict,)), NOW)
    reporter.flush()
    assert not connection.statuses()


def test_the_status_of_an_invalid_workspace_is_written_once(connection: Recording, reporter: Reporter) -> None:
    ref = WorkspaceRef(namespace="default", name="bad", uid="uid-bad")
    snapshot = a_snapshot().model_copy(update={"invalid_workspaces": (InvalidObject(ref=ref, message="spec: x"),)})
    verdict = Verdict(workspace=ref, accepted=False, reason=Reason.INVALID_SPEC, message="spec: x")
    reporter.report(snapshot, Plan(verdicts=(verdict,)), NOW)
    reporter.flush()
    (written,) = connection.statuses().values()
    connection.answers["GET " + STATUS.format("bad").removesuffix("/status")] = written
    again = Reporter(connection)
    again.report(snapshot, Plan(verdicts=(verdict,)), NOW + timedelta(hours=1))
    again.flush()
    again.close()
    assert not connection.statuses()


def test_the_status_of_the_environment_counts_its_objects(connection: Recording, reporter: Reporter) -> None:
    ws = a_seen("ws")
    environment = an_environment(nap=True).model_copy(update={"uid": "uid-env", "generation": 4})
    claims = [a_claim("c1", ws), a_claim("c2", ws, deleting=True), a_claim("foreign", ("", ""))]
    snapshot = a_snapshot(*claims, environment=environment)
    reporter.report(snapshot, Plan(), NOW)
    reporter.flush()
    (written,) = connection.statuses().values()
    status = {"nodeClaims": 2, "nodePools": 0, "workloads": 0, "observedGeneration": 4}
    assert (written["kind"], written["status"]) == ("Environment", status)
    held = environment.model_copy(update={"status": EnvironmentStatus.model_validate(status)})
    reporter.report(a_snapshot(*claims, environment=held), Plan(), NOW)
    reporter.flush()
    assert not connection.statuses()


def test_the_status_of_the_environment_lists_the_queues_in_use(connection: Recording, reporter: Reporter) -> None:
    environment = an_environment(nap=True).model_copy(update={"uid": "uid-env"})
    reporter.report(a_snapshot(environment=environment), Plan(), NOW, queues_in_use={"b", "a"})
    reporter.flush()
    (written,) = connection.statuses().values()
    assert written["status"]["queuesInUse"] == ["a", "b"]
    status = EnvironmentStatus.model_validate(written["status"])
    held = environment.model_copy(update={"status": status})
    reporter.report(a_snapshot(environment=held), Plan(), NOW, queues_in_use={"a", "b"})
    reporter.flush()
    assert not connection.statuses()


def test_without_an_environment_no_status_is_written(connection: Recording, reporter: Reporter) -> None:
    reporter.report(a_snapshot(a_claim("c"), environment=Environment.default()), Plan(), NOW)
    reporter.flush()
    assert not connection.statuses()


def test_writes_do_not_block_the_controller_and_the_last_status_is_written(
    connection: Recording, reporter: Reporter
) -> None:
    ws = a_seen("ws")
    connection.gate.clear()
    for message in ("first", "second", "third"):
        reporter.report(seen(ws), verdicts(ws, accepted=False, message=message), NOW)
    connection.gate.set()
    reporter.flush()
    written = [
        body["status"]["conditions"][0]["message"] for _, path, body in connection.calls if path.endswith("/status")
    ]
    assert written[-1] == "third"
    assert len(written) <= 2, "what nobody will read is not written"


@pytest.mark.parametrize("error", [None, RequestError(403, "Forbidden", "no")])
def test_a_status_is_written_after_the_finalizer_with_its_version(
    connection: Recording, reporter: Reporter, error: PlimsollError | None
) -> None:
    """Otherwise each would conflict with the other's version and cost two more requests."""
    ws = a_seen("ws")
    if error is not None:
        connection.errors["PATCH " + STATUS.format("ws").removesuffix("/status")] = error
    launched = a_claim("c", ws, ready=True)
    connection.gate.clear()
    reporter.report(a_snapshot(ws, launched, nap=True), verdicts(ws), NOW)
    connection.gate.set()
    reporter.flush()
    (finalizer, status) = [body for _, path, body in connection.calls if "/workspaces/ws" in path]
    assert "finalizers" in finalizer["metadata"]
    assert status["metadata"]["resourceVersion"] == ("1" if error else "9")
