"""Health: which watches are synced and which have failed. An outage is logged once, not once for each watch."""

import threading
from collections.abc import Iterable

import structlog

from plimsoll.errors import PlimsollError
from plimsoll.kube import ConnectionFailedError, RequestError

log = structlog.get_logger(__name__)


class NotSyncedError(PlimsollError):
    """A watch is not synced yet, so nothing may be planned."""


class Health:
    """The state of all watches. Thread-safe."""

    def __init__(self, kinds: Iterable[str]) -> None:
        self._changed = threading.Condition()
        self._waiting = set(kinds)
        self._broken: dict[str, PlimsollError] = {}
        self._degraded: dict[str, str] = {}

    def synced(self, kind: str, warning: str = "") -> None:
        """Records that a kind is synced. With a `warning`, the controller continues without the kind, and the warning
        says what does not work."""
        with self._changed:
            self._waiting.discard(kind)
            known = self._degraded.pop(kind, "") == warning
            if warning:
                self._degraded[kind] = warning
            self._changed.notify_all()
        if warning and not known:
            log.warning("continuing without a kind", kind=kind, reason=warning)

    def failed(self, kind: str, error: PlimsollError) -> None:
        """Records a failed attempt, which will be repeated. An outage that was logged already is not logged again."""
        with self._changed:
            known = any(_outage(each) == _outage(error) for each in self._broken.values())
            self._broken[kind] = error
            self._changed.notify_all()
        if not known:
            log.warning("watch failed, trying again", kind=kind, error=error.message)

    def recovered(self, kind: str) -> None:
        with self._changed:
            was_broken = self._broken.pop(kind, None)
            rest = len(self._broken)
            self._changed.notify_all()
        if was_broken is not None and not rest:
            log.info("all watches work again", last=kind)

    def wait_synced(self, timeout: float) -> None:
        """Returns when every kind is synced; `timeout` in seconds.

        Raises the ConnectionFailedError or RequestError if a person must act (nothing answers, not allowed), and
        NotSyncedError, which names the kinds, after the timeout.
        """
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting or self._fatal() is not None, timeout)
            if not self._waiting:
                return
            if (error := self._fatal()) is not None:
                raise error
        self.require_synced()

    def require_synced(self) -> None:
        """Raises NotSyncedError unless every kind is synced."""
        with self._changed:
            if not self._waiting:
                return
            reasons = {error.message for kind, error in self._broken.items() if kind in self._waiting}
            raise NotSyncedError(
                f"not yet observed: {', '.join(sorted(self._waiting))}"
                + "".join(f"; {reason}" for reason in sorted(reasons)),
                "nothing is planned before all kinds are observed; check the log and the apiserver",
            )

    def warnings(self) -> tuple[str, ...]:
        """A line for each kind that is not available to the account, or whose watch has failed, so that its last known
        state is used."""
        with self._changed:
            return (
                *(text for _, text in sorted(self._degraded.items())),
                *(
                    f"{kind}: the watch is broken and the last known state is in use ({error.message})"
                    for kind, error in sorted(self._broken.items())
                ),
            )

    def _fatal(self) -> PlimsollError | None:
        for kind, error in self._broken.items():
            if kind in self._waiting and (
                isinstance(error, ConnectionFailedError)
                or (isinstance(error, RequestError) and error.code in (401, 403))
            ):
                return error
        return None


def _outage(error: PlimsollError) -> tuple[type, object]:
    """Key of an outage: the class of the error for unreachable servers and unknown accounts, else its message too."""
    if isinstance(error, ConnectionFailedError):
        return ConnectionFailedError, None
    if isinstance(error, RequestError) and error.code == 401:
        return RequestError, 401
    return type(error), error.message
