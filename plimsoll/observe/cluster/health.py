"""Health: which watches are synced, which have failed, and when each was last heard of. An outage is logged once, not
once for each watch."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import structlog

from plimsoll.errors import PlimsollError
from plimsoll.kube import ConnectionFailedError, RequestError

SILENCE_SECONDS: Final = 150.0
"""A watch that neither delivers anything nor ends for this many seconds has failed: an apiserver sends a bookmark about
every minute. Proxies and lost connections keep a watch open without an error."""

log = structlog.get_logger(__name__)


class NotSyncedError(PlimsollError):
    """A watch is not synced yet, so nothing may be planned."""


class SilentWatchError(PlimsollError):
    """A watch delivered nothing for too long, so what it shows may be old."""


class Health:
    """The state of all watches. Thread-safe."""

    def __init__(
        self, kinds: Iterable[str], silence: float = SILENCE_SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.silence = silence
        """Seconds after which a watch that was not heard of has failed."""
        self._clock = clock
        self._heard: dict[str, float] = {}
        """When each kind was last listed, or its watch delivered something or ended regularly."""
        self._silent: set[str] = set()
        """Kinds whose watch was silent for too long, and has delivered nothing since."""
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

    def listed(self, kind: str) -> None:
        """Records that a kind was listed. A list shows that the apiserver answers, not that a watch of it is heard."""
        with self._changed:
            self._heard[kind] = self._clock()

    def heard(self, kind: str) -> None:
        """Records that a watch delivered an event or a bookmark, or ended regularly."""
        with self._changed:
            self._heard[kind] = self._clock()
            was_silent = kind in self._silent
            self._silent.discard(kind)
        if was_silent:
            log.info("a watch is heard again", kind=kind)

    def unwatched(self, kind: str) -> None:
        """Records that a kind is not watched, because it is not defined, or the account may not."""
        with self._changed:
            self._heard.pop(kind, None)
            self._silent.discard(kind)

    def age(self, kind: str) -> float:
        """Seconds since the kind was last heard of; 0 if it never was."""
        with self._changed:
            now = self._clock()
            return now - self._heard.get(kind, now)

    def ages(self) -> Mapping[str, float]:
        """The age of each watched kind."""
        with self._changed:
            now = self._clock()
            return {kind: now - heard for kind, heard in sorted(self._heard.items())}

    def silent(self) -> tuple[str, ...]:
        """The kinds whose watch is or was silent for too long, until it delivers something again."""
        with self._changed:
            now = self._clock()
            late = {kind for kind, heard in self._heard.items() if now - heard > self.silence}
            return tuple(sorted(late | self._silent))

    def failed(self, kind: str, error: PlimsollError) -> None:
        """Records a failed attempt, which will be repeated. An outage that was logged already is not logged again."""
        with self._changed:
            known = any(_outage(each) == _outage(error) for each in self._broken.values())
            self._broken[kind] = error
            if isinstance(error, SilentWatchError):
                self._silent.add(kind)
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
            return (*(text for _, text in sorted(self._degraded.items())), *self.broken())

    def broken(self) -> tuple[str, ...]:
        """Those of the warnings about watches that have failed."""
        with self._changed:
            return tuple(
                f"{kind}: the watch is broken and the last known state is in use ({error.message})"
                for kind, error in sorted(self._broken.items())
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
