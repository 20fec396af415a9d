"""Retries transient errors at the start: a restart would lose the synced watches, and the kubelet delays restarts of a
container that has ended often."""

from collections.abc import Callable
from typing import Final, TypeVar

import structlog
from tenacity import RetryCallState, Retrying, retry_if_exception, wait_exponential_jitter

from plimsoll.apply import (
    BackendUnreachableError,
    ClusterUnreachableError,
    EngineKilledError,
    LockedError,
    StateChangedError,
    StateFolderFullError,
)
from plimsoll.errors import PlimsollError
from plimsoll.kube import ConnectionFailedError, RequestError
from plimsoll.observe.cluster import NotSyncedError
from plimsoll.stop_request import StopRequest

T = TypeVar("T")

_MOST_SECONDS: Final = 10.0
_PASSING: Final = (
    BackendUnreachableError,
    ClusterUnreachableError,
    ConnectionFailedError,
    EngineKilledError,
    LockedError,
    NotSyncedError,
    StateChangedError,
    StateFolderFullError,
)

log = structlog.get_logger(__name__)


def passes(error: BaseException) -> bool:
    """Whether the error may be transient; 409: another writer wrote first."""
    if isinstance(error, RequestError):
        return error.code in (409, 429) or error.code >= 500
    return isinstance(error, _PASSING)


def retry_transient(call: Callable[[], T], stopping: StopRequest, on_failure: Callable[[PlimsollError], None]) -> T:
    """Calls `call` until it succeeds, and returns its result. `on_failure` is called with each error before a retry.

    Raises errors that are not temporary, and the last one if the controller is stopping.
    """

    def log_and_report(state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome is not None else None
        log.warning("a request failed: trying again", error=str(error), next_seconds=state.upcoming_sleep)
        if isinstance(error, PlimsollError):
            on_failure(error)

    return Retrying(
        retry=retry_if_exception(passes),
        wait=wait_exponential_jitter(multiplier=0.5, max=_MOST_SECONDS),
        stop=lambda _: stopping.requested,
        sleep=stopping.sleep,
        before_sleep=log_and_report,
        reraise=True,
    )(call)
