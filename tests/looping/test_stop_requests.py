"""A request to stop can be made by a handler of a signal, and ends a sleep soon."""

import signal
import threading
import time

import pytest

from plimsoll.stop_request import StopRequest


@pytest.mark.timeout(15)
def test_a_signal_handler_ends_the_sleep_of_the_thread_that_it_interrupts() -> None:
    stopping = StopRequest()
    before = signal.signal(signal.SIGUSR1, lambda *_: stopping.request())
    try:
        main = threading.main_thread().ident
        assert main is not None
        threading.Timer(0.05, signal.pthread_kill, (main, signal.SIGUSR1)).start()
        stopping.sleep(30)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert stopping.requested


def test_a_sleep_without_a_request_lasts_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "monotonic", lambda: sum(slept))
    monkeypatch.setattr(time, "sleep", slept.append)
    StopRequest().sleep(0.25)
    assert sum(slept) == pytest.approx(0.25)
