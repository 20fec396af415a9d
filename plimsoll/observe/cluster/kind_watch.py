"""KindWatch: lists one kind, then watches it until it is stopped.

`kubernetes.watch.Watch` neither lists in chunks nor requests bookmarks nor resumes, and parses each event twice.
Therefore this module implements the protocol: https://kubernetes.io/docs/reference/using-api/api-concepts/
"""

import contextlib
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Generic, TypeVar

import orjson
import structlog
import urllib3
from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_when_event_set, wait_random_exponential
from tenacity.nap import sleep_using_event

from plimsoll.errors import PlimsollError
from plimsoll.kube import Connection, ConnectionFailedError, RequestError, parse_json
from plimsoll.model import InvalidObject
from plimsoll.model.meta import ObservedObject
from plimsoll.observe.cluster.health import Health, SilentWatchError
from plimsoll.observe.cluster.listing import list_objects
from plimsoll.observe.cluster.presence import ABSENT, Presence
from plimsoll.observe.cluster.store import Key, Store

T = TypeVar("T", bound=ObservedObject)

LIFETIME: Final = (0.6, 0.9)
"""Range of the timeout of a watch, as a part of the seconds after which a silent one has failed: a watch that is heard
ends before, also where an apiserver sends no bookmarks. It is random, so that watches do not end at the same time."""
BACKOFF: Final = wait_random_exponential(multiplier=0.2, max=10)
"""Back-off before the next attempt: random, up to a bound that doubles."""
HEALTHY_AFTER: Final = 1.0
"""A watch that lasted this many seconds, or delivered an event, does not count as a failed attempt."""
RELIST: Final = (400, 404, 410, 504)
"""Status codes of a watch whose resource version cannot be used any more. With 504, the version is in the future."""
FORBIDDEN: Final = 300.0
"""Seconds until a kind that the account may not list, and that is optional, is requested again."""
PATIENCE: Final = 5
"""Number of attempts on a kind that is defined but not served. It may be about to be served, or be defined in other
versions only."""

log = structlog.get_logger(__name__)


class StreamBrokenError(PlimsollError):
    """The watch delivered something that cannot be processed, so the kind must be listed again."""


class KindWatch(Generic[T]):
    """Keeps a store up to date with the cluster, on a thread of its own.

    `on_change` is called after each relevant change of the store. With a `presence`, a kind that is not defined counts
    as synced and empty, and no requests are made for it.
    """

    def __init__(
        self,
        connection: Connection,
        store: Store[T],
        health: Health,
        on_change: Callable[[], None],
        presence: Presence | None = None,
    ) -> None:
        self._connection = connection
        self._store = store
        self._kind = store.kind
        self._health = health
        self._on_change = on_change
        self._presence = presence
        self._path = ""
        """Where the kind was listed."""
        self._version: str | None = None
        """The resource version to resume from; None where the kind must be listed."""
        self._listed = False
        self._awaited = presence is not None
        """Whether the kind may not be served yet: a definition exists before its kind is served."""
        self._definition: str | None = None
        self._refused = 0
        """Attempts in a row that found the kind defined and not served."""
        self._stopped = threading.Event()
        self._interrupted = threading.Event()
        self._response: urllib3.BaseHTTPResponse | None = None
        self._thread = threading.Thread(target=self._run, name=f"watch {self._kind.name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread without waiting for it; see `join`."""
        self._stopped.set()
        if self._presence is not None:
            self._presence.end()
        self.interrupt()

    def join(self, timeout: float) -> None:
        if self._thread.is_alive():
            self._thread.join(timeout)

    def interrupt(self) -> None:
        """Ends the current request, so that the presence of the definition is checked again."""
        self._interrupted.set()
        response = self._response
        if response is not None:
            # The request has already ended.
            with contextlib.suppress(RuntimeError, ValueError, TypeError, OSError):
                response.shutdown()

    def _run(self) -> None:
        retrying = Retrying(
            wait=BACKOFF,
            sleep=sleep_using_event(self._stopped),
            stop=stop_when_event_set(self._stopped),
            retry=retry_if_exception_type(Exception),
            before_sleep=self._failed,
            retry_error_callback=lambda _: None,
        )
        while not self._stopped.is_set():
            retrying(self._round)

    def _failed(self, state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        if isinstance(error, RequestError) and (error.code == 410 or (error.code == 404 and self._awaited)):
            log.debug("the watch cannot resume: listing the kind again", kind=self._kind.name, reason=error.message)
            return
        if not isinstance(error, PlimsollError):
            # An unexpected error: the thread must continue, and the log must contain the traceback.
            log.error("unexpected error in a watch: listing the kind again", kind=self._kind.name, exc_info=error)
            error = PlimsollError(f"{self._kind.name}: {error!r}")
            self._version = None
        self._health.failed(self._kind.name, error)

    def _round(self) -> None:
        """Runs one watch to its end, after a list if one is needed. Raises errors that require a back-off."""
        self._interrupted.clear()
        if self._presence is not None and not self._defined(self._presence):
            return
        if self._path != self._store.kind.path:
            self._path, self._version = self._store.kind.path, None
        try:
            if self._version is None:
                entries, self._version = list_objects(self._connection, self._store)
                self._refused, self._awaited = 0, False
                self._replace(entries, served=True)
            self._follow(self._version)
        except RequestError as error:
            if error.code == 403 and self._version is None and self._kind.if_forbidden:
                self._continue_without(error)
                return
            if error.code == 404 and self._version is None and self._kind.since:
                self._continue_without_kind()
                return
            if error.code in RELIST:
                self._version = None
            if error.code == 404:
                self._refused += 1
            raise
        except (StreamBrokenError, SilentWatchError):
            self._version = None
            raise

    def _continue_without(self, error: RequestError) -> None:
        """Continues with an empty store and a warning, and requests the kind again later, because permissions may be
        granted."""
        self._replace({}, served=True, warning=self._kind.forbidden_warning(error.message))
        self._stopped.wait(FORBIDDEN)

    def _continue_without_kind(self) -> None:
        """As `_continue_without`, without a warning: the cluster is older than the kind."""
        self._replace({}, served=True)
        self._health.unwatched(self._kind.name)
        self._stopped.wait(FORBIDDEN)

    def _defined(self, presence: Presence) -> bool:
        """Whether the kind can be listed or watched. If not, waits, without requests, until its definition changes."""
        definition = presence.wait_other_than(None)
        if definition != self._definition:
            self._definition, self._refused = definition, 0
        if self._stopped.is_set():
            return False
        # A kind that was served and is still defined exists: its objects are not dropped because of some unexpected
        # responses.
        if definition != ABSENT and (self._refused < PATIENCE or not self._awaited):
            return True
        if definition != ABSENT:
            log.warning(
                "the apiserver does not serve the kind in this version: it counts as empty",
                kind=self._kind.name,
                version=self._kind.api_version,
            )
        self._awaited = True
        self._version = None
        self._replace({}, served=False)
        presence.wait_other_than(definition)
        return False

    def _replace(self, entries: Mapping[Key, T | InvalidObject], served: bool, warning: str = "") -> None:
        turned = self._store.served != served
        self._store.served = served
        # The first state is reported even if it is empty, because others wait for it.
        if self._store.replace(entries) or turned or not self._listed:
            self._on_change()
        self._listed = True
        if served and not warning:
            self._health.listed(self._kind.name)
        else:
            self._health.unwatched(self._kind.name)
        self._health.recovered(self._kind.name)
        self._health.synced(self._kind.name, warning)

    def _follow(self, version: str) -> None:
        silence = self._health.silence
        lifetime = max(1, int(random.uniform(*LIFETIME) * silence))
        query = {
            **self._kind.selector,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(lifetime),
        }
        began, events, answered = time.monotonic(), 0, False
        try:
            with self._connection.stream(
                self._path, query=query, read_timeout=silence, accept=self._kind.accept_watch
            ) as response:
                self._response, answered = response, True
                self._health.recovered(self._kind.name)
                if self._interrupted.is_set() or self._stopped.is_set():  # during the request
                    return
                for event in _events(response):
                    self._handle(event)
                    events += 1
        except ConnectionFailedError:
            if self._health.age(self._kind.name) >= silence and not self._interrupted.is_set():
                raise SilentWatchError(
                    f"{self._kind.name}: the watch delivered nothing for {silence:g} s",
                    "a proxy or a firewall between here and the apiserver holds it back",
                ) from None
            if not answered:
                # The apiserver was not there. If an older etcd was restored meanwhile, the version is one of another
                # history, which nothing tells: the apiserver sends what follows it, or waits for it to be reached.
                self._version = None
            healthy = answered and (events or time.monotonic() - began > HEALTHY_AFTER)
            if not (self._interrupted.is_set() or healthy):
                raise
        else:
            if not (events or time.monotonic() - began > HEALTHY_AFTER or self._interrupted.is_set()):
                raise ConnectionFailedError(f"{self._kind.name}: the watch ended as soon as it began")
            if not self._interrupted.is_set():
                self._health.heard(self._kind.name)
        finally:
            self._response = None

    def _handle(self, event: dict[str, Any]) -> None:
        kind, raw = event.get("type"), event.get("object")
        if kind == "ERROR" and isinstance(raw, dict):
            # metav1.Status; 410: the resource version is no longer available
            code = raw.get("code")
            raise RequestError(
                code if isinstance(code, int) else 500,
                str(raw.get("reason") or ""),
                f"watch of {self._path}: {raw.get('message') or 'error without a message'}",
            )
        metadata = raw.get("metadata") if isinstance(raw, dict) else None
        if not isinstance(raw, dict) or not isinstance(metadata, dict) or not metadata.get("resourceVersion"):
            raise StreamBrokenError(f"{self._kind.name}: an event without an object: {str(kind)[:40]}")
        version = str(metadata["resourceVersion"])
        if kind in ("ADDED", "MODIFIED", "DELETED"):
            key, entry = self._store.read(raw)
            take = self._store.remove if kind == "DELETED" else self._store.put
            if take(key, entry):
                self._on_change()
        elif kind != "BOOKMARK":
            raise StreamBrokenError(f"{self._kind.name}: an event of unknown type {str(kind)[:40]!r}")
        self._version = version
        self._health.heard(self._kind.name)


def _events(response: urllib3.BaseHTTPResponse) -> Iterator[dict[str, Any]]:
    """The JSON objects of the response, one for each line. An incomplete last line is ignored."""
    rest = b""
    for piece in response.stream(65536):
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            try:
                event = parse_json(line)
            except orjson.JSONDecodeError as error:
                raise StreamBrokenError(f"a line of a watch is not JSON: {error}") from None
            if not isinstance(event, dict):
                raise StreamBrokenError("a line of a watch is not a JSON object")
            yield event
