"""At its start, the controller retries transient errors and ends with all others."""

import threading
import time
from pathlib import Path

import pytest

from plimsoll.apply import (
    BackendUnreachableError,
    EngineKilledError,
    LockedError,
    PassphraseError,
    StateChangedError,
    StateFolderFullError,
)
from plimsoll.cli.controller import Stopping, retry_transient
from plimsoll.errors import PlimsollError
from plimsoll.kube import ConnectionFailedError, RequestError
from plimsoll.observe.cluster import NODES, NotSyncedError, open_observer
from tests.observing.apiserver import FakeApiserver, listening
from tests.observing.conftest import CORE


class Failing:
    """Raises the errors one after the other, then returns."""

    def __init__(self, *errors: PlimsollError) -> None:
        self._errors = list(errors)

    def __call__(self) -> str:
        if self._errors:
            raise self._errors.pop(0)
        return "started"


@pytest.mark.parametrize(
    "error",
    [
        ConnectionFailedError("nobody answers"),
        RequestError(429, "TooManyRequests", "later"),
        RequestError(503, "ServiceUnavailable", "later"),
        RequestError(409, "Conflict", "another one was first"),
        BackendUnreachableError("no bucket"),
        StateFolderFullError("no room"),
        LockedError("capacity-0", ()),
        EngineKilledError("capacity-0"),
        EngineKilledError("capacity-0"),
        NotSyncedError("not yet observed: Node"),
        StateChangedError("capacity-0"),
    ],
    ids=lambda error: f"{type(error).__name__} {getattr(error, 'code', '')}",
)
def test_transient_errors_are_retried_and_logged(error: PlimsollError) -> None:
    reported: list[PlimsollError] = []
    assert retry_transient(Failing(error), Stopping(), reported.append) == "started"
    assert reported == [error]


@pytest.mark.parametrize("error", [PassphraseError("wrong"), RequestError(403, "Forbidden", "no")], ids=repr)
def test_permanent_errors_are_raised_at_once(error: PlimsollError) -> None:
    reported: list[PlimsollError] = []
    with pytest.raises(type(error)):
        retry_transient(Failing(error), Stopping(), reported.append)
    assert reported == []


class Waiting(Stopping):
    """Records the waits. The first one ends at once with a stop, as by a signal."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.requested = True


def test_a_signal_ends_the_wait_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    stopping, reported = Waiting(), list[PlimsollError]()
    failing = Failing(*(ConnectionFailedError(f"nobody answers {number}") for number in range(9)))
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("a wait that a signal does not end"))

    with pytest.raises(ConnectionFailedError, match="nobody answers 1"):
        retry_transient(failing, stopping, reported.append)

    assert len(stopping.waits) == len(reported) == 1
    assert stopping.waits[0] > 0


@pytest.mark.timeout(30)
def test_a_stop_ends_a_long_wait() -> None:
    stopping = Stopping()
    threading.Timer(0.01, stopping.request).start()
    stopping.sleep(60)
    assert stopping.requested


def test_a_controller_that_starts_before_its_apiserver_waits_for_it(tmp_path: Path) -> None:
    cluster, told = FakeApiserver(), []
    cluster.serve(*CORE)
    cluster.raw[NODES.path] = b"<html>not yet</html>"

    def answer(error: PlimsollError) -> None:
        told.append(type(error))
        cluster.raw.clear()

    with listening(cluster) as connection:
        (tmp_path / "kubeconfig").write_text(
            "{current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u, user: {}}],"
            f" clusters: [{{name: c, cluster: {{server: '{connection.server}'}}}}]}}"
        )
        with open_observer(
            tmp_path / "kubeconfig", None, awaited=lambda sync: retry_transient(sync, Stopping(), answer)
        ) as (_, observer):
            assert observer.snapshot().nodes == ()
    assert set(told) == {ConnectionFailedError}
