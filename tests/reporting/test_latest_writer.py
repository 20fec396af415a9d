"""Writing in the background: the latest value of each key, one at a time for a key, several keys in parallel."""

import threading
from collections.abc import Iterator

import pytest

from plimsoll.report import LatestWriter

SECONDS = 30


class Held(LatestWriter[str, str]):
    """Writes `key number`; the first write waits until the test releases it."""

    def __init__(self) -> None:
        super().__init__(3, "held")
        self.begun, self.let_go = threading.Event(), threading.Event()
        self.other = threading.Event()
        self.written: list[str] = []
        self.received: list[tuple[str, str]] = []

    def take(self, key: str, number: int) -> None:
        self._queue({key: f"{key} {number}"})

    def _write(self, item: str) -> str:
        if item == "a 1":
            self.begun.set()
            assert self.let_go.wait(SECONDS)
        self.written.append(item)
        if item.startswith("b"):
            self.other.set()
        if item == "broken 1":
            raise ValueError(item)
        return item.upper()

    def _wrote(self, key: str, item: str, result: str) -> None:
        self.received.append((key, result))


@pytest.fixture
def writer() -> Iterator[Held]:
    writer = Held()
    yield writer
    writer.let_go.set()
    writer.close()


def test_the_latest_value_of_a_key_is_written_after_the_running_write(writer: Held) -> None:
    writer.take("a", 1)
    assert writer.begun.wait(SECONDS)
    writer.take("a", 2)
    writer.take("a", 3)
    writer.take("b", 1)
    assert writer.other.wait(SECONDS), "another key is not held up"
    assert writer.written == ["b 1"], "no second one of a key beside the first"
    writer.let_go.set()
    writer.flush()
    assert writer.written == ["b 1", "a 1", "a 3"]
    assert writer.received == [("b", "B 1"), ("a", "A 1"), ("a", "A 3")]


def test_a_failing_write_is_ignored_and_does_not_block_others(writer: Held) -> None:
    writer.take("broken", 1)
    writer.flush()
    writer.take("broken", 2)
    writer.flush()
    assert writer.received == [("broken", "BROKEN 2")]


def test_accepted_values_are_written_before_close_returns(writer: Held) -> None:
    for number in range(20):
        writer.take(str(number), number)
    writer.close()
    assert len(writer.written) == 20
