"""A request to stop can be made by a handler of a signal, and ends a sleep soon."""

import signal
import threading
import time

from plimsoll.stop_request import StopRequest


def test_a_signal_handler_ends_the_sleep_of_the_thread_that_it_interrupts() -> None:
    stopping = StopRequest()
    before = signal.signal(signal.SIGUSR1, lambda *_: stopping.request())
    began = time.monotonic()
    try:
        main = threading.main_thread().ident
        assert main is not None
        threading.Timer(0.05, signal.pthread_kill, (main, signal.SIGUSR1)).start()
        stopping.sleep(30)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert stopping.requested
    assert time.monotonic() - began < 15


def test_a_sleep_without_a_request_lasts_its_time() -> None:
    began = time.monotonic()
    StopRequest().sleep(0.02)
    assert time.monotonic() - began >= 0.02
