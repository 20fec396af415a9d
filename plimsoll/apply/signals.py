"""Writes what trigger pods say to autoscalers: a status, which no stack update declares."""

import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any, Final, Self

import structlog

from plimsoll.kube import MERGE_PATCH, Connection, ConnectionFailedError, RequestError
from plimsoll.model import ObjectKey, Signal

WRITERS: Final = 8
TIMEOUT: Final = 10.0

log = structlog.get_logger(__name__)


def send(connection: Connection, signals: Sequence[Signal]) -> tuple[Signal, ...]:
    """Writes the signals, and returns those that the cluster has taken; the next plan has the others again."""
    if not signals:
        return ()
    with ThreadPoolExecutor(min(WRITERS, len(signals)), thread_name_prefix="signals") as pool:
        taken = list(pool.map(lambda signal: _write(connection, signal), signals))
    return tuple(signal for signal, done in zip(signals, taken, strict=True) if done)


class Arming:
    """Signals of pods that a delta creates: each is sent as soon as its pod is there, beside the rest of the delta.

    `created` may come from any thread, and again for the same pod. On leaving its context all that was begun has ended.
    """

    def __init__(self, connection: Connection, signals: Iterable[Signal]) -> None:
        self._connection = connection
        self._waiting = {signal.key: signal for signal in signals}
        self._sent: list[tuple[Signal, Future[bool]]] = []
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(WRITERS, thread_name_prefix="arming")

    def created(self, key: ObjectKey) -> None:
        """The pod is there. Nothing where no signal waits for it."""
        with self._lock:
            signal = self._waiting.pop(key, None)
            if signal is not None:
                self._sent.append((signal, self._pool.submit(_write, self._connection, signal)))

    def finish(self, created: Iterable[ObjectKey]) -> tuple[Signal, ...]:
        """Sends what waits for these pods, too; the signals that the cluster has taken."""
        for key in created:
            self.created(key)
        return tuple(signal for signal, taken in self._sent if taken.result())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._waiting.clear()  # an update that goes on to its end may still tell of pods
        self._pool.shutdown(wait=True)


def _write(connection: Connection, signal: Signal) -> bool:
    path = f"/api/v1/namespaces/{signal.key.namespace}/pods/{signal.key.name}/status"
    try:
        connection.request("PATCH", path, _patch(signal), content_type=MERGE_PATCH, timeout=TIMEOUT)
    except (RequestError, ConnectionFailedError) as error:
        # 404 and 409: the pod has gone, or is another one of its name.
        if not (isinstance(error, RequestError) and error.code in (404, 409)):
            log.warning("signal is not written", object=str(signal.key), signal=signal.reason, error=error.message)
        return False
    return True


def _patch(signal: Signal) -> dict[str, Any]:
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": signal.reason.value,
        "message": signal.message,
        "lastTransitionTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    # Nobody else writes conditions of a pod that no scheduler and no kubelet serves.
    metadata = {"metadata": {"uid": signal.uid}} if signal.uid else {}
    return {**metadata, "status": {"conditions": [condition]}}
