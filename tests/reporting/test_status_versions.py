"""Statuses are written with the current version of an object, even before a watch shows it, so that no write
conflicts."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from kubernetes import client

from plimsoll.kube import Connection, RequestError
from plimsoll.model import Plan, Snapshot
from plimsoll.model.api import EnvironmentStatus, Workspace, WorkspaceStatus
from plimsoll.report import Reporter
from tests.builders import a_claim, a_node, a_snapshot, a_workspace, an_environment
from tests.reporting.test_reporter import verdicts

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
UIDS = {"ws": "uid-ws", "test": "uid-env"}


class Versioned(Connection):
    """An apiserver that gives each object a new version with each write, and refuses writes with an older one."""

    def __init__(self) -> None:
        super().__init__(client.Configuration())
        self.version = dict.fromkeys(UIDS, 1)
        self.status: dict[str, dict[str, Any]] = {}
        self.written: list[str] = []
        self.conflicts = 0
        self.begun, self.gate = threading.Event(), threading.Event()
        """Whether a write of a status has begun; while the gate is closed, no write ends."""
        self.gate.set()
        self._lock = threading.Lock()

    def request(self, method: str, path: str, body: Any = None, **options: Any) -> dict[str, Any]:
        name = next((part for part in path.split("/") if part in UIDS), "")
        if path.endswith("/status"):
            self.begun.set()
            assert self.gate.wait(120)
        with self._lock:
            if method == "PATCH" and name:
                self._write(name, body)
            return {"metadata": {"uid": UIDS.get(name), "resourceVersion": str(self.version.get(name))}}

    def _write(self, name: str, body: dict[str, Any]) -> None:
        if body["metadata"].get("resourceVersion", str(self.version[name])) != str(self.version[name]):
            self.conflicts += 1
            raise RequestError(409, "Conflict", "the object has been modified")
        self.version[name] += 1
        if "status" in body:
            self.status[name] = body["status"]
            self.written.append(name)


@pytest.fixture
def apiserver() -> Versioned:
    return Versioned()


@pytest.fixture
def reporter(apiserver: Versioned) -> Iterator[Reporter]:
    reporter = Reporter(apiserver)
    yield reporter
    apiserver.gate.set()
    reporter.close()


def a_seen(version: int, status: dict[str, Any] | None = None) -> Workspace:
    """The Workspace as a watch shows it."""
    shown = {"resource_version": str(version), "status": WorkspaceStatus.model_validate(status or {})}
    return a_workspace("ws", uid="uid-ws").model_copy(update=shown)


def refused(message: str) -> tuple[Snapshot, Plan]:
    ws = a_seen(1)
    return a_snapshot(ws, a_node("n")), verdicts(ws, accepted=False, message=message)


def test_a_snapshot_that_shows_our_finalizer_and_not_yet_our_status_causes_no_write(
    apiserver: Versioned, reporter: Reporter
) -> None:
    ws = a_seen(1)
    reporter.report(a_snapshot(ws, a_claim("c", ws, ready=True), nap=True), verdicts(ws), NOW)
    reporter.flush()
    assert apiserver.version["ws"] == 3, "the finalizer, then the status"
    between = a_seen(2).model_copy(update={"finalizers": ("plimsoll.dev/capacity",)})
    reporter.report(a_snapshot(between, a_claim("c", ws, ready=True), nap=True), verdicts(ws), NOW)
    reporter.flush()
    assert (apiserver.written, apiserver.conflicts) == (["ws"], 0)


def test_a_snapshot_that_shows_the_status_before_the_last_causes_no_write(
    apiserver: Versioned, reporter: Reporter
) -> None:
    for message in ("first", "second"):
        reporter.report(*refused(message), NOW)
        reporter.flush()
        if message == "first":
            first = apiserver.status["ws"]
    lagging = a_seen(2, first)
    reporter.report(a_snapshot(lagging, a_node("n")), refused("second")[1], NOW)
    reporter.flush()
    assert (apiserver.written, apiserver.conflicts) == (["ws", "ws"], 0)


def test_a_status_during_another_write_is_written_afterwards(apiserver: Versioned, reporter: Reporter) -> None:
    apiserver.gate.clear()
    reporter.report(*refused("first"), NOW)
    assert apiserver.begun.wait(120)
    reporter.report(*refused("second"), NOW)
    apiserver.gate.set()
    reporter.flush()
    assert (apiserver.written, apiserver.conflicts) == (["ws", "ws"], 0)
    assert apiserver.status["ws"]["conditions"][0]["message"] == "second"


def test_the_environments_status_is_written_once_for_each_change(apiserver: Versioned, reporter: Reporter) -> None:
    def seen(claims: int, status: dict[str, Any] | None = None, version: int = 1) -> Snapshot:
        ws, shown = a_seen(1), EnvironmentStatus.model_validate(status or {})
        environment = an_environment(nap=True).model_copy(
            update={"uid": "uid-env", "resource_version": str(version), "status": shown}
        )
        return a_snapshot(*(a_claim(f"c{number}", ws) for number in range(claims)), environment=environment)

    for claims in (1, 1, 2, 2):
        reporter.report(seen(claims), Plan(), NOW)
        reporter.flush()
    assert (apiserver.written, apiserver.conflicts) == (["test", "test"], 0)
    reporter.report(seen(2, {"nodeClaims": 1}, version=2), Plan(), NOW)
    reporter.flush()
    assert apiserver.written == ["test", "test"]
    reporter.report(seen(2, {"nodeClaims": 7}, version=9), Plan(), NOW)
    reporter.flush()
    assert apiserver.written == ["test", "test", "test"], "what somebody else wrote is set right"
