"""A burst of changes leads to one round, soon after its end."""

import threading
from collections.abc import Callable

from plimsoll.observe.cluster import Batcher


class Script:
    """A clock on which changes happen at set times; waiting advances it."""

    def __init__(self) -> None:
        self.time = 0.0
        self.batcher = Batcher(self)
        self._due: list[tuple[float, Callable[[], None]]] = []

    def at(self, time: float, action: Callable[[], None]) -> None:
        self._due.append((time, action))

    def now(self) -> float:
        return self.time

    def wait(self, condition: threading.Condition, seconds: float) -> None:
        end = self.time + seconds
        if self._due and self._due[0][0] <= end:
            self.time, action = self._due.pop(0)
            action()
        else:
            self.time = end


def test_one_change_ends_the_wait_after_the_idle_time() -> None:
    script = Script()
    script.at(2.0, script.batcher.note)
    assert script.batcher.wait(idle=0.5, maximum=3, timeout=60)
    assert script.time == 2.5


def test_the_first_change_ends_the_wait_at_once_and_further_ones_are_collected() -> None:
    script = Script()
    script.at(2.0, lambda: script.batcher.note(at_once=True))
    assert script.batcher.wait(idle=0.5, maximum=3, timeout=60)
    assert script.time == 2.0
    for time in (2.25, 2.5):
        script.at(time, lambda: script.batcher.note(at_once=True))
    assert script.batcher.wait(idle=0.5, maximum=3, timeout=60)
    assert script.time == 3.0


def test_a_change_before_the_wait_is_collected() -> None:
    script = Script()
    script.time = 5.0
    script.batcher.note(at_once=True)
    assert script.batcher.wait(idle=0.5, maximum=3, timeout=60)
    assert script.time == 5.5


def test_a_burst_is_one_round() -> None:
    script = Script()
    for time in (1.0, 1.25, 1.5):
        script.at(time, script.batcher.note)
    assert script.batcher.wait(idle=0.5, maximum=3, timeout=60)
    assert script.time == 2.0
    assert not script.batcher.wait(idle=0.5, maximum=3, timeout=10)
    assert script.time == 12.0


def test_a_stream_of_changes_ends_the_wait_after_the_maximum() -> None:
    script = Script()
    for step in range(100):
        script.at(1 + step / 4, script.batcher.note)
    assert script.batcher.wait(idle=0.5, maximum=3, timeout=60)
    assert script.time == 4.0


def test_nothing_happens_until_the_timeout() -> None:
    script = Script()
    assert not script.batcher.wait(idle=0.5, maximum=3, timeout=7)
    assert script.time == 7.0


def test_a_change_from_before_the_wait_counts() -> None:
    script = Script()
    script.batcher.note()
    script.time = 5.0
    assert script.batcher.wait(idle=0.5, maximum=3, timeout=60)
    assert script.time == 5.0


def test_a_burst_that_ended_during_a_round_is_not_awaited_again() -> None:
    script = Script()
    script.batcher.note()
    script.batcher.forget()
    script.time = 0.2
    assert not script.batcher.pause(idle=0.5, maximum=3)
    assert script.time == 0.5
    script.time = 9.0
    assert not script.batcher.pause(idle=0.5, maximum=3)
    assert script.time == 9.0


def test_further_changes_extend_the_wait() -> None:
    script = Script()
    script.batcher.note()
    script.batcher.forget()
    script.at(0.25, script.batcher.note)
    assert script.batcher.pause(idle=0.5, maximum=3)
    assert script.time == 0.75


def test_cleared_changes_do_not_end_the_wait() -> None:
    script = Script()
    script.batcher.note()
    script.batcher.forget()
    assert not script.batcher.wait(idle=0.5, maximum=3, timeout=7)


def test_wake_ends_the_wait_and_keeps_the_change() -> None:
    script = Script()
    script.at(1.0, script.batcher.note)
    script.at(1.25, script.batcher.wake)
    assert not script.batcher.wait(idle=0.5, maximum=3, timeout=60)
    assert script.time == 1.25
    assert script.batcher.wait(idle=0.5, maximum=3, timeout=60)


def test_wake_before_the_wait_ends_it_at_once() -> None:
    script = Script()
    script.batcher.wake()
    assert not script.batcher.wait(idle=0.5, maximum=3, timeout=60)
    assert script.time == 0.0


def test_threads_wake_each_other() -> None:
    batcher = Batcher()
    threading.Timer(0.01, batcher.note).start()
    assert batcher.wait(idle=0.0, maximum=0.0, timeout=30)
