"""Retries failed rounds with exponential back-off until the loop is stopped."""

from collections.abc import Callable
from typing import Final, TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception, wait_exponential

from plimsoll.apply import LeaseLostError
from plimsoll.errors import PlimsollError
from plimsoll.logs import log_retry
from plimsoll.loop.environments import EnvironmentChangedError
from plimsoll.stop_request import StopRequest

MAXIMUM_WAIT_SECONDS: Final = 60.0

T = TypeVar("T")


def retried(call: Callable[[], T], stopping: StopRequest, on_failure: Callable[[PlimsollError], None]) -> T | None:
    """Returns the result of `call` once it succeeds; None if the loop was stopped meanwhile.

    `on_failure` is called with each error that is followed by another attempt.

    Raises errors that a retry cannot fix: a lost Lease, another Environment, and defects of the program.
    """

    def log_and_report(state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome is not None else None
        if isinstance(error, PlimsollError):
            on_failure(error)
        log_retry(state)

    retrying = Retrying(
        retry=retry_if_exception(_may_pass),
        wait=wait_exponential(multiplier=0.5, max=MAXIMUM_WAIT_SECONDS),
        sleep=stopping.sleep,
        stop=lambda _: stopping.requested,
        before_sleep=log_and_report,
        reraise=True,
    )
    try:
        return retrying(call)
    except PlimsollError:
        if stopping.requested:
            return None
        raise


def _may_pass(error: BaseException) -> bool:
    return isinstance(error, PlimsollError) and not isinstance(error, LeaseLostError | EnvironmentChangedError)
