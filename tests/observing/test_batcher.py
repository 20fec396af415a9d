"""A burst of changes makes one round, soon after its end."""

import threading
from collections.abc import Callable

from plimsoll.observe.cluster import Batcher


class Script:
    """A clock on which things happen at set times; waiting moves it on."""

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


def test_one_change_is_told_after_it_was_quiet() -> None:
    script = Script()
    script.at(2.0, script.batcher.note)
    assert script.batcher.wait(idle=0.5, maximum=3, timeout=60)
    assert script.time == 2.5


def test_at_rest_a_change_is_told_at_once_and_what_follows_is_gathered() -> None:
    script = Script()
    script.at(2.0, lambda: script.batcher.note(at_once=True))
    assert script.batcher.wait(idle=0.5, maximum=3, timeout=60)
    assert script.time == 2.0
    for time in (2.25, 2.5):
        script.at(time, lambda: script.batcher.note(at_once=True))
    assert script.batcher.wait(idle=0.5, maximum=3, timeout=60)
    assert script.time == 3.0


def test_a_change_that_comes_while_nobody_waits_is_gathered() -> None:
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


def test_a_stream_without_a_pause_is_cut() -> None:
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


def test_a_burst_that_ended_while_it_was_acted_on_is_not_waited_for_again() -> None:
    script = Script()
    script.batcher.note()
    script.batcher.forget()
    script.time = 0.2
    assert not script.batcher.pause(idle=0.5, maximum=3)
    assert script.time == 0.5
    script.time = 9.0
    assert not script.batcher.pause(idle=0.5, maximum=3)
    assert script.time == 9.0


def test_what_comes_meanwhile_makes_the_pause_longer() -> None:
    script = Script()
    script.batcher.note()
    script.batcher.forget()
    script.at(0.25, script.batcher.note)
    assert script.batcher.pause(idle=0.5, maximum=3)
    assert script.time == 0.75


def test_what_is_forgotten_wakes_nobody() -> None:
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
