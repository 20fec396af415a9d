"""Events of a namespace with many do not delay those of others, or push them out."""

import threading
from datetime import UTC, datetime
from typing import Any

from plimsoll.model import PodRef
from plimsoll.report import OF_NAMESPACE, Event, Recorder

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class SlowConnection:
    """Answers the first request when it is let go, and notes the namespaces of all."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.asked: list[str] = []

    def request(self, method: str, path: str, *given: Any, **more: Any) -> dict[str, Any]:
        self.go.wait(30)
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
