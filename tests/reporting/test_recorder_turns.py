"""Events of a namespace with many do not delay those of others, or push them out; none is lost on the way."""

import threading
from datetime import UTC, datetime
from typing import Any

import pytest

from plimsoll.kube import ConnectionFailedError
from plimsoll.model import PodRef
from plimsoll.report import OF_NAMESPACE, Event, Recorder

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class SlowConnection:
    """Answers the first request when it is let go, and notes the namespaces of all."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.asked: list[str] = []

    def request(self, method: str, path: str, *given: Any, **more: Any) -> dict[str, Any]:
        self.go.wait(120)
        self.asked.append(path.split("/")[5])
        return {}


def events(namespace: str, number: int) -> list[Event]:
    return [
        Event(PodRef(namespace=namespace, name=f"p-{n}", uid=f"{namespace}-{n}"), "Warning", "r", "a", "note")
        for n in range(number)
    ]


def test_namespaces_take_turns_and_each_has_a_bounded_queue() -> None:
    connection = SlowConnection()
    recorder = Recorder(connection)  # type: ignore[arg-type]
    recorder.record(events("hostile", 5 * OF_NAMESPACE), NOW)
    recorder.record(events("team", 3), NOW)
    connection.go.set()
    recorder.close()
    assert connection.asked.count("team") == 3
    assert OF_NAMESPACE <= connection.asked.count("hostile") <= OF_NAMESPACE + 1
    assert "team" not in connection.asked[8:], "within the first turns"


class LostConnection:
    """Does not reach the apiserver a number of times."""

    def __init__(self, failures: int) -> None:
        self.failures, self.written = failures, list[str]()

    def request(self, method: str, path: str, body: dict[str, Any], **more: Any) -> dict[str, Any]:
        if self.failures:
            self.failures -= 1
            raise ConnectionFailedError("away")
        self.written.append(body["regarding"]["name"])
        return {}


@pytest.mark.parametrize("later", [[], [("other", 1)]], ids=["nothing new", "more"])
def test_events_wait_for_an_apiserver_that_is_not_reached(later: list[tuple[str, int]]) -> None:
    connection = LostConnection(failures=1)
    recorder = Recorder(connection)  # type: ignore[arg-type]
    recorder.record(events("team", 3), NOW)
    for namespace, number in later:
        recorder.record(events(namespace, number), NOW)
    recorder.close()
    assert sorted(connection.written) == sorted(["p-0", "p-1", "p-2", *(["p-0"] if later else [])])
