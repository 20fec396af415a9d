"""A controller that starts waits out what passes by itself, and ends with what does not."""

import time

import pytest

from plimsoll.apply import (
    BackendUnreachableError,
    EngineKilledError,
    LockedError,
    PassphraseError,
    StateFolderFullError,
)
from plimsoll.cli.controller import Stopping, waited_out
from plimsoll.errors import PlimsollError
from plimsoll.kube import ConnectionFailedError, RequestError


class Failing:
    """Raises the errors one after the other, and then returns."""

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
    ],
    ids=lambda error: f"{type(error).__name__} {getattr(error, 'code', '')}",
)
def test_what_passes_is_waited_out_and_told(error: PlimsollError) -> None:
    told: list[PlimsollError] = []
    assert waited_out(Failing(error), Stopping(), told.append) == "started"
    assert told == [error]


@pytest.mark.parametrize("error", [PassphraseError("wrong"), RequestError(403, "Forbidden", "no")], ids=repr)
def test_what_does_not_pass_is_raised_at_once(error: PlimsollError) -> None:
    told: list[PlimsollError] = []
    with pytest.raises(type(error)):
        waited_out(Failing(error), Stopping(), told.append)
    assert told == []


def test_a_signal_ends_the_wait_at_once() -> None:
    stopping, began = Stopping(), time.monotonic()

    def stop(_: PlimsollError) -> None:
        stopping.requested = True

    with pytest.raises(ConnectionFailedError):
        waited_out(Failing(*[ConnectionFailedError("nobody answers")] * 9), stopping, stop)
    assert time.monotonic() - began < 5
