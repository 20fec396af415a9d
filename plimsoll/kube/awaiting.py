"""Waits until an object is ready or deleted, by a watch of that object. A wait can be interrupted."""

import threading
import time
from dataclasses import dataclass
from typing import Final

from plimsoll.kube.errors import ConnectionFailedError, RequestError
from plimsoll.kube.identity import annotation, kind_of, metadata_of, name_of, namespace_of
from plimsoll.kube.objects import Object, Objects, Watch
from plimsoll.kube.ready import Condition, NotReadyError, readiness

SKIP_AWAIT: Final = "pulumi.com/skipAwait"
TIMEOUT: Final = "pulumi.com/timeoutSeconds"
DEFAULT_SECONDS: Final = 600.0
"""Seconds to wait if the resource sets no custom timeout: the ten minutes of Pulumi's Kubernetes plugin."""
_WATCH_SECONDS: Final = 240
_PAUSE_SECONDS: Final = 0.1
_MOST_DOUBLINGS: Final = 6
"""The pause in seconds after a watch that ended or a failed request, and how often it then doubles."""


def awaited(obj: Object) -> Condition | None:
    """The condition that the object is awaited to have; None where it is not awaited.

    Raises PlimsollError for an invalid `pulumi.com/waitFor` annotation. Call it before the object is written: an object
    whose wait cannot begin would be in no state.
    """
    return None if annotation(obj, SKIP_AWAIT) == "true" else readiness(obj)


class Interruption:
    """Interrupts the waits of one call of the engine, after a cancellation by the user or the end of the engine."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watch: Watch | None = None
        self._stopping = threading.Event()

    @property
    def stopped(self) -> bool:
        return self._stopping.is_set()

    def stop(self) -> None:
        with self._lock:
            self._stopping.set()
            if self._watch is not None:
                self._watch.stop()

    def sleep(self, seconds: float) -> None:
        """Returns early if `stop` is called."""
        self._stopping.wait(seconds)

    def guard(self, watch: Watch | None) -> bool:
        """Registers a watch, which `stop` ends. Returns False if `stop` has been called already."""
        with self._lock:
            self._watch = watch
            return not self.stopped


@dataclass(frozen=True)
class Waiting:
    """Waits of one call; `seconds` is the resource's custom timeout, 0 if it has none."""

    objects: Objects
    interruption: Interruption
    seconds: float = 0.0

    def until_ready(self, live: Object) -> Object:
        """Waits until the object is ready, by the conditions of its kind or its `pulumi.com/waitFor` annotation, and
        returns it. Returns at once for kinds without conditions.

        Raises NotReadyError, also if the object cannot be read any more.
        """
        condition = awaited(live)
        if condition is None:
            return live
        # A condition of counts or of an absent field would hold for a deleted object.
        return self._until(live, lambda obj: condition(obj) if obj else "it was deleted")

    def until_gone(self, live: Object) -> None:
        """Waits until the object is deleted. Raises NotReadyError if it still exists at the timeout."""
        uid = metadata_of(live).get("uid")

        def gone(obj: Object) -> str | None:
            if not obj or metadata_of(obj).get("uid") != uid:
                return None
            finalizers = ", ".join(metadata_of(obj).get("finalizers") or []) or "none"
            return f"it still exists (finalizers: {finalizers})"

        self._until(live, gone)

    def _until(self, live: Object, condition: Condition) -> Object:
        """Waits until the condition holds and returns the object; an empty one if the object was deleted and the
        condition accepts that. An apiserver that does not answer meanwhile is waited for, too."""
        kind, namespace, name = kind_of(live), namespace_of(live), name_of(live)
        what = f"{kind.kind} {namespace}/{name}" if namespace else f"{kind.kind} {name}"
        deadline = time.monotonic() + self._allowed(live)
        last, failures = live, 0
        while (missing := condition(last)) is not None:
            left = deadline - time.monotonic()
            if not last:
                raise NotReadyError(f"{what} was deleted during the wait", live)
            if self.interruption.stopped:
                raise NotReadyError(f"{what}: waiting was interrupted: {missing}", live)
            if left <= 0:
                raise NotReadyError(
                    f"{what} is not ready in time: {missing}",
                    live,
                    "set customTimeouts, or disable the wait with pulumi.com/skipAwait",
                )
            live = last
            try:
                last = self._observe(last, condition, min(left, _WATCH_SECONDS))
                failures = 0
            except (ConnectionFailedError, RequestError):
                self.interruption.sleep(min(left, _PAUSE_SECONDS * 2 ** min(failures, _MOST_DOUBLINGS)))
                failures += 1
                last = self._read(live, what)
        return last

    def _read(self, last: Object, what: str) -> Object:
        """The object as it is now, or `last` while the apiserver does not answer."""
        try:
            return self.objects.get(kind_of(last), namespace_of(last), name_of(last)) or {}
        except RequestError as error:
            if error.code in (401, 403):
                raise NotReadyError(f"{what} cannot be read: {error.message}", last, error.hint) from None
            return last
        except ConnectionFailedError:
            return last

    def _allowed(self, live: Object) -> float:
        text = annotation(live, TIMEOUT)
        return self.seconds or (float(text) if text.isdecimal() else DEFAULT_SECONDS)

    def _observe(self, last: Object, condition: Condition, seconds: float) -> Object:
        """Watches the object until the condition holds or the watch ends; an empty object if it was deleted."""
        kind, namespace, name = kind_of(last), namespace_of(last), name_of(last)
        version = str(metadata_of(last).get("resourceVersion") or "0")
        with self.objects.watch(kind, namespace, name, version, max(1, int(seconds))) as watch:
            if not self.interruption.guard(watch):
                return last
            try:
                for event, obj in watch:
                    if event == "DELETED":
                        return {}
                    if event == "ERROR":
                        break
                    if event in ("ADDED", "MODIFIED"):
                        last = obj
                        if condition(obj) is None:
                            return obj
            finally:
                self.interruption.guard(None)
        # Behind some proxies a watch ends as soon as it begins.
        self.interruption.sleep(_PAUSE_SECONDS)
        return last if self.interruption.stopped else self.objects.get(kind, namespace, name) or {}
