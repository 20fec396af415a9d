"""How the watches fare: which are synced, which are broken; one line of log for an outage, not one a watch."""

import threading
from collections.abc import Iterable

import structlog

from plimsoll.errors import PlimsollError
from plimsoll.kube import ConnectionFailedError, RequestError

log = structlog.get_logger(__name__)


class NotSyncedError(PlimsollError):
    """A watch has not yet seen the whole state of its kind: nothing may be planned."""


class Health:
    """Shared by the threads of all watches."""

    def __init__(self, kinds: Iterable[str]) -> None:
        self._changed = threading.Condition()
        self._waiting = set(kinds)
        self._broken: dict[str, PlimsollError] = {}
        self._without: dict[str, str] = {}

    def synced(self, kind: str, without: str = "") -> None:
        """`without` says that the kind is done without, and what comes of it; empty: its state is known."""
        with self._changed:
            self._waiting.discard(kind)
            told = self._without.pop(kind, "") == without
            if without:
                self._without[kind] = without
            self._changed.notify_all()
        if without and not told:
            log.warning("continuing without a kind", kind=kind, reason=without)

    def failed(self, kind: str, error: PlimsollError) -> None:
        """An attempt failed and will be repeated. What the log already has is not repeated."""
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
            log.info("watches work again", kind=kind)

    def wait_synced(self, timeout: float) -> None:
        """Returns once every kind is synced; `timeout` in seconds.

        Raises the ConnectionFailedError or RequestError that a person must mend (nobody there, not allowed), and
        NotSyncedError, naming the kinds, when the time is over.
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
        """A line for each kind that is done without, or whose last known state is in use as its watch is broken."""
        with self._changed:
            return (
                *(text for _, text in sorted(self._without.items())),
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
    """What makes two errors the same outage: nobody there, not known, or else the very message."""
    if isinstance(error, ConnectionFailedError):
        return ConnectionFailedError, None
    if isinstance(error, RequestError) and error.code == 401:
        return RequestError, 401
    return type(error), error.message
